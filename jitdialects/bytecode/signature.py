"""Signatures: what a function is compiled for. The one place that knows their text form.

    main(f32[n,784], f32[784,512]:strided, i64[], float) where 2 <= n, n <= 64, 8 divides n

A tensor argument is a dtype (`f32`, `f64`, `i32`, `i64`, `bool`) with its sizes in brackets, each a number or a name;
equal names are equal sizes. `:strided` marks an array that is not C-contiguous. `float`, `int` and
`pybool` are Python scalars (weak dtypes). The value of argument k, where that is a rank-0 integer, weak
or not, is the symbol `s<k>`; hence no size may have such a name. After `where` stand bounds of sizes, separated by
commas: never smaller, never larger, always a multiple.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Expr, Shape
from jitdialects.bytecode.dtypes import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    WEAK_BOOL,
    WEAK_FLOAT,
    WEAK_INT,
    DType,
)
from jitdialects.bytecode.lexer import Cursor
from jitdialects.errors import BytecodeError

TENSOR_NAMES = {"f32": FLOAT32, "f64": FLOAT64, "i32": INT32, "i64": INT64, "bool": BOOL}
SCALAR_NAMES = {"float": WEAK_FLOAT, "int": WEAK_INT, "pybool": WEAK_BOOL}
SPELLING = {dtype: name for name, dtype in (TENSOR_NAMES | SCALAR_NAMES).items()}
"""dtype -> its name in signatures and in the text of constants."""
_VALUE_SYMBOL = re.compile(r"s[0-9]+")
MAX_SIZE = 2**63 - 1


@dataclass(frozen=True)
class ArgumentType:
    """What is known of one argument. Weak scalars have rank 0 and are never `strided`."""

    dtype: DType
    shape: Shape
    strided: bool = False

    def __str__(self) -> str:
        if self.dtype.weak:
            return SPELLING[self.dtype]
        sizes = ",".join(map(str, self.shape))
        return f"{SPELLING[self.dtype]}[{sizes}]" + (":strided" if self.strided else "")

    @property
    def is_integer_scalar(self) -> bool:
        """Whether the value of this argument can be part of a shape: a rank-0 integer."""
        return self.dtype.is_integer and not self.shape


@dataclass(frozen=True)
class Signature:
    """A function's name and its argument types. `str` and `parse` are inverse."""

    function: str
    arguments: tuple[ArgumentType, ...]
    at_least: tuple[tuple[int, str], ...] = ()
    """(number, name of a size): sizes that are never below a number."""
    at_most: tuple[tuple[str, int], ...] = ()
    """(name of a size, number): sizes that are never above a number."""
    divisors: tuple[tuple[int, str], ...] = ()
    """(number, name of a size): sizes that are always multiples of a number."""

    def __str__(self) -> str:
        text = f"{self.function}({', '.join(map(str, self.arguments))})"
        bounds = [
            *(f"{number} <= {name}" for number, name in self.at_least),
            *(f"{name} <= {number}" for name, number in self.at_most),
            *(f"{number} divides {name}" for number, name in self.divisors),
        ]
        return f"{text} where {', '.join(bounds)}" if bounds else text

    @property
    def is_exact(self) -> bool:
        """Whether it is for one shape only."""
        return all(isinstance(size, int) for a in self.arguments for size in a.shape)

    def covers(self, other: Signature) -> bool:
        """Whether every call of `other` is one of this signature, whose sizes are numbers and names."""
        if self == other or len(self.arguments) != len(other.arguments):
            return self == other
        bound: dict[Dim, Dim] = {}
        for mine, its in zip(self.arguments, other.arguments, strict=True):
            if (mine.dtype, mine.strided, len(mine.shape)) != (
                its.dtype,
                its.strided,
                len(its.shape),
            ):
                return False
            for size, given in zip(mine.shape, its.shape, strict=True):
                known = size if isinstance(size, int) else bound.setdefault(size, given)
                if known != given:
                    return False
        sizes = {str(name): size for name, size in bound.items()}
        bounded = (*(n for _, n in self.at_least), *(n for n, _ in self.at_most))
        for name in (*bounded, *(n for _, n in self.divisors)):
            if not isinstance(sizes.get(name, 0), int):
                return False
        known = {name: size for name, size in sizes.items() if isinstance(size, int)}
        return (
            all(number <= known.get(name, number) for number, name in self.at_least)
            and all(known.get(name, number) <= number for name, number in self.at_most)
            and all(known.get(name, 0) % number == 0 for number, name in self.divisors)
        )


def value_symbol(argument: int) -> Expr:
    """The symbol for the value of argument number `argument`, a rank-0 integer."""
    return dims.symbol(f"s{argument}")


def is_value_symbol(name: str) -> bool:
    """Whether `name` stands for the value of an argument and not for a size."""
    return _VALUE_SYMBOL.fullmatch(name) is not None


def parse(text: str) -> Signature:
    """The signature written in `text`; `BytecodeError` names the column of what does not fit."""
    try:
        return _signature(Cursor(text, "signature", 1))
    except BytecodeError as error:
        column = getattr(error.location, "column", 1)
        raise BytecodeError(
            f"signature '{text}', column {column}: {error.message}; "
            "write for example main(f32[n,784], i64[], float)"
        ) from None


def _signature(cursor: Cursor) -> Signature:
    function = cursor.take("name")
    arguments = cursor.list("(", ")", lambda: _argument(cursor))
    names = {name for a in arguments for size in a.shape for name in dims.symbols_of(size)}
    bounds = _Bounds([], [], [])
    if cursor.skip_word("where"):
        bounds.read(cursor, names)
        while cursor.skip(","):
            bounds.read(cursor, names)
    cursor.take("end")
    lists = (tuple(bounds.at_least), tuple(bounds.at_most), tuple(bounds.divisors))
    return Signature(function, tuple(arguments), *lists)


@dataclass
class _Bounds:
    """What stands after `where`."""

    at_least: list[tuple[int, str]]
    at_most: list[tuple[str, int]]
    divisors: list[tuple[int, str]]

    def read(self, cursor: Cursor, names: set[str]) -> None:
        """One bound."""
        if cursor.kind == "name":
            name = _known(cursor, names)
            if not cursor.skip("<="):
                raise cursor.error("a bound is written 2 <= n, n <= 64 or 8 divides n")
            self.at_most.append((name, cursor.integer()))
            return
        number = cursor.integer()
        if cursor.skip_word("divides"):
            if number < 1:
                raise cursor.error("a divisor is at least 1")
            self.divisors.append((number, _known(cursor, names)))
        elif cursor.skip("<="):
            self.at_least.append((number, _known(cursor, names)))
        else:
            raise cursor.error("a bound is written 2 <= n, n <= 64 or 8 divides n")


def _known(cursor: Cursor, names: set[str]) -> str:
    here = cursor.location
    name = cursor.take("name")
    if name not in names:
        raise cursor.error(f"no argument has a size '{name}'", here)
    return name


def _argument(cursor: Cursor) -> ArgumentType:
    here = cursor.location
    name = cursor.take("name")
    if name in SCALAR_NAMES:
        return ArgumentType(SCALAR_NAMES[name], ())
    if name not in TENSOR_NAMES:
        known = ", ".join(TENSOR_NAMES | SCALAR_NAMES)
        raise cursor.error(f"unknown dtype '{name}' (known: {known})", here)
    sizes = cursor.list("[", "]", lambda: _size(cursor))
    strided = cursor.skip(":")
    if strided and not cursor.skip_word("strided"):
        raise cursor.error("the only mark of an argument is ':strided'")
    if strided and not sizes:
        raise cursor.error("an array of rank 0 is never strided", here)
    return ArgumentType(TENSOR_NAMES[name], tuple(sizes), strided)


def _size(cursor: Cursor) -> Dim:
    here = cursor.location
    if cursor.kind == "number":
        size = cursor.integer()
        if not 0 <= size <= MAX_SIZE:
            raise cursor.error(f"no array has the size {size}", here)
        return size
    name = cursor.take("name")
    if _VALUE_SYMBOL.fullmatch(name):
        raise cursor.error(f"a size may not be called '{name}', the value of an argument is", here)
    if "." in name or name in dims.FUNCTIONS or name.startswith(dims.RUN_TIME):
        raise cursor.error(f"'{name}' cannot be the name of a size", here)
    return dims.symbol(name)
