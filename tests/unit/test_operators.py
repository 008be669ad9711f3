"""The operator table against NumPy: promotion, broadcasting, shapes, indexing, refusals."""

from itertools import product

import numpy as np
import pytest

from jitdialects.bytecode import dims
from jitdialects.bytecode.attributes import (
    At,
    Ellipsis,
    IndexSpec,
    Ints,
    NewAxis,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.dtypes import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    SUPPORTED,
    WEAK_BOOL,
    WEAK_FLOAT,
    WEAK_INT,
    DType,
)
from jitdialects.bytecode.operators import ELEMENTARY, OPERATORS, Kind, Operator
from jitdialects.bytecode.shape_rules import ConcreteFacts
from jitdialects.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError

FACTS = ConcreteFacts()
SAMPLE: dict[DType, object] = {
    BOOL: np.ones(2, bool),
    INT32: np.ones(2, np.int32),
    INT64: np.ones(2, np.int64),
    FLOAT32: np.ones(2, np.float32),
    FLOAT64: np.ones(2, np.float64),
    WEAK_BOOL: True,
    WEAK_INT: 1,
    WEAK_FLOAT: 1.0,
}
TABLE_ONLY = {"cast", "where", *ELEMENTARY} - {"exp", "tanh", "log"}
"""Not a NumPy ufunc of the same name."""


def numpy_function(operator: Operator) -> np.ufunc:
    return getattr(np, operator.name)


@pytest.mark.parametrize(
    "operator",
    [o for o in OPERATORS.values() if o.kind is Kind.ELEMENTWISE and o.name not in TABLE_ONLY],
    ids=lambda o: o.name,
)
def test_dtypes_agree_with_numpy_or_are_refused(operator: Operator) -> None:
    for dtypes in product(SAMPLE, repeat=operator.arity):
        if all(d.weak for d in dtypes):
            continue  # Python scalars among themselves are Python's business
        try:
            expected = numpy_function(operator)(*(SAMPLE[d] for d in dtypes)).dtype.name
        except TypeError:
            expected = "refused"
        try:
            result = operator.infer_dtypes(dtypes, {}).result.name
        except DTypeError as error:
            assert expected not in SUPPORTED, str(error)
            continue
        assert result == expected, (operator.name, dtypes)


SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (0,), (4,)]


@pytest.mark.parametrize("shapes", list(product(SHAPES, repeat=2)))
def test_broadcasting_agrees_with_numpy(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            OPERATORS["add"].infer_shape(shapes, {}, (None, None), FACTS)
        return
    assert OPERATORS["add"].infer_shape(shapes, {}, (None, None), FACTS) == expected


INDICES: list[tuple[IndexSpec, object]] = [
    (IndexSpec((At(0),)), np.s_[0]),
    (IndexSpec((At(-1), Slice(1, None))), np.s_[-1, 1:]),
    (IndexSpec((Slice(None, None, 2), Slice(-2, None))), np.s_[::2, -2:]),
    (IndexSpec((Ellipsis(), Slice(5, 2))), np.s_[..., 5:2]),
    (IndexSpec((NewAxis(), Ellipsis(), NewAxis())), np.s_[None, ..., None]),
    (IndexSpec((Slice(0, 100, 3), NewAxis(), At(2))), np.s_[0:100:3, None, 2]),
    (IndexSpec(()), np.s_[()]),
]


@pytest.mark.parametrize(("spec", "index"), INDICES, ids=lambda i: str(i))
def test_getitem_shape_agrees_with_numpy(spec: IndexSpec, index: object) -> None:
    x = np.zeros((5, 6))
    shape = OPERATORS["getitem"].infer_shape((x.shape,), {"index": spec}, (None,), FACTS)
    assert shape == x[index].shape


def test_symbolic_slice_is_the_concrete_one() -> None:
    n = dims.symbol("n")
    spec = IndexSpec((Slice(1, -2, 3),))
    (size,) = OPERATORS["getitem"].infer_shape(((n,),), {"index": spec}, (None,), _Anything())
    for value in range(12):
        assert dims.evaluate(size, {"n": value}) == len(range(value)[1:-2:3])


class _Anything:
    def require_equal(self, x: dims.Dim, y: dims.Dim, error: Exception) -> dims.Dim:
        return x

    def require_at_most(self, x: dims.Dim, y: dims.Dim, error: Exception) -> None:
        pass

    def is_settled(self, x: dims.Dim) -> bool:
        return True


def test_reshape_fills_the_hole_and_stays_affine() -> None:
    n = dims.symbol("n")
    infer = OPERATORS["reshape"].infer_shape
    hole = {"shape": ShapeSpec((-1, 8))}
    assert infer(((n, 8),), hole, (None,), _Anything()) == (n, 8)
    assert infer(((6, 4),), hole, (None,), FACTS) == (3, 8)


def test_reshape_with_a_hole_demands_sizes_that_determine_it() -> None:
    demands: list[tuple[dims.Dim, dims.Dim]] = []

    class Facts(_Anything):
        def require_at_most(self, x: dims.Dim, y: dims.Dim, error: Exception) -> None:
            demands.append((x, y))

    size = dims.sub(dims.symbol("n"), 1)  # 0 for n = 1, where NumPy refuses
    OPERATORS["reshape"].infer_shape(
        ((4, size), ()), {"shape": ShapeSpec((-1, OperandRef(1)))}, (None, size), Facts()
    )
    assert (1, size) in demands


REFUSALS = [
    ("reshape", ((6,),), {"shape": ShapeSpec((4,))}, ShapeError, "as many elements"),
    ("reshape", ((6,),), {"shape": ShapeSpec((-1, -1))}, ShapeError, "at most one"),
    ("reshape", ((0,),), {"shape": ShapeSpec((-1, 0))}, ShapeError, "as many elements"),
    ("reshape", ((6,),), {"shape": ShapeSpec((-2, 3))}, ShapeError, "as many elements"),
    ("broadcast_to", ((3,),), {"shape": ShapeSpec((4,))}, ShapeError, "does not broadcast"),
    ("broadcast_to", ((3, 3),), {"shape": ShapeSpec((3,))}, ShapeError, "does not broadcast"),
    ("transpose", ((3, 4),), {"axes": Ints((0, 0))}, ShapeError, "not a permutation"),
    ("sum", ((3, 4),), {"axis": 2}, ShapeError, "out of range"),
    ("sum", ((),), {"axis": -1}, ShapeError, "out of range"),
    ("max", ((3, 0),), {"axis": -1}, ShapeError, "has no value"),
    ("matmul", ((3, 4), (5, 6)), {}, ShapeError, "inner sizes differ"),
    ("matmul", ((), (5,)), {}, ShapeError, "rank 1 or 2"),
    ("matmul", ((2, 3, 4), (4, 5)), {}, ShapeError, "rank 1 or 2"),
    ("getitem", ((3,),), {"index": IndexSpec((At(3),))}, OutOfBoundsError, "out of range"),
    ("getitem", ((3,),), {"index": IndexSpec((At(-4),))}, OutOfBoundsError, "out of range"),
    ("getitem", ((3,),), {"index": IndexSpec((At(0), At(0)))}, OutOfBoundsError, "2 indices"),
    ("setitem", ((3,), (4,)), {"index": IndexSpec((Slice(),))}, ShapeError, "does not broadcast"),
    ("size", ((3,),), {"axis": 1}, ShapeError, "out of range"),
]


@pytest.mark.parametrize(("name", "shapes", "attributes", "error", "text"), REFUSALS)
def test_shape_refusals(name, shapes, attributes, error, text) -> None:
    with pytest.raises(error, match=text):
        OPERATORS[name].infer_shape(shapes, attributes, (None,) * len(shapes), FACTS)


def test_operand_counts_are_checked() -> None:
    with pytest.raises(ArgumentError, match="add takes 2 operand"):
        OPERATORS["add"].infer_dtypes([FLOAT32], {})
    with pytest.raises(DTypeError, match="must be an integer"):
        OPERATORS["reshape"].infer_dtypes([FLOAT32, FLOAT32], {})


@pytest.mark.parametrize("dtype", SUPPORTED)
def test_every_cast_among_supported_dtypes(dtype: str) -> None:
    for source in SUPPORTED:
        typing = OPERATORS["cast"].infer_dtypes([DType(source)], {"dtype": dtype})
        assert typing.result == DType(dtype)
    with pytest.raises(DTypeError, match="float16 is not supported"):
        OPERATORS["cast"].infer_dtypes([DType(dtype)], {"dtype": "float16"})
