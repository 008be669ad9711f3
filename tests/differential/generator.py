"""Random valid, typed programs with symbolic sizes, so that one compile serves every length.

A `Case` is a program, the signature of its arguments, and a way to make arguments for given sizes.
The generator keeps, for each register, the dtype and the symbolic shape; it proposes an instruction,
asks the operator table whether it is well formed, and keeps it if so for every size in
`SIZES`. Choices come from a `random.Random`, which may be Hypothesis' (then failures shrink).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from jitdialects.bytecode import dims
from jitdialects.bytecode.attributes import (
    At,
    Attribute,
    Ellipsis,
    IndexSpec,
    Ints,
    NewAxis,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.builder import FunctionBuilder, ProgramBuilder
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.dtypes import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    WEAK_FLOAT,
    WEAK_INT,
    DType,
    integer_range,
    must_fit,
)
from jitdialects.bytecode.operators import OPERATORS, default_attributes
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.errors import Error

SIZES = tuple(
    {"n": n, "m": m} for n, m in ((1, 3), (2, 1), (3, 7), (5, 2), (8, 33), (33, 4), (70, 5))
)
"""Sizes for which a program must be well formed; in between it is, since shapes are monotone."""
MAX_RANK = 3
MAX_ELEMENTS = 20_000
"""Per value, at the largest sizes: the oracle is slow."""


@dataclass(frozen=True)
class Case:
    """A program with arguments that fit it."""

    program: Program
    signature: Signature
    seed: int
    positive: bool = False
    """Only ordinary positive numbers, for programs that would not end on others."""

    def arguments(self, sizes: dict[str, int]) -> list[object]:
        """Arguments of these sizes: ordinary and special values, the same for the same sizes."""
        rng = np.random.default_rng([self.seed, *sizes.values()])
        arguments = [_argument(rng, a, sizes) for a in self.signature.arguments]
        return [_ordinary(rng, a) for a in arguments] if self.positive else arguments

    def is_of_its_signature(self, arguments: Sequence[object]) -> bool:
        """No argument is contiguous that should not be, as arrays without elements always are."""
        return not any(
            kind.strided and isinstance(x, np.ndarray) and x.flags.c_contiguous
            for kind, x in zip(self.signature.arguments, arguments, strict=True)
        )


def _ordinary(rng: np.random.Generator, argument: object) -> object:
    """Numbers of the same kind, between 0.1 and 100; a Python float becomes a tolerance."""
    if isinstance(argument, np.ndarray):
        return rng.uniform(0.1, 100, argument.shape).astype(argument.dtype)
    return 1e-3


def _argument(rng: np.random.Generator, kind: ArgumentType, sizes: dict[str, int]) -> object:
    if kind.dtype == WEAK_FLOAT:
        return float(rng.choice([0.5, -1.25, 0.0, 3e5, 0.1]))
    if kind.dtype == WEAK_INT:
        return int(rng.choice([0, 1, -3, 7]))
    shape = tuple(dims.evaluate(s, sizes) for s in kind.shape)
    if not kind.strided:
        return _data(rng, kind.dtype, shape)
    wide = _data(rng, kind.dtype, (*shape[:-1], 2 * shape[-1]))
    if rng.random() < 0.5 or 1 in shape:  # a transposed row is contiguous
        return wide[..., ::2]
    return _data(rng, kind.dtype, shape[::-1]).T


def _data(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == BOOL:
        return rng.random(shape) < 0.5
    if dtype.is_integer:
        low, high = integer_range(dtype.name)
        small = rng.integers(-70, 70, shape)
        huge = rng.integers(low, high, shape)
        huge = np.where(rng.random(shape) < 0.2, low, huge)
        return np.where(rng.random(shape) < 0.1, huge, small).astype(dtype.numpy)
    kind = dtype.numpy.type
    x = rng.standard_normal(shape).astype(kind)
    x = np.where(rng.random(shape) < 0.1, x * kind(1e30), x)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3.4e38], kind)
    if kind is np.float64:
        special = np.append(special, [5e-324, 1.7e308, 2.0**31, -(2.0**31) - 0.5, 1 + 2.0**-52])
    share = rng.choice([0.0, 0.0, 0.15])  # mostly ordinary data: NaN hides what comes after it
    return np.where(rng.random(shape) < share, rng.choice(special, shape), x)


class SampledFacts:
    """Sizes are equal if they are for every entry of `SIZES`."""

    def require_equal(self, x: Dim, y: Dim, error: Exception) -> Dim:
        """Return `x`, preferring a number."""
        if any(dims.evaluate(x, s) != dims.evaluate(y, s) for s in SIZES):
            raise error
        return y if isinstance(y, int) else x

    def require_at_most(self, x: Dim, y: Dim, error: Exception) -> None:
        """Demand x <= y for every entry."""
        if any(dims.evaluate(x, s) > dims.evaluate(y, s) for s in SIZES):
            raise error

    def is_settled(self, x: Dim) -> bool:
        """Sizes are all there is."""
        return True


@dataclass(frozen=True)
class Known:
    """What is known of a register. `value` is that of a rank-0 integer that may be a size."""

    register: int
    dtype: DType
    shape: Shape
    value: Dim | None = None


@dataclass
class Generator:
    """Emits random instructions into one function."""

    rng: random.Random
    main: FunctionBuilder
    pool: list[Known] = field(default_factory=list[Known])

    def pick(self, accept: Callable[[Known], bool]) -> Known | None:
        """A register that fits, recent ones more often."""
        fitting = [k for k in self.pool if accept(k)]
        if not fitting:
            return None
        recent = self.rng.random() < 0.6
        return (
            fitting[-1 - self.rng.randrange(min(3, len(fitting)))]
            if recent
            else (self.rng.choice(fitting))
        )

    def emit(self, name: str, *operands: Known, **attributes: Attribute) -> Known | None:
        """Emit one instruction if the table accepts it; the new register goes into the pool."""
        operator = OPERATORS[name]
        given = default_attributes(operator) | attributes
        try:
            typing = operator.infer_dtypes([k.dtype for k in operands], given)
            values = [k.value for k in operands]
            shape = operator.infer_shape([k.shape for k in operands], given, values, SampledFacts())
        except Error:
            return None
        if any(
            must_fit(k.dtype, used) and k.value is None
            for k, used in zip(operands, typing.operands, strict=False)
        ):
            return None  # it may not fit
        if len(shape) > MAX_RANK or _elements(shape) > MAX_ELEMENTS:
            return None
        register = self.main.apply(name, *(k.register for k in operands), **attributes)
        value = None
        if name == "size":
            value = operands[0].shape[int(str(given["axis"]))]
        made = Known(register, typing.result, shape, value)
        self.pool.append(made)
        return made

    def constant(self, value: object, dtype: DType | None = None) -> Known:
        """A constant; Python numbers are weak."""
        weak = WEAK_INT if isinstance(value, int) else WEAK_FLOAT
        shape = np.shape(value)
        kind = dtype or (weak if not isinstance(value, np.ndarray) else DType(value.dtype.name))
        known = value if isinstance(value, int) and not isinstance(value, bool) else None
        return Known(self.main.constant(value, dtype), kind, shape, known)

    def step(self) -> None:
        """Try one random instruction."""
        choice = self.rng.choices(list(_STEPS), [w for _, w in _STEPS.values()])[0]
        _STEPS[choice][0](self)


def _elements(shape: Shape) -> int:
    return max(int(np.prod([dims.evaluate(s, e) for s in shape], dtype=np.int64)) for e in SIZES)


# ---- steps ---------------------------------------------------------------------------------------


def _is_float(k: Known) -> bool:
    return k.dtype in (FLOAT32, FLOAT64)


def _unary(g: Generator) -> None:
    x = g.pick(lambda k: True)
    if x is None:
        return
    if _is_float(x):
        g.emit(
            g.rng.choice(["negative", "abs", "sqrt", "exp", "tanh", "erf", "sigmoid", "gelu"]), x
        )
    elif x.dtype.name == "bool":
        g.emit("logical_not", x)
    else:
        g.emit(g.rng.choice(["negative", "abs", "logical_not", "sqrt"]), x)


_ARITHMETIC = ["add", "subtract", "multiply", "multiply", "add", "divide", "minimum", "maximum"]
_COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]


def _binary(g: Generator) -> None:
    x, y = g.pick(lambda k: True), g.pick(lambda k: True)
    if x is None or y is None:
        return
    if g.rng.random() < 0.25:
        y = g.constant(
            g.rng.choice([0.5, -2.0, 1e-3, 0.0]) if _is_float(x) else g.rng.randint(-3, 3)
        )
    if g.rng.random() < 0.3:
        x, y = y, x
    names = _ARITHMETIC if g.rng.random() < 0.75 else _COMPARISONS
    if x.dtype.name == y.dtype.name == "bool":
        names = ["logical_and", "logical_or", "add", "multiply", "maximum", *_COMPARISONS]
    if x.dtype.is_integer and y.dtype.is_integer and g.rng.random() < 0.3:
        names = ["left_shift", "right_shift"]
    g.emit(g.rng.choice(names), x, y)


def _where(g: Generator) -> None:
    c = g.pick(lambda k: k.dtype == BOOL) or g.pick(lambda k: True)
    x = g.pick(_is_float) or g.pick(lambda k: True)
    y = g.pick(lambda k: x is not None and k.dtype == x.dtype)
    if c and x and y:
        g.emit("where", c, x, y)


def _cast(g: Generator) -> None:
    if x := g.pick(lambda k: True):
        g.emit("cast", x, dtype=g.rng.choice(["float32", "float64", "int32", "int64", "bool"]))


def _reduce(g: Generator) -> None:
    if x := g.pick(lambda k: len(k.shape) > 0):
        axis: Attribute = g.rng.choice([-1, -1, 0, None])
        if g.rng.random() < 0.2:
            axis = Ints(tuple(a for a in range(len(x.shape)) if g.rng.random() < 0.6))
        keep = g.rng.random() < 0.5
        g.emit(g.rng.choice(["sum", "sum", "max", "min"]), x, axis=axis, keepdims=keep)


def _matmul(g: Generator) -> None:
    x = g.pick(lambda k: 1 <= len(k.shape) <= 2 and k.dtype != BOOL)
    if x is None:
        return
    y = g.pick(
        lambda k: 1 <= len(k.shape) <= 2 and k.dtype == x.dtype and k.shape[0] == x.shape[-1]
    )
    if y is not None:
        g.emit("matmul", x, y)


def _transpose(g: Generator) -> None:
    if x := g.pick(lambda k: len(k.shape) > 1):
        axes = list(range(len(x.shape)))
        g.rng.shuffle(axes)
        g.emit("transpose", x, axes=None if g.rng.random() < 0.5 else Ints(tuple(axes)))


def _getitem(g: Generator) -> None:
    if x := g.pick(lambda k: len(k.shape) > 0):
        g.emit("getitem", x, index=_random_index(g.rng, len(x.shape)))


def _setitem(g: Generator) -> None:
    x = g.pick(lambda k: len(k.shape) > 0)
    y = g.pick(lambda k: x is not None and k.dtype == x.dtype)
    if x and y:
        value = y if g.rng.random() < 0.5 else g.constant(g.rng.choice([1, 0, -5]))
        g.emit("setitem", x, value, index=_random_index(g.rng, len(x.shape)))


def _random_index(rng: random.Random, rank: int) -> IndexSpec:
    entries = [
        rng.choice(
            [
                Slice(),
                Slice(1),
                Slice(None, -1),
                Slice(None, None, 2),
                Slice(1, 40, 3),
                Slice(None, None, -1),
                Slice(-2, 0, -2),
                At(0),
            ]
        )
        for _ in range(rng.randint(1, rank))
    ]
    if rng.random() < 0.3:
        entries.insert(rng.randint(0, len(entries)), Ellipsis())
    if rng.random() < 0.2:
        entries.insert(rng.randint(0, len(entries)), NewAxis())
    return IndexSpec(tuple(entries))


def _reshape(g: Generator) -> None:
    x = g.pick(lambda k: True)
    if x is None:
        return
    if g.rng.random() < 0.5 or not x.shape:
        g.emit("reshape", x, shape=ShapeSpec(g.rng.choice([(-1,), (1, -1), (-1, 1)])))
        return
    size = g.emit("size", x, axis=len(x.shape) - 1)
    if size is not None:
        g.emit("reshape", x, size, shape=ShapeSpec((-1, OperandRef(1))))


def _broadcast(g: Generator) -> None:
    x, like = g.pick(lambda k: True), g.pick(lambda k: 0 < len(k.shape) < 3)
    if x is None or like is None:
        return
    sizes = [g.emit("size", like, axis=a) for a in range(len(like.shape))]
    references = tuple(OperandRef(1 + a) for a in range(len(sizes)))
    extra = (2, *references) if g.rng.random() < 0.3 else references
    g.emit("broadcast_to", x, *(s for s in sizes if s), shape=ShapeSpec(extra))


def _branch(g: Generator) -> None:
    """if sum(x) > 0: y = a * 2 else: y = tanh(a)"""
    a = g.pick(_is_float)
    x = g.pick(lambda k: _is_float(k) and len(k.shape) > 0)
    if a is None or x is None:
        return
    main = g.main
    condition = main.apply("greater", main.apply("sum", x.register), main.constant(0.0))
    result = main.register()
    blocks = [main.block(f"{name}{main.registers}") for name in ("then", "else", "join")]
    main.branch_if(condition, blocks[0], blocks[1])
    main.enter(blocks[0])
    main.apply("multiply", a.register, main.constant(2.0), into=result)
    main.branch(blocks[2])
    main.enter(blocks[1])
    main.apply("tanh", a.register, into=result)
    main.branch(blocks[2])
    main.enter(blocks[2])
    g.pool.append(Known(result, a.dtype, a.shape))


def _loop(g: Generator) -> None:
    """for i in range(count): y = y * 0.5 + x"""
    x = g.pick(_is_float)
    if x is None:
        return
    main = g.main
    y, i = main.move(x.register), main.constant(0)
    head, body, done = (main.block(f"{n}{main.registers}") for n in ("head", "body", "done"))
    count = main.constant(g.rng.randint(0, 4))
    main.branch(head)
    main.enter(head)
    main.branch_if(main.apply("less", i, count), body, done)
    main.enter(body)
    half = main.apply("multiply", y, main.constant(0.5))
    main.apply("add", half, x.register, into=y)
    main.apply("add", i, main.constant(1), into=i)
    main.branch(head)
    main.enter(done)
    g.pool.append(Known(y, x.dtype, x.shape))


def _normalise(g: Generator) -> None:
    """Something of each row of x, used on the row itself: what a group over rows is made of."""
    x = g.pick(lambda k: len(k.shape) > 0 and k.dtype.name != "bool")
    if x is None:
        return
    row = g.emit(g.rng.choice(["max", "min", "sum", "mean"]), x, axis=-1, keepdims=True)
    y = row and g.emit(g.rng.choice(["subtract", "add", "maximum"]), x, row)
    if y is None:
        return
    z = g.emit(g.rng.choice(["exp", "tanh", "abs"] if _is_float(y) else ["abs"]), y)
    total = z and g.emit(g.rng.choice(["sum", "max"]), z, axis=-1, keepdims=True)
    if z and total:
        g.emit(g.rng.choice(["divide", "multiply", "add"]), g.rng.choice([x, y, z]), total)


def _columns(g: Generator) -> None:
    """Something of each column, of elements that are computed for it, and what follows from it."""
    x, y = g.pick(lambda k: len(k.shape) > 1), g.pick(lambda k: len(k.shape) > 0)
    if x is None or y is None:
        return
    z = g.emit(g.rng.choice(["subtract", "multiply", "maximum"]), x, y) or x
    z = g.emit("abs", z) if g.rng.random() < 0.5 and z.dtype != BOOL else z
    axis: Attribute = g.rng.choice([0, 0, -2, Ints((0, 1))])
    keep = g.rng.random() < 0.5
    for _ in range(g.rng.randint(1, 2)):
        folded = z and g.emit(
            g.rng.choice(["sum", "max", "min", "mean"]), z, axis=axis, keepdims=keep
        )
        if folded and g.rng.random() < 0.5:
            g.emit(g.rng.choice(["add", "multiply", "subtract"]), g.rng.choice([folded, x]), folded)


def _fan(g: Generator) -> None:
    """Two readers of one value, and one of both: a value that is shared."""
    x = g.pick(_is_float)
    if x is None:
        return
    left = g.emit(g.rng.choice(["exp", "abs", "negative", "sqrt"]), x)
    right = g.emit("multiply", x, x)
    if left and right and g.rng.random() < 0.7:
        g.emit(g.rng.choice(["add", "multiply", "minimum"]), left, right)


_STEPS: dict[str, tuple[Callable[[Generator], None], float]] = {
    "unary": (_unary, 3),
    "binary": (_binary, 6),
    "where": (_where, 1),
    "cast": (_cast, 1),
    "reduce": (_reduce, 1.5),
    "matmul": (_matmul, 1.5),
    "normalise": (_normalise, 0.8),
    "columns": (_columns, 0.8),
    "fan": (_fan, 0.8),
    "transpose": (_transpose, 0.6),
    "getitem": (_getitem, 0.8),
    "setitem": (_setitem, 0.6),
    "reshape": (_reshape, 0.6),
    "broadcast": (_broadcast, 0.6),
    "branch": (_branch, 0.3),
    "loop": (_loop, 0.3),
}

N, M = dims.symbol("n"), dims.symbol("m")
_KINDS = (
    ArgumentType(FLOAT32, (N,)),
    ArgumentType(FLOAT32, (N, M)),
    ArgumentType(FLOAT32, (M, N)),
    ArgumentType(FLOAT32, (M,)),
    ArgumentType(FLOAT32, (N, 1)),
    ArgumentType(FLOAT32, ()),
    ArgumentType(FLOAT32, (M, 4)),
    ArgumentType(FLOAT32, (N, M), strided=True),
    ArgumentType(FLOAT64, (N,)),
    ArgumentType(FLOAT64, (N, M)),
    ArgumentType(FLOAT64, (M, N), strided=True),
    ArgumentType(INT32, (N,)),
    ArgumentType(INT32, (M,)),
    ArgumentType(INT64, (N,)),
    ArgumentType(INT64, (N, M)),
    ArgumentType(BOOL, (N,)),
    ArgumentType(BOOL, (M,)),
    ArgumentType(WEAK_FLOAT, ()),
    ArgumentType(WEAK_INT, ()),
)


def generate(rng: random.Random, instructions: int = 10) -> Case:
    """A random case with about `instructions` operators and one to three results."""
    builder = ProgramBuilder()
    kinds = [_KINDS[0], *rng.choices(_KINDS, k=rng.randint(1, 3))]
    main = builder.function("main", len(kinds))
    arguments = [Known(r, k.dtype, k.shape) for r, k in zip(main.parameters, kinds, strict=True)]
    generator = Generator(rng, main, list(arguments))
    for _ in range(instructions):
        generator.step()
    made = [k for k in generator.pool if not k.dtype.weak and k.value is None] or arguments[:1]
    results = made[-1:] + rng.choices(made, k=rng.randint(0, 2))
    main.returns(*(k.register for k in results))
    signature = Signature("main", tuple(kinds))
    return Case(builder.finish(), signature, rng.randrange(2**31))


def cases(seed: int, count: int) -> Sequence[Case]:
    """`count` cases that depend on `seed` only."""
    return [generate(random.Random(seed * 1000 + i), 4 + i % 12) for i in range(count)]
