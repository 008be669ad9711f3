"""Nested tuples, lists, dicts and named tuples of arrays: taken apart into leaves, and put back.

The structure itself is a hashable tuple, so that it can be part of a signature:
`("tuple", (LEAF, ("dict", ("w", "b"), (LEAF, LEAF))))`. `None` has no leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
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
