"""Nested tuples, lists, dicts and named tuples of arrays: taken apart into leaves, and put back.

The structure itself is a hashable tuple, so that it can be part of a signature:
`("tuple", (LEAF, ("dict", ("w", "b"), (LEAF, LEAF))))`. `None` has no leaves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

Structure: TypeAlias = tuple[object, ...]

LEAF: Structure = ("leaf",)
_NONE: Structure = ("none",)


def flatten(tree: object, leaves: list[object]) -> Structure:
    """Append the leaves of `tree` to `leaves` in order and give its structure."""
    if tree is None:
        return _NONE
    if isinstance(tree, dict):
        named = cast(dict[object, object], tree)
        return ("dict", tuple(named), tuple(flatten(v, leaves) for v in named.values()))
    if isinstance(tree, list):
        return ("list", tuple(flatten(v, leaves) for v in cast(list[object], tree)))
    if isinstance(tree, tuple):
        items = cast(tuple[object, ...], tree)
        parts = tuple(flatten(v, leaves) for v in items)
        return ("named", type(items), parts) if hasattr(items, "_fields") else ("tuple", parts)
    leaves.append(tree)
    return LEAF


def unflatten(structure: Structure, leaves: Iterator[object]) -> object:
    """The tree with this structure whose leaves are taken from `leaves` in order."""
    kind = structure[0]
    if kind == "leaf":
        return next(leaves)
    if kind == "none":
        return None
    parts = [unflatten(s, leaves) for s in cast(tuple[Structure, ...], structure[-1])]
    if kind == "dict":
        return dict(zip(cast(tuple[object, ...], structure[1]), parts, strict=True))
    if kind == "list":
        return parts
    if kind == "named":
        return cast(type, structure[1])(*parts)
    return tuple(parts)


def describe(structure: Structure) -> str:
    """`(*, {w: *, b: *})`, for messages."""
    kind = structure[0]
    if kind in ("leaf", "none"):
        return "*" if kind == "leaf" else "None"
    parts = [describe(s) for s in cast(tuple[Structure, ...], structure[-1])]
    if kind == "dict":
        keys = cast(tuple[object, ...], structure[1])
        return "{" + ", ".join(f"{k}: {p}" for k, p in zip(keys, parts, strict=True)) + "}"
    return ("[{}]" if kind == "list" else "({})").format(", ".join(parts))


def leaf_names(structure: Structure) -> list[str]:
    """How Python reaches each leaf, for messages: `1`, `['w'][0]`, `.x`; `0` for a structure that is one
    leaf, and the bare number for a leaf of a flat tuple or list."""
    names = _paths(structure)
    flat = structure[0] in ("tuple", "list") and all(n.count("[") == 1 for n in names)
    return [n.strip("[]") for n in names] if flat else [n or "0" for n in names]


def argument_names(function: Callable[..., object], structure: Structure) -> list[str]:
    """What a reader of `function` calls each leaf of a call with this structure of `(args, kwargs)`: `x`,
    `params['w']`, `rest[0]`."""
    args, kwargs = cast(tuple[Structure, Structure], structure[1])
    positional: list[str] = []
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # of functions in C
        parameters = {"*": inspect.Parameter("arguments", inspect.Parameter.VAR_POSITIONAL)}
    for parameter in parameters.values():
        if parameter.kind == parameter.VAR_POSITIONAL:
            given = len(cast(tuple[Structure, ...], args[1])) - len(positional)
            positional += [f"{parameter.name}[{k}]" for k in range(given)]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(parameter.name)
    parts = zip(positional, cast(tuple[Structure, ...], args[1]), strict=False)
    keywords = zip(
        cast(tuple[str, ...], kwargs[1]), cast(tuple[Structure, ...], kwargs[2]), strict=True
    )
    return [name + path for name, part in (*parts, *keywords) for path in _paths(part)]


def _paths(structure: Structure) -> list[str]:
    kind = structure[0]
    if kind in ("leaf", "none"):
        return [""] if kind == "leaf" else []
    parts = cast(tuple[Structure, ...], structure[-1])
    keys: list[str] = [f"[{k}]" for k in range(len(parts))]
    if kind == "dict":
        keys = [f"[{key!r}]" for key in cast(tuple[object, ...], structure[1])]
    elif kind == "named":
        keys = [f".{field}" for field in cast(Any, structure[1])._fields]
    return [key + rest for key, part in zip(keys, parts, strict=True) for rest in _paths(part)]
