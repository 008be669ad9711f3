"""`jd.jit`: capture a Python function once per signature, then run the captured program.

A signature is the structure of the arguments with, per leaf, dtype and rank, or the kind of a Python
scalar. Sizes and values are never part of it: sizes are measured when the program runs, Python scalars
are run-time arguments. `f(x, y=b)` and `f(x, b)` are one call. What the function finds elsewhere (closures, globals,
defaults) is read at capture: NumPy and lazy arrays become constants of the program, copied; what changes
afterwards is not seen. Results are NumPy arrays, or `Array`s where an argument was one.

A method is captured per object: what it reads of `self` is read at capture too, as if `self` were a closure. The
captures go with the object, which they do not keep alive. A `self` that is itself an argument (a named tuple) is one.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MethodType, NoneType
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.program import Program
from jitdialects.errors import ArgumentError, ConfigError
from jitdialects.frontends.array import Array
from jitdialects.frontends.lazy import LazyValue, known
from jitdialects.frontends.recorder import (
    NumPyValue,
    Scalar,
    active_tracer,
    check_array,
    plain_scalar,
    tracing,
    weak_dtype,
)
from jitdialects.frontends.stages import stage_text
from jitdialects.frontends.structure import (
    LEAF,
    Structure,
    argument_names,
    flatten,
    unflatten,
)
from jitdialects.frontends.tracer import TracedValue, Tracer
from jitdialects.runtime import callables
from jitdialects.runtime.cache import CacheEntry
from jitdialects.runtime.call_tables import CallShape
from jitdialects.runtime.callables import Stub, StubCallable, stub_of
from jitdialects.runtime.dispatch import type_of
from jitdialects.runtime.once import once
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.profile import ShapeHistory
from jitdialects.runtime.shape_constraints import Constraints, Dims
from jitdialects.runtime.shape_policies import ShapeCase, ShapePolicy, check_shapes
from jitdialects.runtime.values import STRONG
from jitdialects.runtime.vm import VM
from jitdialects.runtime.weak import listed

P = ParamSpec("P")
R = TypeVar("R")
Argument: TypeAlias = NDArray[np.generic] | Scalar
_Call: TypeAlias = tuple[tuple[object, ...], dict[str, object]]
_PlainKey: TypeAlias = tuple[tuple[str, ...], tuple[object, ...]]
"""Names of arguments that are given by name, and how all look."""
_LEAVES = (np.ndarray, np.generic, Array, bool, int, float, tuple, list, dict, NoneType)
"""What is an argument also where an object of a method may be."""
MOST_SHAPES = 64
"""Ways of giving arguments that are remembered per function."""
_CHOICES = {
    "numerics": ("strict",),
    "target": ("cpu",),
}


@dataclass(frozen=True)
class Capture:
    """One signature: its program, and how results are made from what the VM returns. `weak` tells which
    of those stand for Python scalars; `constants` are results that are no arrays, by position among the
    leaves of the result; `hoisted` are further arguments."""

    program: Program
    structure: Structure
    weak: tuple[bool, ...]
    constants: dict[int, object]
    hoisted: tuple[Argument, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the program's arguments are those of a call, and its results one array or a tuple."""
        flat = self.structure is LEAF or (
            self.structure[0] == "tuple"
            and all(part is LEAF for part in cast(Sequence[object], self.structure[1]))
        )
        return flat and not self.constants and not self.hoisted

    def stub(self, vm: VM, entry: CacheEntry, known: Stub | None) -> Stub | None:
        """The stub of compiled code, for calls of this capture; `known`: the one that it had."""
        served = vm.functions["main"].profile.count_served
        return stub_of(entry, served, self.structure is not LEAF, vm.pool, known)

    def run(self, vm: VM, arguments: Sequence[Argument], *, as_arrays: bool) -> object:
        """Run the program and put its results together."""
        results: Sequence[object] = vm.run("main", *arguments, *self.hoisted)
        if as_arrays:
            arrays = cast(Sequence[NDArray[np.generic]], results)
            results = [Array(known(r, w)) for r, w in zip(arrays, self.weak, strict=True)]
        if self.structure is LEAF and not self.constants:
            return results[0]
        return unflatten(self.structure, self._with_constants(iter(results)))

    def _with_constants(self, arrays: Iterator[object]) -> Iterator[object]:
        position = 0
        while True:
            if position in self.constants:
                yield self.constants[position]
            else:
                yield next(arrays)
            position += 1


def capture(
    function: Callable[..., object],
    name: str,
    structure: Structure,
    leaves: list[Argument],
    *,
    hoist: bool = False,
) -> Capture:
    """Run `function` on traced values; `structure` and `leaves` are those of `(args, kwargs)`.
    `hoist`: arrays and numbers from elsewhere become further arguments instead of constants."""
    tracer = Tracer(name, hoist=hoist)
    with tracing(tracer):
        traced = [Array(tracer.parameter(dtype_of(x, name), np.ndim(x))) for x in leaves]
        args, kwargs = cast(_Call, unflatten(structure, iter(traced)))
        result = function(*args, **kwargs)
        outputs: list[object] = []
        result_structure = flatten(result, outputs)
        values: list[TracedValue] = []
        constants: dict[int, object] = {}
        for position, output in enumerate(outputs):
            if isinstance(output, Array):
                values.append(tracer.lift(output.value, name))
            elif isinstance(output, np.ndarray):
                values.append(tracer.lift(cast(NumPyValue, output), name))
            else:
                constants[position] = output
        program = tracer.finish(values)
    weak = tuple(v.dtype.weak for v in values)
    return Capture(program, result_structure, weak, constants, tuple(tracer.hoisted))


def as_argument(leaf: object, who: str) -> Argument:
    """One leaf of the arguments of a call, as the VM takes it."""
    if isinstance(leaf, Array):
        value = leaf.value
        return value.argument() if isinstance(value, LazyValue) else value.fetch(who)
    if isinstance(leaf, np.ndarray | np.generic):
        return check_array(cast(NumPyValue, leaf), who)
    if isinstance(leaf, bool | int | float):
        weak_dtype(leaf, who)
        return plain_scalar(leaf)
    raise ArgumentError(
        f"{who} takes arrays and numbers, or tuples, lists and dicts of them, got "
        f"{type(leaf).__name__}; bind other values with functools.partial"
    )


def dtype_of(value: Argument, who: str) -> DType:
    """The dtype with which an argument enters a program."""
    if isinstance(value, np.ndarray):
        return STRONG[value.dtype]
    return weak_dtype(value, who)


def _look(arguments: Sequence[object]) -> tuple[object, ...]:
    """The signature of arguments that are all plain, for the shortest way to the VM. What is no array
    stands for its type, and no type but a scalar's is ever stored."""
    return tuple([(a.dtype, a.ndim) if type(a) is np.ndarray else type(a) for a in arguments])


def _lifted(values: Sequence[object]) -> tuple[object, ...]:
    """`values` with what lazy arrays stand for in their place; arrays of a capture stay."""
    return tuple(
        [
            v.value.argument() if type(v) is Array and type(v.value) is LazyValue else v
            for v in values
        ]
    )


def _as_arrays(result: object) -> object:
    """The lazy arrays for what a call gave: an array, or a tuple."""
    if isinstance(result, tuple):
        return tuple(
            [Array(known(r, False)) for r in cast("tuple[NDArray[np.generic], ...]", result)]
        )
    return Array(known(cast("NDArray[np.generic]", result), False))


def _interned(name: str) -> str:
    return sys.intern(name) if type(name) is str else name


class _Method:
    """A function of an object and further arguments, without the object, which it does not keep alive."""

    def __init__(self, function: Callable[..., object], instance: object) -> None:
        functools.update_wrapper(self, function)
        self.__signature__ = inspect.signature(MethodType(function, instance))
        self._function = function
        self._instance = weakref.ref(instance)

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._function(self._instance(), *args, **kwargs)


class Jitted(StubCallable, Generic[P, R]):
    """What `jit` returns; calls like the function it wraps.

    Calls with plain arguments enter the stubs of compiled code, however they name them; `__call__` is the way
    of all others.
    """

    def __init__(
        self,
        function: Callable[P, R],
        options: dict[str, str],
        shapes: str | ShapePolicy = "auto",
        dims: Constraints | None = None,
    ) -> None:
        if not callable(function):
            raise ArgumentError(f"jit takes a function, got {type(function).__name__}")
        for option, value in options.items():
            if option in _CHOICES and value not in _CHOICES[option]:
                raise ConfigError(
                    f"jit: {option}={value!r} is not supported; use one of "
                    f"{', '.join(map(repr, _CHOICES[option]))}"
                )
        check_shapes("jit", shapes)
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.options = options
        self._dims = dims
        self._policy = Policy(
            shapes=None if shapes == "auto" else shapes, schedule=options["schedule"]
        )
        self._captures: dict[object, tuple[Capture, VM]] = {}
        self._plain: dict[_PlainKey, tuple[Capture, VM]] = {}
        self._gives_arrays = True
        """Whether all results are arrays or tuples of them, none of which stands for a Python scalar."""
        self._last: Capture | None = None
        self._offered: dict[VM, Sequence[CacheEntry]] = {}
        self._stubs: dict[tuple[VM, CacheEntry], Stub] = {}
        self._shapes: dict[tuple[int, tuple[str, ...]], CallShape] = {}
        self._offered_shapes = 0
        self._bound: dict[int, tuple[weakref.ref[object], Jitted[..., object]]] = {}
        self._lock = threading.RLock()  # a destructor may call this function anywhere
        _functions.add(self)

    def after_fork(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<jit {self.__name__}: {len(self._captures)} signature(s)>"

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., R]:
        """Python asks for this when a class has a jitted function: a method, as with any function."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if active_tracer() is not None:
            return self.__wrapped__(*args, **kwargs)  # inside a capture: becomes part of it
        if not kwargs and any(isinstance(a, np.generic) for a in args):
            # scalars of NumPy are arrays of rank 0, which stubs know
            arrays = [np.asarray(cast(object, a)) if isinstance(a, np.generic) else a for a in args]
            return cast("Callable[..., R]", self)(*arrays)
        values, names = self._ordered(args, kwargs)
        lifted = Array in map(type, values)
        if lifted:
            values = _lifted(values)
            if not names and self._gives_arrays and Array not in map(type, values):
                result = cast("Callable[..., object]", self)(*values)
                if self._gives_arrays:  # still: it may have been captured just now
                    return cast(R, _as_arrays(result))
        plain = self._plain.get((names, _look(values)))
        if plain is not None:
            captured, vm = plain  # of this call: another thread may be the last by then
            self._last = captured
            lets_through = bool(self._stubs) and not lifted
            if lets_through:
                vm.let_through("main")  # what stubs let through is to be timed
            result = captured.run(vm, cast("Sequence[Argument]", values), as_arrays=lifted)
            self._offer(plain, lets_through)
            return cast(R, result)
        method = self._method(args)
        if method is not None:
            return cast(R, self._call_method(method, args, kwargs))
        (found, vm), arguments, as_arrays = self._lookup(values, names)
        return cast(R, found.run(vm, arguments, as_arrays=as_arrays or lifted))

    # ---- arguments by name

    def _ordered(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple[object, ...], tuple[str, ...]]:
        """The arguments, those by position first, and the names of the others, sorted. However a call names
        them, what can be given by position is."""
        if not kwargs:
            return args, ()
        keywords = tuple(kwargs)
        shape = self._shapes.get((len(args), keywords)) or self._shape(len(args), keywords)
        given = (*args, *kwargs.values())
        return tuple([given[k] for k in shape.sources]), shape.names

    def _shape(self, count: int, keywords: tuple[str, ...]) -> CallShape:
        """How `count` arguments and then `keywords` become those of a capture."""
        sources = list(range(count))
        for name in self._positional[count:]:
            if name not in keywords:
                break
            sources.append(count + keywords.index(name))
        left = sorted(set(keywords) - {keywords[k - count] for k in sources[count:]})
        sources += [count + keywords.index(name) for name in left]
        shape = CallShape(count, tuple(map(_interned, keywords)), tuple(sources), tuple(left))
        if len(self._shapes) < MOST_SHAPES:
            self._shapes[count, keywords] = shape
        return shape

    @once
    def _positional(self) -> tuple[str, ...]:
        """The parameters that a call may give either way; "" is one that has no name for callers."""
        try:
            parameters = inspect.signature(self.__wrapped__).parameters.values()
        except ValueError:  # of functions in C
            return ()
        kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        return tuple([p.name if p.kind is kinds[1] else "" for p in parameters if p.kind in kinds])

    # ---- methods

    def _method(self, args: tuple[object, ...]) -> Jitted[..., object] | None:
        """What serves calls whose first argument is the object of a method; None if it is none."""
        if not args or isinstance(args[0], _LEAVES):
            return None
        instance = args[0]
        known = self._bound.get(id(instance))
        if known is not None and known[0]() is instance:
            return known[1]
        return self._bind(instance) if self._is_defined_in(instance) else None

    def _is_defined_in(self, instance: object) -> bool:
        """Whether this is a method of `instance`, by where it is defined or by what its class has."""
        place = str(getattr(self, "__qualname__", "")).rpartition(".")[0]
        classes = type(instance).__mro__
        has = any(self is value for each in classes for value in list(vars(each).values()))
        return has or (place != "" and not place.endswith("<locals>"))

    def _bind(self, instance: object) -> Jitted[..., object]:
        this, number = weakref.ref(self), id(instance)

        def gone(reference: object) -> None:
            # comes anywhere, so takes no lock; machine code sees by itself whether an object is there
            owner = this()
            known = None if owner is None else owner._bound.get(number)
            if owner is not None and known is not None and known[0] is reference:
                owner._bound.pop(number, None)

        try:
            reference = weakref.ref(instance, gone)
        except TypeError:
            raise ArgumentError(
                f"{self.__name__}: a jitted method needs an object that can have weak references; add "
                f"'__weakref__' to the __slots__ of {type(instance).__name__}"
            ) from None
        with self._lock:
            known = self._bound.get(number)
            if known is not None and known[0]() is instance:
                return known[1]  # another thread was first
            bound: Jitted[..., object] = Jitted(
                _Method(self.__wrapped__, instance),
                self.options,
                self._policy.shapes or "auto",
                self._dims,
            )
            self._bound[number] = reference, bound
            return bound

    def _call_method(
        self, method: Jitted[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        result = method(*args[1:], **kwargs)
        self._last = method._last
        with self._lock:
            self._serve_instances()
        return result

    def _serve_instances(self) -> None:
        self.serve_methods(list(self._bound.copy().values()))

    # ---- compiled code

    def _offer(self, found: tuple[Capture, VM], lets_through: bool) -> None:
        """Let stubs take the calls that this capture's compiled code fits. `lets_through`: one of them may have
        let this call through, as a sample."""
        callables.settle()
        captured, vm = found
        entries, shapes = vm.functions["main"].free, len(self._shapes)
        is_new = self._offered.get(vm) is not entries or self._offered_shapes != shapes
        if lets_through and not is_new:
            for stub in list(self._stubs.values()):
                stub.set_period()
        if not is_new or not captured.is_plain or vm.recorder is not None:
            return
        with self._lock:
            self._offered[vm] = entries
            self._offered_shapes = shapes
            stubs: dict[tuple[VM, CacheEntry], Stub] = {}
            groups: dict[tuple[str, ...], list[Stub]] = {}
            for (names, _), (captured, vm) in list(self._plain.items()):
                for entry in self._offered.get(vm, ()):
                    key = vm, entry
                    stub = captured.stub(vm, entry, self._stubs.get(key))
                    if stub is not None:
                        stubs[key] = stub
                        groups.setdefault(names, []).append(stubs[key])
            self._stubs = stubs
            self.serve(groups, list(self._shapes.values()), vm.service.cache)

    def _lookup(
        self, values: tuple[object, ...], names: tuple[str, ...]
    ) -> tuple[tuple[Capture, VM], list[Argument], bool]:
        """The capture for a call with arguments as `_ordered` gives them (made if need be), its arguments,
        whether any was an `Array`."""
        positional = len(values) - len(names)
        args = values[:positional]
        kwargs = dict(zip(names, values[positional:], strict=True))
        leaves: list[object] = []
        structure = flatten((args, kwargs), leaves)
        as_arrays = False
        arguments: list[Argument] = []
        kinds: list[object] = [structure]
        for leaf in leaves:
            as_arrays |= isinstance(leaf, Array)
            argument = as_argument(leaf, self.__name__)
            arguments.append(argument)
            if isinstance(argument, np.ndarray):
                kinds.append((argument.dtype.name, argument.ndim))
            else:
                kinds.append(type(argument))
        key = tuple(kinds)
        with self._lock:
            found = self._captures.get(key)
            if found is None:
                self._check_call(args, kwargs)
                captured = capture(self.__wrapped__, self.__name__, structure, arguments)
                vm = VM(captured.program, self._policy)
                vm.name = self.__name__
                vm.argument_names = names_of = argument_names(self.__wrapped__, structure)
                if self._dims is not None:
                    vm.functions["main"].tiers.constraints = self._dims.of(names_of)
                self._gives_arrays &= captured.is_plain and not any(captured.weak)
                found = self._captures[key] = captured, vm
            self._last = found[0]
            if len(leaves) == len(values) and all(map(operator.is_, leaves, values)):
                self._plain[names, _look(arguments)] = found
        return found, arguments, as_arrays

    def _check_call(self, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        try:
            inspect.signature(self.__wrapped__).bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self.__name__}: {error}; check the call") from None
        except ValueError:  # of functions in C, which check it themselves
            pass

    @property
    def program(self) -> Program:
        """The program of the signature that was captured or called last."""
        return self._latest().program

    def machines(self) -> list[VM]:
        """The virtual machines that run the captured programs, one per signature and object."""
        own = [vm for _, vm in list(self._captures.values())]
        return own + [vm for _, bound in list(self._bound.values()) for vm in bound.machines()]

    def wait(self) -> None:
        """Return when nothing of this function is being compiled."""
        for vm in self.machines():
            vm.wait()

    def lower(self, *args: object, stage: str = "bytecode", **kwargs: object) -> str:
        """The text of what is compiled for this call, after `stage`: bytecode, vm, tssa, loop, scf,
        llvm, llvm-ir or asm. Of a method: `Model.forward.lower(model, x)`."""
        method = self._method(args)
        if method is not None:
            return method.lower(*args[1:], stage=stage, **kwargs)
        (captured, vm), arguments, _ = self._lookup(*self._ordered(args, kwargs))
        history = ShapeHistory(tuple(type_of(x) for x in arguments))
        shapes = tuple(np.shape(x) for x in arguments)
        case = ShapeCase("main", history, shapes, vm.functions["main"].tiers.products)
        signature = next(self._policy.shape_policy.signatures(case))
        return stage_text(captured.program, signature, stage, self._policy.schedule)

    def _latest(self) -> Capture:
        if self._last is None:
            raise ArgumentError(f"{self.__name__} was not captured yet; call it once")
        return self._last


_functions: weakref.WeakSet[Jitted[..., Any]] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for function in listed(lambda: _functions):
        function.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)


@overload
def jit(
    function: Callable[P, R],
    *,
    numerics: str = ...,
    shapes: str | ShapePolicy = ...,
    target: str = ...,
    schedule: str = ...,
    dims: Dims | None = ...,
) -> Jitted[P, R]: ...


@overload
def jit(
    function: None = None,
    *,
    numerics: str = ...,
    shapes: str | ShapePolicy = ...,
    target: str = ...,
    schedule: str = ...,
    dims: Dims | None = ...,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(
    function: Callable[P, R] | None = None,
    *,
    numerics: str = "strict",
    shapes: str | ShapePolicy = "auto",
    target: str = "cpu",
    schedule: str = "",
    dims: Dims | None = None,
) -> Jitted[P, R] | Callable[[Callable[P, R]], Jitted[P, R]]:
    """Capture `function` once per signature and run it as a program; also `@jit(shapes="exact")`.

    `schedule`: what loop nests shall do instead of what the compiler would choose, such as
    `"elementwise: vector = 8, unroll = 4"` (`jd.explain` shows the nests and what they do). What a nest cannot do is
    not compiled; `jd.explain` says why.

    `shapes`: which sizes code is made for: `"auto"` (exact ones, until one varies), `"exact"`, `"bucketed"` (padded
    to the largest of a class, where rows stay rows), `"symbolic"`, or a `jd.ShapePolicy`. `dims`: what is known of
    sizes, one entry per axis, such as `{"x": (jd.Dim("batch", max=64), 784)}`; calls with others are errors.
    """
    options = {"numerics": numerics, "target": target, "schedule": schedule}
    if function is None:
        return lambda function: Jitted(function, options, shapes, _constraints(function, dims))
    return Jitted(function, options, shapes, _constraints(function, dims))


def _constraints(function: Callable[..., object], dims: Dims | None) -> Constraints | None:
    return None if dims is None else Constraints(getattr(function, "__name__", "jit"), dims)
