"""`while_loop`: a loop as control flow of the program, not unrolled.

    while_loop(cond, body, x)              br ^header
                                  ->   ^header: %p = cond(%x);  cond_br %p, ^body, ^exit
                                       ^body:   %x = move body(%x);  br ^header
                                       ^exit:

The carried value is a nested structure of arrays. `body` keeps its structure, and the dtype and rank of
each array; sizes may change. A carried Python scalar takes the dtype that `body` gives it, for which
`body` is traced once more.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from jitdialects.bytecode.dtypes import DType, promote
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.program import Program
from jitdialects.errors import ArgumentError, DTypeError, ShapeError, TraceError
from jitdialects.frontends.array import Array, unwrapped
from jitdialects.frontends.jit import Argument, as_argument, capture
from jitdialects.frontends.recorder import active_tracer, user_location
from jitdialects.frontends.structure import describe, flatten, unflatten
from jitdialects.frontends.tracer import TracedValue, Tracer
from jitdialects.runtime.vm import VM

T = TypeVar("T")


def while_loop(cond_fun: Callable[[T], object], body_fun: Callable[[T], T], init_val: T) -> T:
    """`while cond_fun(value): value = body_fun(value)`, from `init_val`; the last value.

    Under `jit` it becomes part of the captured program; elsewhere it is captured and run at once.
    Errors: `TraceError` for another structure, `DTypeError` and `ShapeError` for another dtype or rank
    of what `body_fun` returns, or a condition that is not one truth value.
    """
    for name, function in (("cond_fun", cond_fun), ("body_fun", body_fun)):
        if not callable(function):
            raise ArgumentError(
                f"while_loop: {name} must be a function of the carried value, got "
                f"{type(cast(object, function)).__name__}"
            )
    tracer = active_tracer()
    if tracer is None:
        return _run_now(cond_fun, body_fun, init_val)
    assert isinstance(tracer, Tracer)
    return cast(T, _Loop(tracer, cond_fun, body_fun, init_val).emit())


class _Loop:
    """One loop while it is emitted."""

    def __init__(
        self,
        tracer: Tracer,
        cond_fun: Callable[[Any], object],
        body_fun: Callable[[Any], object],
        init: object,
    ) -> None:
        self.tracer = tracer
        self.cond = cond_fun
        self.body = body_fun
        leaves: list[object] = []
        self.structure = flatten(init, leaves)
        self.init = [tracer.lift(unwrapped(x), "while_loop") for x in leaves]

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
            first = _as_dtype(self.tracer, value, dtype)
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
                _joined(k, c, v) for k, (c, v) in enumerate(zip(carried, values, strict=True))
            ]
            self._move(carried, values)
            tracer.emit("br", targets=(header,))
        tracer.retarget(decision, (body, len(tracer.blocks)))
        tracer.open_block("exit")
        return dtypes

    def _condition(self, inside: list[TracedValue]) -> TracedValue:
        result = self.cond(self._tree(inside))
        condition = self.tracer.lift(unwrapped(result), "while_loop: cond_fun")
        if condition.sizes:
            raise ShapeError(
                f"while_loop: cond_fun returned an array of rank {len(condition.sizes)}, needs one "
                "truth value of rank 0; reduce it, for example with max",
                user_location(),
            )
        return condition

    def _next_values(self, inside: list[TracedValue]) -> list[TracedValue]:
        leaves: list[object] = []
        structure = flatten(self.body(self._tree(inside)), leaves)
        if structure != self.structure:
            raise TraceError(
                f"while_loop: body_fun returned the structure {describe(structure)}, the carried "
                f"value has {describe(self.structure)}; return the same structure",
                user_location(),
            )
        return [self.tracer.lift(unwrapped(x), "while_loop: body_fun") for x in leaves]

    def _tree(self, inside: list[TracedValue]) -> object:
        return unflatten(self.structure, iter([Array(v) for v in inside]))

    def _move(self, carried: list[TracedValue], values: list[TracedValue]) -> None:
        """All at once: a value that lives in a carried register is saved before any is written."""
        tracer = self.tracer
        registers = {v.register for v in carried}
        sources: list[int] = []
        for target, value in zip(carried, values, strict=True):
            source = _as_dtype(tracer, value, target.dtype).register
            if source in registers and source != target.register:
                saved = tracer.fresh_value(value.dtype, value.sizes).register
                tracer.emit("move", (saved,), (source,))
                source = saved
            sources.append(source)
        for target, source in zip(carried, sources, strict=True):
            if source != target.register:
                tracer.emit("move", (target.register,), (source,))


def _joined(position: int, carried: TracedValue, value: TracedValue) -> DType:
    """The dtype of carried value `position`, given what `body_fun` returns for it."""
    who = f"while_loop: carried value {position}"
    if len(carried.sizes) != len(value.sizes):
        raise ShapeError(
            f"{who} has rank {len(carried.sizes)}, body_fun returns rank {len(value.sizes)}; start "
            "from an array of that rank, for example with broadcast_to",
            user_location(),
        )
    before, after = carried.dtype, value.dtype
    if before == after:
        return before
    if before.weak and after.weak:
        return promote(before, after, who)
    strong = after if before.weak else before
    if not (before.weak or after.weak) or promote(before, after, who) != strong:
        raise DTypeError(
            f"{who} is {before}, body_fun returns {after}; cast it with astype", user_location()
        )
    return strong


def _as_dtype(tracer: Tracer, value: TracedValue, dtype: DType) -> TracedValue:
    """`value` with the dtype of what it is joined with."""
    if value.dtype == dtype:
        return value
    if not dtype.weak:
        return tracer.record(OPERATORS["cast"], [value], {"dtype": dtype.name})
    zero = tracer.lift(0.0 if dtype.name == "float64" else 0, "while_loop")
    return tracer.record(OPERATORS["add"], [value, zero], {})  # weak + weak stays weak


# ---- outside of a capture ----------------------------------------------------------------------

KEPT_LOOPS = 64
"""Programs of loops that are kept, least recently used dropped first."""
_kept: OrderedDict[bytes, VM] = OrderedDict()
_lock = threading.Lock()


def _run_now(cond_fun: Callable[[T], object], body_fun: Callable[[T], T], init: T) -> T:
    """Capture the loop, with arrays and numbers that the functions use as arguments, and run it.
    Loops of equal programs share a VM, so that a loop in a Python loop gets hot."""
    leaves: list[object] = []
    keywords: dict[str, object] = {}
    structure = flatten(((init,), keywords), leaves)
    arguments: list[Argument] = [as_argument(x, "while_loop") for x in leaves]

    def loop(value: T) -> T:
        return while_loop(cond_fun, body_fun, value)

    captured = capture(loop, "while_loop", structure, arguments, hoist=True)
    return cast(T, captured.run(_vm_for(captured.program), arguments, as_arrays=True))


def _vm_for(program: Program) -> VM:
    """The VM of this program; a new one if it was not seen lately."""
    key = program.to_bytes()
    with _lock:
        if key not in _kept:
            _kept[key] = VM(program)
        _kept.move_to_end(key)
        vm = _kept[key]
        if len(_kept) > KEPT_LOOPS:
            _kept.popitem(last=False)
        return vm


def clear_loops() -> None:
    """Forget the programs of loops."""
    with _lock:
        _kept.clear()
