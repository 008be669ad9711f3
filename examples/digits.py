"""The demo's data: scikit-learn's handwritten digits, resized to 28x28, split once and for all.

Source: E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning
Repository, 1998 (CC BY 4.0); scikit-learn ships its 1,797 test images of 8x8 pixels, values 0..16.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Images = NDArray[np.float32]
Labels = NDArray[np.int64]
SIDE = 28
HELD_OUT = 540


def resize(images: NDArray[np.float64], side: int = SIDE) -> Images:
    """Bilinear interpolation from (n, h, w) to (n, side * side), corners aligned, values 0..1."""
    height, width = images.shape[1:]
    rows, columns = np.linspace(0, height - 1, side), np.linspace(0, width - 1, side)
    r0, c0 = np.minimum(rows.astype(int), height - 2), np.minimum(columns.astype(int), width - 2)
    fr, fc = (rows - r0)[:, None], columns - c0
    corner = [images[:, r0 + i][:, :, c0 + j] for i in (0, 1) for j in (0, 1)]
    top, bottom = (a * (1 - fc) + b * fc for a, b in (corner[:2], corner[2:]))
    mixed = top * (1 - fr) + bottom * fr
    return (mixed / images.max()).reshape(len(images), -1).astype(np.float32)


def load() -> tuple[tuple[Images, Labels], tuple[Images, Labels]]:
    """((training images, labels), (held-out images, labels)); the same split at every call."""
    digits = load_digits()
    images, labels = resize(digits.images), digits.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(images))
    test, train = order[:HELD_OUT], order[HELD_OUT:]
    return (images[train], labels[train]), (images[test], labels[test])
