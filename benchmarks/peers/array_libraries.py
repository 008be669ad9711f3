"""Peers with an array namespace: NumPy, PyTorch, JAX, MindSpore. They run the program's own text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.peer import Namespace, Peer, bound, python_while
from benchmarks.workload import Array, Case, Unsupported


class NumPy(Peer):
    """NumPy; erf is SciPy's."""

    name = "numpy"
    compiles = False

    def program(self, case: Case) -> Callable[..., Any]:
        """The text as it is."""
        namespace = Namespace(np, erf=_scipy_erf, while_loop=python_while, scan=_numpy_scan)
        return bound(case.workload.program, namespace, case.weights)


def _scipy_erf(x: Any) -> Any:
    try:
        from scipy.special import erf
    except ImportError:
        raise Unsupported("NumPy has no erf, and SciPy is not installed") from None
    return erf(x)


def _numpy_scan(step: Callable[..., Any], state: Any, rows: Any) -> Any:
    out = np.empty_like(rows)
    for index, row in enumerate(rows):
        state, out[index] = step(state, row)
    return state, out


class Torch(Peer):
    """PyTorch, eager, without autograd."""

    name = "torch"
    compiles = False

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch: Any = torch

    def library(self) -> Any:
        """The module."""
        return self.torch

    def array(self, x: Any) -> Any:
        """A tensor on the array's memory."""
        return self.torch.from_numpy(x) if isinstance(x, np.ndarray) else x

    def back(self, result: Any) -> Array:
        """An array on the tensor's memory."""
        return result.numpy()

    def namespace(self) -> Namespace:
        """Torch under NumPy's names."""
        torch = self.torch
        return Namespace(
            torch,
            max=lambda x, axis=None, keepdims=False: (
                torch.amax(x) if axis is None else torch.amax(x, axis, keepdims)
            ),
            mean=lambda x, axis, keepdims=False: torch.mean(x, axis, keepdims),
            sum=lambda x, axis, keepdims=False: torch.sum(x, axis, keepdims),
            maximum=lambda x, y: torch.relu(x) if y == 0 else torch.clamp(x, min=y),
            minimum=lambda x, y: torch.clamp(x, max=y),
            while_loop=python_while,
            scan=self._scan,
        )

    def _scan(self, step: Callable[..., Any], state: Any, rows: Any) -> Any:
        out = []
        for row in rows:
            state, y = step(state, row)
            out.append(y)
        return state, self.torch.stack(out)

    def program(self, case: Case) -> Callable[..., Any]:
        """The text over torch, operator by operator."""
        weights = [self.array(w) for w in case.weights]
        return bound(case.workload.program, self.namespace(), weights)


class TorchCompile(Torch):
    """`torch.compile`; of a loop over data, which it would unroll or leave, the body is compiled."""

    name = "torch.compile"
    compiles = True

    def make(self, case: Case) -> Callable[..., Any]:
        """The function of `Torch`, compiled for the shapes of the case."""
        made = super().make(case)
        return made if case.workload.loops else self.torch.compile(made, dynamic=False)

    def make_dynamic(self, case: Case) -> Callable[..., Any]:
        """The same, compiled for any size."""
        return self.torch.compile(super().make(case), dynamic=True)

    def namespace(self) -> Namespace:
        """Loops run compiled bodies."""
        plain = super().namespace()
        compiled = self.torch.compile
        return Namespace(
            plain,
            while_loop=lambda cond, body, init: python_while(cond, compiled(body), init),
            scan=lambda step, state, rows: self._scan(compiled(step), state, rows),
        )


class Jax(Peer):
    """`jax.jit`; a call ends when its result is ready."""

    name = "jax"
    statement = "f({}).block_until_ready()"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        self.jax: Any = jax

    def array(self, x: Any) -> Any:
        """An array of JAX."""
        return self.jax.numpy.asarray(x) if isinstance(x, np.ndarray) else x

    def program(self, case: Case) -> Callable[..., Any]:
        """`jax.jit`, weights as arguments, as JAX's users pass them."""
        namespace = Namespace(
            self.jax.numpy,
            erf=self.jax.scipy.special.erf,
            while_loop=self.jax.lax.while_loop,
            scan=self.jax.lax.scan,
        )
        weights = [self.jax.numpy.asarray(w) for w in case.weights]
        compiled = self.jax.jit(bound(case.workload.program, namespace, []))
        if not weights:
            return compiled
        return lambda *inputs: compiled(*inputs, *weights)


class JaxPadded(Jax):
    """`jax.jit` on inputs padded to a multiple of 8 rows, NumPy in and out: for streams of many sizes."""

    name = "jax, padded"
    statement = "f({})"
    ROWS = 8

    def array(self, x: Any) -> Any:
        """As it is: padding is NumPy's."""
        return x

    def make(self, case: Case) -> Callable[..., Any]:
        """The padded call, results cut to size."""
        compiled = super().make(case)
        rows = self.ROWS

        def call(x: Any) -> Any:
            padded = np.zeros((-(-x.shape[0] // rows) * rows, *x.shape[1:]), x.dtype)
            padded[: x.shape[0]] = x
            return np.asarray(compiled(padded))[: x.shape[0]]

        return call


class MindSpore(Peer):
    """MindSpore, PyNative mode; a call ends when its result is a NumPy array."""

    name = "mindspore"
    compiles = False
    statement = "f({}).asnumpy()"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import mindspore

        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        mindspore.set_device("CPU")
        self.mindspore: Any = mindspore

    def array(self, x: Any) -> Any:
        """A tensor."""
        return self.mindspore.Tensor(x) if isinstance(x, np.ndarray) else x

    def back(self, result: Any) -> Array:
        """A NumPy array; `statement` makes it one already."""
        return result if isinstance(result, np.ndarray) else result.asnumpy()

    def program(self, case: Case) -> Callable[..., Any]:
        """The text over `mindspore.mint`."""
        if case.workload.loops:
            raise Unsupported("no loops over MindSpore tensors here")
        mint = self.mindspore.mint
        namespace = Namespace(
            mint,
            max=lambda x, axis=None, keepdims=False: mint.max(x, axis, keepdims)[0],
            sum=lambda x, axis, keepdims=False: mint.sum(x, axis, keepdims),
            mean=lambda x, axis, keepdims=False: mint.mean(x, axis, keepdims),
            var=_mean_square(mint),  # its own has no kernel on CPUs
            maximum=lambda x, y: mint.nn.functional.relu(x) if y == 0 else mint.clamp(x, min=y),
            minimum=lambda x, y: mint.clamp(x, max=y),
        )
        weights = [self.array(w) for w in case.weights]
        return bound(case.workload.program, namespace, weights)


def _mean_square(mint: Any) -> Callable[..., Any]:
    def var(x: Any, axis: int, keepdims: bool = False) -> Any:
        distance = x - mint.mean(x, axis, True)
        return mint.mean(distance * distance, axis, keepdims)

    return var
