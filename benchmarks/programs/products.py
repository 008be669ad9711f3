"""Matrix products, with and without what follows them, and the perceptron of three layers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workload import Arguments, Case, Workload, first_rows

LAYERS = 784, 512, 256, 10


def product(xp: Any, x: Any, w: Any) -> Any:
    return x @ w


def _product_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], m: int, k: int, n: int
) -> Arguments:
    return [_scaled(rng, dtype, m, k, 1.0), _scaled(rng, dtype, k, n, k**-0.5)]


def _scaled(rng: np.random.Generator, dtype: np.dtype[Any], m: int, n: int, factor: float) -> Any:
    return (rng.standard_normal((m, n), dtype=np.float32) * factor).astype(dtype)


def _product_numba(nb: Any, case: Case) -> Callable[..., Any]:
    weights = case.weights
    if weights:
        (w,) = weights
        return nb.njit(lambda x: np.dot(x, w))
    return nb.njit(lambda x, w: np.dot(x, w))


def _product_onnx(ort: Any, case: Case) -> Callable[..., Any]:
    from benchmarks.peers.onnx_graph import session

    weights = dict(zip("w", case.weights, strict=False))
    run = session(ort, case, [("MatMul", ["x", "w"], "y", {})], weights, "y").run
    if weights:
        return lambda x: run(None, {"x": x})[0]
    return lambda x, w: run(None, {"x": x, "w": w})[0]


def dense(xp: Any, x: Any, w: Any, b: Any) -> Any:
    return xp.maximum(x @ w + b, 0)


def _dense_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], m: int, k: int, n: int
) -> Arguments:
    return [*_product_inputs(rng, dtype, m, k, n), _scaled(rng, dtype, 1, n, 1.0)[0]]


def _dense_torch(torch: Any, case: Case) -> Callable[..., Any]:
    w, b = (torch.from_numpy(np.ascontiguousarray(a.T)) for a in case.weights)
    linear, relu = torch.nn.functional.linear, torch.relu
    return lambda x: relu(linear(x, w, b))


def _dense_numba(nb: Any, case: Case) -> Callable[..., Any]:
    w, b = case.weights
    zero = case.dtype.type(0)

    @nb.njit(fastmath=True)
    def call(x):
        y = np.dot(x, w)
        for i in range(y.shape[0]):
            for j in range(y.shape[1]):
                y[i, j] = max(y[i, j] + b[j], zero)
        return y

    return call


def _dense_onnx(ort: Any, case: Case) -> Callable[..., Any]:
    from benchmarks.peers.onnx_graph import session

    nodes = [("Gemm", ["x", "w", "b"], "y", {}), ("Relu", ["y"], "z", {})]
    run = session(ort, case, nodes, dict(zip("wb", case.weights, strict=True)), "z").run
    return lambda x: run(None, {"x": x})[0]


# ---- 784-512-256-10, bias, relu, softmax -------------------------------------------------------


def _mlp_inputs(rng: np.random.Generator, dtype: np.dtype[Any], batch: int) -> Arguments:
    weights: Arguments = []  # drawn first, so that they are the same for every batch size
    for k, n in pairwise(LAYERS):
        weights += [_scaled(rng, dtype, k, n, k**-0.5), _scaled(rng, dtype, 1, n, 0.1)[0]]
    return [rng.random((batch, LAYERS[0]), dtype=np.float32).astype(dtype), *weights]


def mlp(xp: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    x = xp.maximum(x @ w1 + b1, 0)
    x = xp.maximum(x @ w2 + b2, 0)
    x = x @ w3 + b3
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def _mlp_torch(torch: Any, case: Case) -> Callable[..., Any]:
    weights = [torch.from_numpy(np.ascontiguousarray(a.T)) for a in case.weights]
    w1, b1, w2, b2, w3, b3 = weights
    linear, relu, last = torch.nn.functional.linear, torch.relu, torch.softmax
    return lambda x: last(linear(relu(linear(relu(linear(x, w1, b1)), w2, b2)), w3, b3), -1)


def _mlp_numba(nb: Any, case: Case) -> Callable[..., Any]:
    w1, b1, w2, b2, w3, b3 = case.weights
    zero = case.dtype.type(0)

    @nb.njit(fastmath=True)
    def layer(x, w, b):
        y = np.dot(x, w)
        for i in range(y.shape[0]):
            for j in range(y.shape[1]):
                y[i, j] = max(y[i, j] + b[j], zero)
        return y

    @nb.njit(fastmath=True)
    def call(x):
        y = np.dot(layer(layer(x, w1, b1), w2, b2), w3)
        for i in range(y.shape[0]):
            row = y[i] + b3
            e = np.exp(row - row.max())
            y[i] = e / e.sum()
        return y

    return call


def _mlp_onnx(ort: Any, case: Case) -> Callable[..., Any]:
    from benchmarks.peers.onnx_graph import session

    weights = dict(zip(("w1", "b1", "w2", "b2", "w3", "b3"), case.weights, strict=True))
    nodes = [
        ("Gemm", ["x", "w1", "b1"], "y1", {}),
        ("Relu", ["y1"], "z1", {}),
        ("Gemm", ["z1", "w2", "b2"], "y2", {}),
        ("Relu", ["y2"], "z2", {}),
        ("Gemm", ["z2", "w3", "b3"], "y3", {}),
        ("Softmax", ["y3"], "z3", {"axis": -1}),
    ]
    run = session(ort, case, nodes, weights, "z3").run
    return lambda x: run(None, {"x": x})[0]


_DENSE = {
    "torch": _dense_torch,
    "torch.compile": _dense_torch,
    "numba": _dense_numba,
    "onnxruntime": _dense_onnx,
}
_MLP = {
    "torch": _mlp_torch,
    "torch.compile": _mlp_torch,
    "numba": _mlp_numba,
    "onnxruntime": _mlp_onnx,
}
_PRODUCT = {"numba": _product_numba, "onnxruntime": _product_onnx}


def _product(weights: int) -> Workload:
    return Workload(
        _product_inputs,
        product,
        lambda *a: product(np, *a),
        2e-5,
        weights,
        pick=first_rows(32),
        special=_PRODUCT,
    )


WORKLOADS = {
    "product": _product(0),
    "product-weights": _product(1),
    "dense": Workload(
        _dense_inputs,
        dense,
        lambda *a: dense(np, *a),
        2e-5,
        2,
        pick=first_rows(32),
        special=_DENSE,
    ),
    "mlp": Workload(_mlp_inputs, mlp, lambda *a: mlp(np, *a), 1e-5, 6, special=_MLP),
}
