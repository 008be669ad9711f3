"""Signatures: what a function is compiled for. The one place that knows their text form.

    main(f32[n,784], f32[784,512]:strided, i64[], float)

A tensor argument is a dtype (`f32`, `i64`, `bool`) with its sizes in brackets, each a number or a name;
equal names are equal sizes. `:strided` marks an array that is not C-contiguous. `float`, `int` and
`pybool` are Python scalars (weak dtypes). The value of argument k, where that is a rank-0 int64, weak
or not, is the symbol `s<k>`; hence no size may have such a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Expr, Shape
from jitdialects.bytecode.dtypes import (
    BOOL,
    FLOAT32,
    INT64,
    WEAK_BOOL,
    WEAK_FLOAT,
    WEAK_INT,
    DType,
)
from jitdialects.errors import BytecodeError

TENSOR_NAMES = {"f32": FLOAT32, "i64": INT64, "bool": BOOL}
SCALAR_NAMES = {"float": WEAK_FLOAT, "int": WEAK_INT, "pybool": WEAK_BOOL}
_SPELLING = {dtype: name for name, dtype in (TENSOR_NAMES | SCALAR_NAMES).items()}
_VALUE_SYMBOL = re.compile(r"s[0-9]+")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+)|(?P<name>[A-Za-z_][\w.]*)|(?P<mark>[][(),:]))", re.ASCII
)
MAX_SIZE = 2**63 - 1


@dataclass(frozen=True)
class ArgumentType:
    """What is known of one argument. Weak scalars have rank 0 and are never `strided`."""

    dtype: DType
    shape: Shape
    strided: bool = False

    def __str__(self) -> str:
        if self.dtype.weak:
            return _SPELLING[self.dtype]
        sizes = ",".join(map(str, self.shape))
        return f"{_SPELLING[self.dtype]}[{sizes}]" + (":strided" if self.strided else "")

    @property
    def is_integer_scalar(self) -> bool:
        """Whether the value of this argument can be part of a shape: a rank-0 int64."""
        return self.dtype.name == "int64" and not self.shape


@dataclass(frozen=True)
class Signature:
    """A function's name and its argument types. `str` and `parse` are inverse."""

    function: str
    arguments: tuple[ArgumentType, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


def value_symbol(argument: int) -> Expr:
    """The symbol for the value of argument number `argument`, a rank-0 int64."""
    return dims.symbol(f"s{argument}")


def is_value_symbol(name: str) -> bool:
    """Whether `name` stands for the value of an argument and not for a size."""
    return _VALUE_SYMBOL.fullmatch(name) is not None


def parse(text: str) -> Signature:
    """The signature written in `text`; `BytecodeError` names the column of what does not fit."""
    cursor = _Cursor(text)
    function = cursor.take("name", "the name of a function")
    cursor.take("(")
    arguments: list[ArgumentType] = []
    while not cursor.skip(")"):
        if arguments:
            cursor.take(",")
        arguments.append(_argument(cursor))
    cursor.take("end", "the end")
    return Signature(function, tuple(arguments))


class _Cursor:
    """The tokens of one signature; `kind` and `value` are those of the token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._advance(0)

    def _advance(self, position: int) -> None:
        self.at = position + len(self.text[position:]) - len(self.text[position:].lstrip())
        match = _TOKEN.match(self.text, position)
        if match is None:
            if self.text[position:].strip():
                raise self.error(f"does not expect {self.text[self.at]!r}")
            self.kind, self.value, self._next = "end", "the end", position
            return
        self.kind = match.lastgroup or ""
        self.value, self._next = match[self.kind], match.end()

    def error(self, sentence: str, at: int | None = None) -> BytecodeError:
        column = (self.at if at is None else at) + 1
        return BytecodeError(
            f"signature '{self.text}', column {column}: {sentence}; "
            "write for example main(f32[n,784], i64[], float)"
        )

    def skip(self, mark: str) -> bool:
        found = self.kind == "mark" and self.value == mark
        if found:
            self._advance(self._next)
        return found

    def take(self, wanted: str, description: str | None = None) -> str:
        """The value of the token ahead, which must be of the kind `wanted` or be that mark."""
        if self.kind != wanted and (self.kind != "mark" or self.value != wanted):
            raise self.error(f"expected {description or repr(wanted)}, found {self.value!r}")
        value = self.value
        if self.kind != "end":
            self._advance(self._next)
        return value


def _argument(cursor: _Cursor) -> ArgumentType:
    at = cursor.at
    name = cursor.take("name", "a dtype")
    if name in SCALAR_NAMES:
        return ArgumentType(SCALAR_NAMES[name], ())
    if name not in TENSOR_NAMES:
        known = ", ".join(TENSOR_NAMES | SCALAR_NAMES)
        raise cursor.error(f"unknown dtype '{name}' (known: {known})", at)
    cursor.take("[")
    sizes: list[Dim] = []
    while not cursor.skip("]"):
        if sizes:
            cursor.take(",")
        sizes.append(_size(cursor))
    strided = cursor.skip(":")
    at = cursor.at
    if strided and cursor.take("name", "'strided'") != "strided":
        raise cursor.error("the only mark of an argument is ':strided'", at)
    if strided and not sizes:
        raise cursor.error("an array of rank 0 is never strided", at)
    return ArgumentType(TENSOR_NAMES[name], tuple(sizes), strided)


def _size(cursor: _Cursor) -> Dim:
    at = cursor.at
    if cursor.kind == "number":
        size = int(cursor.take("number")) if len(cursor.value) < 20 else MAX_SIZE + 1
        if size > MAX_SIZE:
            raise cursor.error("the size is larger than any array", at)
        return size
    name = cursor.take("name", "a size (a number or a name)")
    if is_value_symbol(name):
        raise cursor.error(f"a size may not be called '{name}', the value of an argument is", at)
    if "." in name or name in dims.FUNCTIONS:
        raise cursor.error(f"'{name}' cannot be the name of a size", at)
    return dims.symbol(name)
