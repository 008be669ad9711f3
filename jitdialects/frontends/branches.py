"""`cond` and `switch`: a choice as control flow of the program; one of the functions runs.

    cond(p, f, g, x)    ->      cond_br %p, ^f, ^g
                            ^f: %r = move f(%x);  br ^join
                            ^g: %r = move g(%x);  br ^join
                            ^join:

All functions are captured and return one structure, each leaf of one rank and dtype; a Python scalar
takes the dtype that another function gives in its place. Sizes may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from jitdialects.bytecode.attributes import Ints
from jitdialects.bytecode.dtypes import WEAK_INT, DType
from jitdialects.errors import ArgumentError, ShapeError, TraceError
from jitdialects.frontends.array import Array, apply, unwrapped
from jitdialects.frontends.control import as_dtype, check_functions, joined, run_now, traced_here
from jitdialects.frontends.recorder import user_location
from jitdialects.frontends.structure import Structure, describe, flatten, leaf_names, unflatten
from jitdialects.frontends.tracer import TracedValue, Tracer

T = TypeVar("T")


def cond(
    pred: object, true_fun: Callable[..., T], false_fun: Callable[..., T], *operands: Any
) -> T:
    """`true_fun(*operands)` where `pred`, one truth value, is not zero, else `false_fun(*operands)`.

    Under `jit` it becomes part of the captured program; elsewhere it is captured and run at once.
    Errors: `TraceError`, `DTypeError`, `ShapeError` where the functions return different structures,
    dtypes or ranks, or where `pred` is no single truth value.
    """
    who = "cond"
    check_functions(who, "the operands", true_fun=true_fun, false_fun=false_fun)
    tracer = traced_here()
    if tracer is None:

        def again(pred: object, operands: tuple[object, ...]) -> object:
            return cond(pred, true_fun, false_fun, *operands)

        return cast(T, run_now(who, again, pred, operands))
    selector = _rank_0(tracer, pred, who)
    branches = _Branches(tracer, who, (true_fun, false_fun), operands)
    return cast(T, branches.emit(selector, "cond_br"))


def switch(index: object, branches: Sequence[Callable[..., T]], *operands: Any) -> T:
    """`branches[index](*operands)`, `index` an integer that is clamped to the numbers of the functions.

    Errors are those of `cond`.
    """
    who = "switch"
    functions = tuple(branches)
    if not functions:
        raise ArgumentError("switch: branches is empty; give at least one function")
    named: dict[str, object] = {f"branches[{k}]": f for k, f in enumerate(functions)}
    check_functions(who, "the operands", **named)
    tracer = traced_here()
    if tracer is None:

        def again(index: object, operands: tuple[object, ...]) -> object:
            return switch(index, functions, *operands)

        return cast(T, run_now(who, again, index, operands))
    selector = _rank_0(tracer, index, who)
    if selector.dtype.numpy.kind != "i":
        raise ArgumentError(f"switch: index must be an integer, got {selector.dtype}; cast it")
    wide = Array(selector) if selector.dtype.name == "int64" else Array(selector).astype("int64")
    zero = Array(tracer.constant(np.asarray(0, np.int64), WEAK_INT))
    clamped = tracer.lift(unwrapped(apply("maximum", wide, zero)), who)
    return cast(T, _Branches(tracer, who, functions, operands).emit(clamped, "switch"))


def _rank_0(tracer: Tracer, value: object, who: str) -> TracedValue:
    selector = tracer.lift(unwrapped(value), who)
    if selector.sizes:
        raise ShapeError(
            f"{who}: the choice is an array of rank {len(selector.sizes)}, needs one value of rank "
            "0; use jnp.where to choose element by element, or reduce it",
            user_location(),
        )
    return selector


class _Branches:
    """One choice while it is emitted."""

    def __init__(
        self,
        tracer: Tracer,
        who: str,
        functions: Sequence[Callable[..., object]],
        operands: Sequence[object],
    ) -> None:
        self.tracer = tracer
        self.who = who
        self.functions = functions
        self.operands = operands
        self.structure: Structure | None = None
        self.results: list[TracedValue] = []

    def emit(self, selector: TracedValue, opcode: str) -> object:
        """Emit the branches and the block where they meet; the result."""
        wanted: list[DType] | None = None
        while True:
            mark = self.tracer.mark()
            given = self._blocks(selector, opcode, wanted)
            names = leaf_names(cast(Structure, self.structure))
            dtypes = [self._joined(n, [row[k] for row in given]) for k, n in enumerate(names)]
            if all(v.dtype == d for row in given for v, d in zip(row, dtypes, strict=True)):
                break
            self.tracer.undo(mark)  # a weak value meets a strong one: capture once more
            wanted = dtypes
        assert self.structure is not None
        found = [
            TracedValue(self.tracer, v.register, d, self.tracer.unknown_sizes(len(v.sizes)))
            for v, d in zip(self.results, dtypes, strict=True)
        ]
        return unflatten(self.structure, iter([Array(v) for v in found]))

    def _joined(self, name: str, values: Sequence[TracedValue]) -> DType:
        """The dtype of a result, given what each function returns for it."""
        carried = values[0]
        for value in values[1:]:
            if joined(f"{self.who}: result {name}", carried, value) != carried.dtype:
                carried = value
        return carried.dtype

    def _blocks(
        self, selector: TracedValue, opcode: str, wanted: Sequence[DType] | None
    ) -> list[list[TracedValue]]:
        """The decision, one block or more for each function, and the block after them; what the
        functions give."""
        tracer = self.tracer
        count = len(self.functions)
        attributes = {"cases": Ints(tuple(range(count - 1)))} if opcode == "switch" else {}
        decision = len(tracer.blocks) - 1
        tracer.emit(opcode, (), (selector.register,), attributes, (0,) * count)
        given: list[list[TracedValue]] = []
        starts: list[int] = []
        ends: list[int] = []
        for function in self.functions:
            starts.append(tracer.open_block("branch"))
            with tracer.scope():
                values = self._leaves(function)
                if wanted is not None:
                    values = [as_dtype(tracer, v, d) for v, d in zip(values, wanted, strict=True)]
                if not given:
                    outer = tracer.scopes.pop()
                    self.results = [tracer.fresh_value(v.dtype, v.sizes) for v in values]
                    tracer.scopes.append(outer)
                for target, value in zip(self.results, values, strict=True):
                    tracer.emit("move", (target.register,), (value.register,))
                tracer.emit("br", targets=(0,))
            given.append(values)
            ends.append(len(tracer.blocks) - 1)
        tracer.retarget(decision, tuple(starts))
        join = tracer.open_block("join")
        for block in ends:
            tracer.retarget(block, (join,))
        return given

    def _leaves(self, function: Callable[..., object]) -> list[TracedValue]:
        leaves: list[object] = []
        structure = flatten(function(*self.operands), leaves)
        if function is self.functions[0]:
            self.structure = structure
        elif structure != self.structure:
            raise TraceError(
                f"{self.who}: one function returned the structure "
                f"{describe(cast(Structure, self.structure))}, another {describe(structure)}; return "
                "the same structure",
                user_location(),
            )
        return [self.tracer.lift(unwrapped(x), self.who) for x in leaves]
