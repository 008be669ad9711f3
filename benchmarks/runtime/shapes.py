"""Shapes: a thousand distinct ones of one program, hot ones, padded rows.

Every stream calls a function once with each of 1,000 distinct shapes, in an order drawn at random. A call counts as
compiled if machine code served it. Among the first 200 calls are pauses in which what was asked for is compiled;
streams without them race the compile server, which a tenth of a second of calls cannot win.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import Any

import numpy as np

import jitdialects as jd
import jitdialects.numpy as jnp
from benchmarks.runtime.row import Row
from jitdialects.runtime.contest import ROUNDS

COUNT = 1000
WARM_UP = 200
PAUSE_AT = 20
"""Before one call in so many of the warm-up, a stream pauses."""
Function = Callable[..., Any]
Arguments = tuple[np.ndarray, ...]


def floats(*shape: int) -> np.ndarray:
    """The same numbers for the same shape."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def formula(x: Any, b: Any) -> Any:
    """Elementwise, both sizes vary."""
    return jnp.tanh(x * 2 + b) * x


def of_formula() -> Iterator[Arguments]:
    """x: (n, m), b: (m,)."""
    for n, m in product(range(2, 34), range(3, 36)):
        yield floats(n, m), floats(m)


def classifier(x: Any, w: Any, b: Any, v: Any) -> Any:
    """Two layers and a softmax."""
    h = jnp.maximum(x @ w + b, 0) @ v
    e = jnp.exp(h - jnp.max(h, axis=1, keepdims=True))
    return e / jnp.sum(e, axis=1, keepdims=True)


def of_classifier() -> Iterator[Arguments]:
    """The batch varies from 1 on."""
    weights = floats(128, 256), floats(256), floats(256, 10)
    for n in range(1, COUNT + 1):
        yield floats(n, 128), *weights


def broadcast(x: Any, y: Any) -> Any:
    """Sizes of 1 stretch, in any of the four axes."""
    return jnp.sqrt(x * x + y * y)


def of_broadcast() -> Iterator[Arguments]:
    """Both of (n, m), one axis in four of size 1 instead."""
    draw = random.Random(1)
    for n, m in product(range(1, 40), range(1, 40)):
        a, b, c, d = (s if draw.random() < 0.75 else 1 for s in (n, m, n, m))
        yield floats(a, b), floats(c, d)


STREAMS = {
    "classifier, batches 1 to 1,000": (classifier, of_classifier),
    "elementwise, both sizes vary": (formula, of_formula),
    "broadcasting with sizes of 1": (broadcast, of_broadcast),
}


def stream(function: Function, calls: Sequence[Arguments], shapes: str, pause: bool) -> list[Row]:
    """Compiles, share of compiled calls behind the warm-up, wasted rows."""
    jd.wait()
    jd.clear_cache()
    before = jd.stats()["compiles"]
    jitted = jd.jit(function, shapes=shapes)
    served = 0
    for number, arguments in enumerate(calls):
        if pause and number % PAUSE_AT == 0 and number <= WARM_UP:
            jitted.wait()
        if number == WARM_UP:
            served = jitted.machines()[0].functions["main"].profile.served
        jitted(*arguments)
    code = jitted.machines()[0].functions["main"]
    share = (code.profile.served - served) / (len(calls) - WARM_UP) * 100
    jd.wait()
    compiles = jd.stats()["compiles"] - before
    how = "" if pause else "without a pause"
    # the other policies do what they were asked for
    few, most = ("<= 8", ">= 95") if shapes == "auto" and pause else ("", "")
    if few and function is broadcast:
        how = "each of two axes stretches x, or y, or neither: nine programs"
    rows = [
        Row(f"{shapes}: compiles", compiles, "", few, how),
        Row(f"{shapes}: compiled calls after the 200th", share, "%", most, how),
    ]
    states = [h.policy for h in code.profile.histories.values()]
    real, wasted = sum(s.rows for s in states), sum(s.wasted_rows for s in states)
    if real:
        rows.append(Row(f"{shapes}: rows added by padding", wasted / real * 100, "%", "", how))
    return rows


def prefixed(name: str, rows: Sequence[Row]) -> list[Row]:
    """Rows of one stream."""
    return [Row(f"{name}; {r.name}", r.value, r.unit, r.aim, r.note) for r in rows]


def microseconds(call: Callable[[], object], number: int) -> float:
    """Median over rounds of the mean time of a call."""
    times: list[float] = []
    for _ in range(15):
        started = time.perf_counter()
        for _ in range(number):
            call()
        times.append((time.perf_counter() - started) / number * 1e6)
    return statistics.median(times)


def layer(x: Any, w: Any, b: Any) -> Any:
    """A product that is short of rows."""
    return jnp.tanh(x @ w + b)


def hot() -> list[Row]:
    """A shape that most calls have, before and after it has code of its own."""
    w, b = floats(64, 48), floats(48)
    rows: list[Row] = []
    for n, m in ((3, 64), (8, 64), (64, 64)):
        jd.clear_cache()
        x = floats(n, m)
        general = jd.jit(layer, shapes="symbolic")
        adaptive = jd.jit(layer)
        for jitted in (general, adaptive):
            for size in (11, 12, 13, 14) * 12:
                jitted(floats(size, m), w, b)
                jitted.wait()
        calls = 0
        special = adaptive.machines()[0].functions["main"].hot.special
        while calls < 1_000_000 and not any(s.rounds == ROUNDS for s in special.values()):
            for _ in range(1000):
                adaptive(x, w, b)
            calls += 1000
            adaptive.wait()
        for _ in range(10_000):
            adaptive(x, w, b)
            general(x, w, b)
        number = 2000 if n < 64 else 200
        before = microseconds(lambda f=general, x=x: f(x, w, b), number)
        after = microseconds(lambda f=adaptive, x=x: f(x, w, b), number)
        found = "; ".join(map(str, special.values())) or "not hot"
        rows += [
            Row(f"hot shape ({n}, {m}): general code", before, "us"),
            Row(
                f"hot shape ({n}, {m}): afterwards",
                after,
                "us",
                "",
                f"{after / before:.2f} of it, judged after {calls} calls: {found}",
            ),
        ]
    return rows


def padded() -> list[Row]:
    """Batches of 33 and of 60 in code for 64 rows, and in code for any number."""
    w, b, v = floats(128, 256), floats(256), floats(256, 10)
    functions = {shapes: jd.jit(classifier, shapes=shapes) for shapes in ("auto", "bucketed")}
    for jitted in functions.values():
        for size in (41, 42, 43) * 20:
            jitted(floats(size, 128), w, b, v)
            jitted.wait()
    rows: list[Row] = []
    for n in (33, 60):
        x = floats(n, 128)
        general, static = (
            microseconds(lambda f=jitted, x=x: f(x, w, b, v), 200) for jitted in functions.values()
        )
        rows += [
            Row(f"classifier, a batch of {n}: in general code", general, "us"),
            Row(
                f"classifier, a batch of {n}: in code for 64",
                static,
                "us",
                "",
                f"{static / general:.2f}",
            ),
        ]
    return rows


def measure() -> list[Row]:
    """The rows of this topic."""
    jd.jit(formula)(floats(2, 2), floats(2))
    jd.wait()  # the compile server is there
    rows: list[Row] = []
    for name, (function, source) in STREAMS.items():
        calls = list(source())
        random.Random(7).shuffle(calls)
        calls = list(islice(calls, COUNT))
        for shapes in ("auto", "symbolic", "bucketed", "exact"):
            rows += prefixed(name, stream(function, calls, shapes, pause=True))
        rows += prefixed(name, stream(function, calls, "auto", pause=False))
    return rows + padded() + hot()
