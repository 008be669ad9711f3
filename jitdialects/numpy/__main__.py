"""`python -m jitdialects.numpy` prints the table of operators in `docs/numpy-differences.md`."""

from __future__ import annotations

from jitdialects import numpy as jnp
from jitdialects.bytecode.operators import OPERATORS

_SPELLING = {
    "cast": "`astype`, `x.astype(dtype)`",
    "gelu": "`gelu(x, approximate=False)`",
    "gelu_tanh": "`gelu`",
    "getitem": "`x[index]`",
    "setitem": "`x.at[index].set(y)`, `x[index] = y`",
    "size": "`x.shape[axis]` while tracing",
}
_SYMBOLS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "matmul": "@",
    "left_shift": "<<",
    "right_shift": ">>",
    "negative": "-x",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "logical_and": "&",
    "logical_or": "|",
    "logical_not": "~x",
}


def names_of(opcode: str) -> str:
    """How users write the operator: every name of the namespace, then the symbol."""
    if opcode in _SPELLING:
        return _SPELLING[opcode]
    function = getattr(jnp, opcode)
    names = [opcode, *(n for n in jnp.__all__ if n != opcode and getattr(jnp, n) is function)]
    symbol = [_SYMBOLS[opcode].replace("|", "\\|")] if opcode in _SYMBOLS else []
    return ", ".join(f"`{n}`" for n in names + symbol)


def operator_table() -> str:
    """Every operator of the table as Markdown: bytecode, names, meaning."""
    lines = ["| bytecode | written | meaning |", "| --- | --- | --- |"]
    for opcode, operator in OPERATORS.items():
        meaning = operator.doc.replace("|", "\\|")
        lines.append(f"| `{opcode}` | {names_of(opcode)} | {meaning} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(operator_table())
