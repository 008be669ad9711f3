"""Loops as control flow of the program, not unrolled: `while_loop` and `fori_loop`.

    while_loop(cond, body, x)              br ^header
                                  ->   ^header: %p = cond(%x);  cond_br %p, ^body, ^exit
                                       ^body:   %x = move body(%x);  br ^header
                                       ^exit:

The carried value is a nested structure of arrays. `body` keeps its structure, and the dtype and rank of
each array; sizes may change. A carried Python scalar takes the dtype that `body` gives it, for which
`body` is traced once more. `Loop` is what `scan` is made of too.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from jitdialects.bytecode.dtypes import WEAK_INT, DType, must_fit, promote
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.program import Program
from jitdialects.errors import ArgumentError, DTypeError, ShapeError, TraceError
from jitdialects.frontends.array import Array, unwrapped
from jitdialects.frontends.jit import Argument, as_argument, capture
from jitdialects.frontends.recorder import active_tracer, user_location
from jitdialects.frontends.structure import Structure, describe, flatten, leaf_names, unflatten
from jitdialects.frontends.tracer import TracedValue, Tracer
from jitdialects.runtime.vm import VM

T = TypeVar("T")


def while_loop(cond_fun: Callable[[T], object], body_fun: Callable[[T], T], init_val: T) -> T:
    """`while cond_fun(value): value = body_fun(value)`, from `init_val`; the last value.

    Under `jit` it becomes part of the captured program; elsewhere it is captured and run at once.
    Errors: `TraceError` for another structure, `DTypeError` and `ShapeError` for another dtype or rank
    of what `body_fun` returns, or a condition that is not one truth value.
    """
    who = "while_loop"
    check_functions(who, "the carried value", cond_fun=cond_fun, body_fun=body_fun)
    tracer = traced_here()
    if tracer is None:

        def again(init: T) -> T:
            return while_loop(cond_fun, body_fun, init)

        return cast(T, run_now(who, again, init_val))
    return cast(T, Loop(tracer, who, cond_fun, body_fun, init_val).emit())


def fori_loop(lower: object, upper: object, body_fun: Callable[[Any, T], T], init_val: T) -> T:
    """`for i in range(lower, upper): value = body_fun(i, value)`, from `init_val`; the last value.

    The bounds are Python integers or int64 arrays of rank 0, evaluated once; `i` is weak, like a Python
    integer, where they are. No step is taken where `upper <= lower`. Errors are those of `while_loop`.
    """
    who = "fori_loop"
    check_functions(who, "the counter and the carried value", body_fun=body_fun)
    tracer = traced_here()
    if tracer is None:

        def again(lower: object, upper: object, init: T) -> T:
            return fori_loop(lower, upper, body_fun, init)

        return cast(T, run_now(who, again, lower, upper, init_val))
    first, end = (Array(_bound(tracer, x)) for x in (lower, upper))
    one = Array(tracer.constant(np.asarray(1, np.int64), WEAK_INT))
    loop = Loop(
        tracer,
        who,
        lambda state: state[0] < end,
        lambda state: (state[0] + one, body_fun(state[0], state[1])),
        (first, init_val),
        hidden=1,
    )
    return cast("tuple[object, T]", loop.emit())[1]


def _bound(tracer: Tracer, bound: object) -> TracedValue:
    value = tracer.lift(unwrapped(bound), "fori_loop")
    if value.sizes or value.dtype.name != "int64":
        raise ArgumentError(
            f"fori_loop: a bound must be an integer, got {value.dtype} of rank {len(value.sizes)}; "
            "cast it with astype('int64')"
        )
    return value


def check_functions(who: str, takes: str, **functions: object) -> None:
    """Refuse what cannot be called."""
    for name, function in functions.items():
        if not callable(function):
            raise ArgumentError(
                f"{who}: {name} must be a function of {takes}, got {type(function).__name__}"
            )


def traced_here() -> Tracer | None:
    """The capture at work on this thread."""
    tracer = active_tracer()
    assert tracer is None or isinstance(tracer, Tracer)
    return tracer


class Loop:
    """One loop while it is emitted. The first `hidden` elements of the carried tuple are ours, the last
    one is the user's: messages name its leaves."""

    def __init__(
        self,
        tracer: Tracer,
        who: str,
        cond_fun: Callable[[Any], object],
        body_fun: Callable[[Any], object],
        init: object,
        hidden: int = 0,
    ) -> None:
        self.tracer = tracer
        self.who = who
        self.cond = cond_fun
        self.body = body_fun
        leaves: list[object] = []
        self.structure = flatten(init, leaves)
        self.hidden = hidden
        self.names = _names(self.structure, hidden)
        self.init = [tracer.lift(unwrapped(x), who) for x in leaves]

    def emit(self) -> object:
        """Emit the loop; its last value, in the structure of the first."""
        dtypes = [v.dtype for v in self.init]
        while True:
            mark = self.tracer.mark()
            carried = self._enter(dtypes)
            found = self._blocks(carried)
            if found == dtypes:
                break
            self.tracer.undo(
                mark
            )  # a weak value became stronger: trace once more, each at most twice
            dtypes = found
        return self._tree([self.tracer.at_register(v) for v in carried])

    def _enter(self, dtypes: Sequence[DType]) -> list[TracedValue]:
        """Move the first values to the registers that carry them."""
        carried: list[TracedValue] = []
        for value, dtype in zip(self.init, dtypes, strict=True):
            first = as_dtype(self.tracer, value, dtype)
            sizes = self.tracer.unknown_sizes(len(first.sizes))
            carried.append(self.tracer.fresh_value(dtype, sizes))
            self.tracer.emit("move", (carried[-1].register,), (first.register,))
        return carried

    def _blocks(self, carried: list[TracedValue]) -> list[DType]:
        """Header, body and exit; the dtypes that the carried values must have."""
        tracer = self.tracer
        tracer.emit("br", targets=(len(tracer.blocks),))
        header = tracer.open_block("header")
        with tracer.scope():
            inside = [tracer.at_register(v) for v in carried]
            condition = self._condition(inside)
            decision, body = len(tracer.blocks) - 1, len(tracer.blocks)
            tracer.emit("cond_br", (), (condition.register,), targets=(body, body))
            tracer.open_block("body")
            values = self._next_values(inside)
            dtypes = [
                joined(f"{self.who}: {name}", c, v)
                for name, c, v in zip(self.names, carried, values, strict=True)
            ]
            self._move(carried, values)
            tracer.emit("br", targets=(header,))
        tracer.retarget(decision, (body, len(tracer.blocks)))
        tracer.open_block("exit")
        return dtypes

    def _condition(self, inside: list[TracedValue]) -> TracedValue:
        result = self.cond(self._tree(inside))
        condition = self.tracer.lift(unwrapped(result), f"{self.who}: cond_fun")
        if condition.sizes:
            raise ShapeError(
                f"{self.who}: cond_fun returned an array of rank {len(condition.sizes)}, needs one "
                "truth value of rank 0; reduce it, for example with max",
                user_location(),
            )
        return condition

    def _next_values(self, inside: list[TracedValue]) -> list[TracedValue]:
        leaves: list[object] = []
        structure = flatten(self.body(self._tree(inside)), leaves)
        if structure != self.structure:
            became, was = (_users_part(s, self.hidden) for s in (structure, self.structure))
            raise TraceError(
                f"{self.who}: the carried value has the structure {describe(was)}, the function "
                f"returned {describe(became)}; return the same structure",
                user_location(),
            )
        return [self.tracer.lift(unwrapped(x), self.who) for x in leaves]

    def _tree(self, inside: list[TracedValue]) -> object:
        return unflatten(self.structure, iter([Array(v) for v in inside]))

    def _move(self, carried: list[TracedValue], values: list[TracedValue]) -> None:
        """All at once: a value that lives in a carried register is saved before any is written."""
        tracer = self.tracer
        registers = {v.register for v in carried}
        sources: list[int] = []
        for target, value in zip(carried, values, strict=True):
            source = as_dtype(tracer, value, target.dtype).register
            if source in registers and source != target.register:
                saved = tracer.fresh_value(value.dtype, value.sizes).register
                tracer.emit("move", (saved,), (source,))
                source = saved
            sources.append(source)
        for target, source in zip(carried, sources, strict=True):
            if source != target.register:
                tracer.emit("move", (target.register,), (source,))


def _users_part(structure: Structure, hidden: int) -> Structure:
    """The structure of the last element of a carried tuple that begins with `hidden` of ours."""
    return cast("tuple[Structure, ...]", structure[-1])[-1] if hidden else structure


def _names(structure: Structure, hidden: int) -> list[str]:
    """What messages call the leaves of a carried value: `carried value 1`, `carried value ['w'][0]`."""
    own = [f"carried value {name}" for name in leaf_names(_users_part(structure, hidden))]
    count = len(leaf_names(structure)) - len(own)
    return ["a value of the loop's own"] * count + own


def joined(who: str, carried: TracedValue, value: TracedValue) -> DType:
    """The dtype of a value that is `carried` on one path and `value` on another; `who` names it."""
    if len(carried.sizes) != len(value.sizes):
        raise ShapeError(
            f"{who} has rank {len(carried.sizes)} and becomes rank {len(value.sizes)}; start "
            "from an array of that rank, for example with broadcast_to",
            user_location(),
        )
    before, after = carried.dtype, value.dtype
    if before == after:
        return before
    if before.weak and after.weak:
        return promote(before, after)
    strong = after if before.weak else before
    if not (before.weak or after.weak) or promote(before, after) != strong:
        raise DTypeError(
            f"{who} is {before} and becomes {after}; cast it with astype", user_location()
        )
    return strong


def as_dtype(tracer: Tracer, value: TracedValue, dtype: DType) -> TracedValue:
    """`value` with the dtype of what it is joined with."""
    if value.dtype == dtype:
        return value
    if not dtype.weak and not must_fit(value.dtype, dtype):
        return tracer.record(OPERATORS["cast"], [value], {"dtype": dtype.name})
    zero = tracer.constant(np.zeros((), dtype.numpy), dtype)
    return tracer.record(
        OPERATORS["add"], [value, zero], {}
    )  # weak + weak stays weak; int32 is checked


# ---- outside of a capture ----------------------------------------------------------------------

KEPT_LOOPS = 64
"""Programs of loops that are kept, least recently used dropped first."""
_kept: OrderedDict[bytes, VM] = OrderedDict()
_lock = threading.RLock()


def _after_fork_in_child() -> None:
    """Another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork_in_child)


def run_now(who: str, function: Callable[..., object], *arguments: object) -> object:
    """Capture `function(*arguments)`, with arrays and numbers that it uses from elsewhere as further
    arguments, and run it. Equal programs share a VM, so that a loop in a Python loop gets hot."""
    leaves: list[object] = []
    keywords: dict[str, object] = {}
    structure = flatten((arguments, keywords), leaves)
    values: list[Argument] = [as_argument(x, who) for x in leaves]
    captured = capture(function, who, structure, values, hoist=True)
    return captured.run(_vm_for(captured.program, who), values, as_arrays=True)


def _vm_for(program: Program, who: str) -> VM:
    """The VM of this program; a new one, called `who`, if it was not seen lately."""
    key = program.to_bytes()
    with _lock:
        if key not in _kept:
            _kept[key] = VM(program)
            _kept[key].name = who
        _kept.move_to_end(key)
        vm = _kept[key]
        if len(_kept) > KEPT_LOOPS:
            _kept.popitem(last=False)
        return vm


def clear_loops() -> None:
    """Forget the programs of loops."""
    with _lock:
        _kept.clear()
