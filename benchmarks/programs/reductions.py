"""Reductions over an axis, and the row-wise programs made of them: softmax and layer norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workload import Arguments, Case, Workload, first_rows

EPSILON = 1e-5


def _matrix(rng: np.random.Generator, dtype: np.dtype[Any], rows: int, columns: int) -> Arguments:
    return [rng.standard_normal((rows, columns)).astype(dtype)]


# ---- softmax -----------------------------------------------------------------------------------


def softmax(xp: Any, x: Any) -> Any:
    powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)


def _softmax_torch(torch: Any, case: Case) -> Callable[..., Any]:
    return lambda x: torch.softmax(x, -1)


def _softmax_numba(nb: Any, case: Case) -> Callable[..., Any]:
    zero, one, low = map(case.dtype.type, (0, 1, -np.inf))

    @nb.njit(parallel=case.threads > 1, fastmath={"reassoc", "contract", "nnan"})
    def loops(x):
        out = np.empty_like(x)
        for i in nb.prange(x.shape[0]):
            top = low
            for j in range(x.shape[1]):
                top = max(top, x[i, j])
            total = zero
            for j in range(x.shape[1]):
                out[i, j] = math.exp(x[i, j] - top)
                total += out[i, j]
            factor = one / total
            for j in range(x.shape[1]):
                out[i, j] *= factor
        return out

    return loops


def _softmax_onnx(ort: Any, case: Case) -> Callable[..., Any]:
    from benchmarks.peers.onnx_graph import session

    run = session(ort, case, [("Softmax", ["x"], "y", {"axis": -1})], {}, "y").run
    return lambda x: run(None, {"x": x})[0]


# ---- layer norm --------------------------------------------------------------------------------


def _norm_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], rows: int, columns: int
) -> Arguments:
    (x,) = _matrix(rng, dtype, rows, columns)
    return [x, *(rng.uniform(0.5, 1.5, columns).astype(dtype) for _ in range(2))]


def layer_norm(xp: Any, x: Any, gain: Any, bias: Any) -> Any:
    mean = xp.mean(x, axis=-1, keepdims=True)
    variance = xp.var(x, axis=-1, keepdims=True)
    return (x - mean) / xp.sqrt(variance + EPSILON) * gain + bias


def _norm_torch(torch: Any, case: Case) -> Callable[..., Any]:
    shape, eps = case.arguments[1].shape, EPSILON
    norm = torch.nn.functional.layer_norm
    return lambda x, gain, bias: norm(x, shape, gain, bias, eps)


def _norm_numba(nb: Any, case: Case) -> Callable[..., Any]:
    zero, one, eps = map(case.dtype.type, (0, 1, EPSILON))
    count = case.dtype.type(case.arguments[1].size)

    @nb.njit(parallel=case.threads > 1, fastmath=True, error_model="numpy")
    def loops(x, gain, bias):
        out = np.empty_like(x)
        for i in nb.prange(x.shape[0]):
            total = zero
            for j in range(x.shape[1]):
                total += x[i, j]
            mean = total / count
            total = zero
            for j in range(x.shape[1]):
                total += (x[i, j] - mean) * (x[i, j] - mean)
            factor = one / math.sqrt(total / count + eps)
            for j in range(x.shape[1]):
                out[i, j] = (x[i, j] - mean) * factor * gain[j] + bias[j]
        return out

    return loops


def _norm_onnx(ort: Any, case: Case) -> Callable[..., Any]:
    from benchmarks.peers.onnx_graph import session

    _, gain, bias = case.arguments
    node = ("LayerNormalization", ["x", "gain", "bias"], "y", {"axis": -1, "epsilon": EPSILON})
    run = session(ort, case, [node], {"gain": gain, "bias": bias}, "y").run
    return lambda x, gain, bias: run(None, {"x": x})[0]


# ---- sum and max over one axis -----------------------------------------------------------------


def _reduce(name: str, axis: int) -> Callable[..., Any]:
    def program(xp: Any, x: Any) -> Any:
        return getattr(xp, name)(x, axis=axis)

    return program


def _step(nb: Any, name: str) -> Callable[..., Any]:
    if name == "sum":
        return nb.njit(lambda total, value: total + value, fastmath=True)
    return nb.njit(lambda total, value: max(total, value), fastmath=True)


def _rows_numba(name: str) -> Callable[..., Any]:
    """Over axis 1: one total a row."""

    def make(nb: Any, case: Case) -> Callable[..., Any]:
        start = case.dtype.type(0 if name == "sum" else -np.inf)

        step = _step(nb, name)

        @nb.njit(parallel=case.threads > 1, fastmath={"reassoc", "contract", "nnan", "nsz"})
        def loops(x):
            out = np.empty(x.shape[0], x.dtype)
            for i in nb.prange(x.shape[0]):
                total = start
                for j in range(x.shape[1]):
                    total = step(total, x[i, j])
                out[i] = total
            return out

        return loops

    return make


def _columns_numba(name: str) -> Callable[..., Any]:
    """Over axis 0: rows are added to a row of totals, a block of columns after the other."""

    def make(nb: Any, case: Case) -> Callable[..., Any]:
        start = case.dtype.type(0 if name == "sum" else -np.inf)
        block = 2048

        step = _step(nb, name)

        @nb.njit(parallel=case.threads > 1, fastmath={"reassoc", "contract", "nnan", "nsz"})
        def loops(x):
            out = np.full(x.shape[1], start, x.dtype)
            for part in nb.prange((x.shape[1] + block - 1) // block):
                last = min(x.shape[1], (part + 1) * block)
                for i in range(x.shape[0]):
                    for j in range(part * block, last):
                        out[j] = step(out[j], x[i, j])
            return out

        return loops

    return make


def _reduction(name: str, axis: int) -> Workload:
    numba = _columns_numba(name) if axis == 0 else _rows_numba(name)
    program = _reduce(name, axis)
    return Workload(_matrix, program, lambda x: program(np, x), 1e-4, special={"numba": numba})


WORKLOADS = {
    "softmax": Workload(
        _matrix,
        softmax,
        lambda x: softmax(np, x),
        2e-6,
        pick=first_rows(64),
        special={
            "torch": _softmax_torch,
            "torch.compile": _softmax_torch,
            "numba": _softmax_numba,
            "onnxruntime": _softmax_onnx,
        },
    ),
    "layer-norm": Workload(
        _norm_inputs,
        layer_norm,
        lambda *a: layer_norm(np, *a),
        1e-5,
        pick=first_rows(64),
        special={
            "torch": _norm_torch,
            "torch.compile": _norm_torch,
            "numba": _norm_numba,
            "onnxruntime": _norm_onnx,
        },
    ),
    **{f"{name}-axis-{axis}": _reduction(name, axis) for name in ("sum", "max") for axis in (0, 1)},
}
