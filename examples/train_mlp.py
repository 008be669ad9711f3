"""Train the demo's classifier (784-512-256-10) and write it as `mlp.jbc`. Run once, by hand.

Plain NumPy: Adam on the cross entropy of mini-batches, 30 epochs, seeded. The file is a program: `main`
takes images (batch, 784) of float32 and gives probabilities (batch, 10). A layer is `max(x @ w + b, 0)`, the
last one a softmax of `x @ w + b`. The weights are its constants 0 to 5, float32: w1 (784, 512), b1 (512,),
w2 (512, 256), b2 (256,), w3 (256, 10), b3 (10,).
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import digits
import numpy as np
from numpy.typing import NDArray

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.program import Program

Array = NDArray[np.float32]
WIDTHS = (784, 512, 256, 10)
EPOCHS, BATCH, RATE = 30, 64, 1e-3


def forward(x: Array, weights: list[Array], biases: list[Array]) -> list[Array]:
    """The input and every layer's output; the last one holds logits."""
    layers = [x]
    for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
        z = layers[-1] @ w + b
        layers.append(z if i == len(weights) - 1 else np.maximum(z, 0))
    return layers


def gradients(
    layers: list[Array], labels: NDArray[np.int64], weights: list[Array]
) -> tuple[list[Array], list[Array]]:
    """Gradients of the mean cross entropy with respect to weights and biases."""
    logits = layers[-1]
    p = np.exp(logits - logits.max(1, keepdims=True))
    delta = p / p.sum(1, keepdims=True)
    delta[np.arange(len(labels)), labels] -= 1
    delta /= np.float32(len(labels))
    dw: list[Array] = []
    db: list[Array] = []
    for i in reversed(range(len(weights))):
        dw.insert(0, layers[i].T @ delta)
        db.insert(0, delta.sum(0))
        delta = (delta @ weights[i].T) * (layers[i] > 0)
    return dw, db


def classifier(weights: list[Array], biases: list[Array]) -> Program:
    """The network as bytecode; the batch size is whatever arrives."""
    builder = ProgramBuilder()
    f = builder.function("main", 1)
    (x,) = f.parameters
    registers = [(f.constant(w), f.constant(b)) for w, b in zip(weights, biases, strict=True)]
    for w, b in registers[:-1]:
        x = f.apply("maximum", f.apply("add", f.apply("matmul", x, w), b), f.constant(0))
    w, b = registers[-1]
    x = f.apply("add", f.apply("matmul", x, w), b)
    e = f.apply("exp", f.apply("subtract", x, f.apply("max", x, axis=-1, keepdims=True)))
    f.returns(f.apply("divide", e, f.apply("sum", e, axis=-1, keepdims=True)))
    return builder.finish()


def main() -> None:
    (x, y), (held_x, held_y) = digits.load()
    rng = np.random.default_rng(1)
    weights = [
        (rng.standard_normal((m, n)) * np.sqrt(2 / m)).astype(np.float32)
        for m, n in pairwise(WIDTHS)
    ]
    biases = [np.zeros(n, np.float32) for n in WIDTHS[1:]]
    parameters = weights + biases
    first = [np.zeros_like(p) for p in parameters]
    second = [np.zeros_like(p) for p in parameters]
    step = 0
    for epoch in range(EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            dw, db = gradients(forward(x[rows], weights, biases), y[rows], weights)
            step += 1
            for p, g, m, v in zip(parameters, dw + db, first, second, strict=True):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= RATE * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        accuracy = (forward(held_x, weights, biases)[-1].argmax(1) == held_y).mean()
        print(f"epoch {epoch + 1:2}: {accuracy:.4f} of the held-out digits right")
    classifier(weights, biases).save(Path(__file__).with_name("mlp.jbc"))


if __name__ == "__main__":
    main()
