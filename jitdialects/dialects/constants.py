"""NumPy arrays and `tssa.constant`: one place that knows how xDSL packs elements into bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from jitdialects.bytecode.dtypes import DType
from jitdialects.dialects.tssa import ConstantOp
from jitdialects.dialects.tssa_types import dtype_of, tensor_type

CONSTANT = "tssa.constant"
"""Attribute of a function's argument that is a constant: its number in the constant pool, i64."""
_TRUE, _PACKED_TRUE = b"\x01", b"\xff"


def constant_op(dtype: DType, value: NDArray[np.generic]) -> ConstantOp:
    """`tssa.constant` with the elements of `value`, bit for bit; `value.dtype` is `dtype.numpy`."""
    tensor: Any = tensor_type(dtype, value.shape)
    data = value.tobytes()
    if dtype.name == "bool":
        data = data.replace(_TRUE, _PACKED_TRUE)
    elements = DenseIntOrFPElementsAttr(tensor, BytesAttr(data))
    return ConstantOp.create(result_types=[tensor], properties={"value": elements})


def constant_array(op: Operation) -> NDArray[np.generic]:
    """The elements of a `tssa.constant`; read-only."""
    value = op.properties["value"]
    assert isinstance(value, DenseIntOrFPElementsAttr)
    dtype = dtype_of(op.results[0]).numpy
    if dtype == np.bool_:
        packed = np.frombuffer(value.data.data, np.uint8)
        return (packed != 0).reshape(tuple(map(int, value.get_shape())))
    return np.frombuffer(value.data.data, dtype).reshape(tuple(map(int, value.get_shape())))
