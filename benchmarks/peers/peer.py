"""What a peer does: make a function of a case, convert to and from NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workload import Array, Case, Unsupported


class Namespace:
    """The names of `module`, some of them replaced: what a program computes with."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class Peer:
    """One library. `threads` are set when it is made."""

    name: str
    statement = "f({})"
    """What is timed; `{}` stands for the arguments."""
    compiles = True
    """Whether a program is compiled before it runs."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def library(self) -> Any:
        """What the workload's own text for this peer (`Workload.special`) gets."""
        raise NotImplementedError

    def array(self, x: Any) -> Any:
        """A NumPy array as this library takes it; numbers as they are."""
        return x

    def back(self, result: Any) -> Array:
        """The result as a NumPy array."""
        return np.asarray(result)

    def program(self, case: Case) -> Callable[..., Any]:
        """A function of the inputs of `case`, from the program's text over an array namespace."""
        raise Unsupported(f"{self.name} has no text of this program")

    def make(self, case: Case) -> Callable[..., Any]:
        """A function of the inputs of `case`."""
        special = case.workload.special.get(self.name)
        if special is not None:
            return special(self.library(), case)
        return self.program(case)

    def make_dynamic(self, case: Case) -> Callable[..., Any]:
        """A function of the inputs of `case` that is going to be called with other sizes too."""
        return self.make(case)

    def settle(self, function: Callable[..., Any], call: Callable[[], object]) -> str | None:
        """Bring `function` to its steady state by calling; a remark on what runs then."""
        call()
        call()
        return None

    def rest(self, function: Callable[..., Any]) -> None:
        """Return when nothing is being compiled."""

    def compile_time(
        self, function: Callable[..., Any], call: Callable[[], object]
    ) -> float | None:
        """After the first call: seconds that compiling takes beside further calls; None where the first
        call has compiled."""
        return None

    def facts(self, function: Callable[..., Any]) -> dict[str, Any]:
        """What the library tells about the compilation of `function`."""
        return {}


def bound(program: Callable[..., Any], namespace: Any, weights: list[Any]) -> Callable[..., Any]:
    """`program` over `namespace`, with its weights."""

    def call(*inputs: Any) -> Any:
        return program(namespace, *inputs, *weights)

    return call


def python_while(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """`while_loop` for libraries whose control flow is Python's."""
    value = init
    while cond(value):
        value = body(value)
    return value
