"""How the C view writes scalars: types, literals, operators, and helpers for what C lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import Float32Type, Float64Type, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import DiagnosticException

Expression = Callable[[Operation, Sequence[str], Attribute, Attribute], str]
"""(operation, operands, type of the first operand, type of the result) -> C."""


def c_type(type: Attribute) -> str:
    """The C type of a scalar."""
    if isinstance(type, IndexType):
        return "int64_t"
    if isinstance(type, Float32Type | Float64Type):
        return "float" if isinstance(type, Float32Type) else "double"
    if isinstance(type, IntegerType) and type.bitwidth in (1, 8, 16, 32, 64):
        return "bool" if type.bitwidth == 1 else f"int{type.bitwidth}_t"
    raise DiagnosticException(f"the C view cannot show the type {type}: it has no C type")


def bits_of(type: Attribute) -> int:
    """The width of an integer type."""
    return type.bitwidth if isinstance(type, IntegerType) else 64


def unsigned(type: Attribute) -> str:
    """The unsigned C type of the same width."""
    return "bool" if bits_of(type) == 1 else f"uint{bits_of(type)}_t"


def literal(value: float, type: Attribute) -> str:
    """A number as C writes it, with the same bits (NaN: some NaN)."""
    if isinstance(type, IntegerType) and type.bitwidth == 1:
        return "true" if value else "false"
    if not isinstance(type, Float32Type | Float64Type):
        number = int(value)
        if number == -(2**63):
            return "INT64_MIN"
        text = str(number) if abs(number) < 2**31 else f"INT64_C({number})"
        return text if number >= 0 else f"({text})"
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = repr(float(value)) + ("f" if isinstance(type, Float32Type) else "")
    return text if math.copysign(1.0, value) > 0 else f"({text})"


def _infix(symbol: str) -> Expression:
    return lambda op, o, source, result: f"{o[0]} {symbol} {o[1]}"


def _wrapping(symbol: str) -> Expression:
    """Integer arithmetic modulo 2^width; sizes and indices are written plainly."""

    def write(op: Operation, o: Sequence[str], source: Attribute, result: Attribute) -> str:
        if isinstance(result, IndexType):
            return f"{o[0]} {symbol} {o[1]}"
        if bits_of(result) == 1:
            return f"{o[0]} {'&' if symbol == '*' else '^'} {o[1]}"
        wide = unsigned(result)
        return f"({c_type(result)})(({wide}){o[0]} {symbol} ({wide}){o[1]})"

    return write


def _shift(symbol: str, sign: bool) -> Expression:
    def write(op: Operation, o: Sequence[str], source: Attribute, result: Attribute) -> str:
        left = o[0] if sign else f"({unsigned(result)}){o[0]}"
        return f"({c_type(result)})({left} {symbol} ({o[1]} & {bits_of(result) - 1}))"

    return write


def _unsigned_infix(symbol: str) -> Expression:
    def write(op: Operation, o: Sequence[str], source: Attribute, result: Attribute) -> str:
        wide = unsigned(result)
        return f"({c_type(result)})(({wide}){o[0]} {symbol} ({wide}){o[1]})"

    return write


def _choice(symbol: str, sign: bool) -> Expression:
    def write(op: Operation, o: Sequence[str], source: Attribute, result: Attribute) -> str:
        wide = "" if sign else f"({unsigned(result)})"
        return f"{wide}{o[0]} {symbol} {wide}{o[1]} ? {o[0]} : {o[1]}"

    return write


def _predicate(op: Operation) -> int:
    attribute = op.properties["predicate"]
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def _compare_integers(op: Operation, o: Sequence[str], source: Attribute, result: Attribute) -> str:
    predicate = _predicate(op)
    wide = f"({unsigned(source)})" if predicate >= 6 else ""
    symbol = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")[predicate]
    return f"{wide}{o[0]} {symbol} {wide}{o[1]}"


def _compare_floats(op: Operation, o: Sequence[str], source: Attribute, result: Attribute) -> str:
    """C's comparisons are ordered, apart from `!=`; the others are negations."""
    a, b = o
    return (
        "false",
        f"{a} == {b}",
        f"{a} > {b}",
        f"{a} >= {b}",
        f"{a} < {b}",
        f"{a} <= {b}",
        f"({a} < {b}) | ({a} > {b})",
        f"!isunordered({a}, {b})",
        f"!(({a} < {b}) | ({a} > {b}))",
        f"!({a} <= {b})",
        f"!({a} < {b})",
        f"!({a} >= {b})",
        f"!({a} > {b})",
        f"{a} != {b}",
        f"isunordered({a}, {b})",
        "true",
    )[_predicate(op)]


def _cast(op: Operation, o: Sequence[str], source: Attribute, result: Attribute) -> str:
    return f"({c_type(result)}){o[0]}"


def _sign_extend(op: Operation, o: Sequence[str], source: Attribute, result: Attribute) -> str:
    return f"({c_type(result)})-{o[0]}" if bits_of(source) == 1 else f"({c_type(result)}){o[0]}"


def _zero_extend(op: Operation, o: Sequence[str], source: Attribute, result: Attribute) -> str:
    return f"({c_type(result)})({unsigned(source)}){o[0]}"


def _low_bits(op: Operation, o: Sequence[str], source: Attribute, result: Attribute) -> str:
    return f"({o[0]} & 1) != 0" if bits_of(result) == 1 else f"({c_type(result)}){o[0]}"


OPERATORS: Mapping[str, Expression] = {
    "arith.addf": _infix("+"),
    "arith.addi": _wrapping("+"),
    "arith.andi": _infix("&"),
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.divf": _infix("/"),
    "arith.divui": _unsigned_infix("/"),
    "arith.extf": _cast,
    "arith.extsi": _sign_extend,
    "arith.extui": _zero_extend,
    "arith.fptosi": _cast,
    "arith.index_cast": _cast,
    "arith.maxsi": _choice(">", True),
    "arith.maxui": _choice(">", False),
    "arith.minsi": _choice("<", True),
    "arith.minui": _choice("<", False),
    "arith.mulf": _infix("*"),
    "arith.muli": _wrapping("*"),
    "arith.negf": lambda op, o, source, result: f"-{o[0]}",
    "arith.ori": _infix("|"),
    "arith.remui": _unsigned_infix("%"),
    "arith.select": lambda op, o, source, result: f"{o[0]} ? {o[1]} : {o[2]}",
    "arith.shli": _shift("<<", False),
    "arith.shrsi": _shift(">>", True),
    "arith.shrui": _shift(">>", False),
    "arith.sitofp": _cast,
    "arith.subf": _infix("-"),
    "arith.subi": _wrapping("-"),
    "arith.truncf": _cast,
    "arith.trunci": _low_bits,
    "arith.uitofp": lambda op, o, source, result: f"({c_type(result)})({unsigned(source)}){o[0]}",
    "arith.xori": _infix("^"),
}


def _libm(name: str) -> Callable[[Operation, Attribute, Attribute], str]:
    return lambda op, source, result: f"{name}f" if isinstance(result, Float32Type) else name


def _named(name: str) -> Callable[[Operation, Attribute, Attribute], str]:
    return lambda op, source, result: f"{name}_{_suffix(result)}"


def _suffix(type: Attribute) -> str:
    if isinstance(type, Float32Type | Float64Type):
        return "f32" if isinstance(type, Float32Type) else "f64"
    return f"i{bits_of(type)}"


def _bitcast(op: Operation, source: Attribute, result: Attribute) -> str:
    return f"{_suffix(result)}_from_{_suffix(source)}"


FUNCTIONS: Mapping[str, Callable[[Operation, Attribute, Attribute], str]] = {
    "arith.bitcast": _bitcast,
    "arith.divsi": _named("divide"),
    "arith.maximumf": _named("maximum"),
    "arith.minimumf": _named("minimum"),
    "arith.remsi": _named("remainder"),
    "math.absf": _libm("fabs"),
    "math.copysign": _libm("copysign"),
    "math.ctlz": _named("leading_zeros"),
    "math.cttz": _named("trailing_zeros"),
    "math.floor": _libm("floor"),
    "math.ceil": _libm("ceil"),
    "math.fma": _libm("fma"),
    "math.roundeven": _libm("nearbyint"),  # in the default rounding mode
    "math.sqrt": _libm("sqrt"),
    "math.trunc": _libm("trunc"),
}
"""operation -> the C function that it calls: libm's, or one of `HELPERS`."""


def _extremum(name: str, type: str, suffix: str, larger: bool) -> str:
    wins = ">" if larger else "<"
    first, second = ("b", "a") if larger else ("a", "b")
    return f"""\
/* NaN if one is NaN; -0 < +0 */
static inline {type} {name}_{suffix}({type} a, {type} b) {{
  if (isnan(a) || isnan(b)) return isnan(a) ? a : b;
  if (a == b) return signbit(a) ? {first} : {second};
  return a {wins} b ? a : b;
}}
"""


def _division(name: str, symbol: str, width: int) -> str:
    type = f"int{width}_t"
    return f"""\
/* where the result is undefined: some value, and no signal */
static inline {type} {name}_i{width}({type} a, {type} b) {{
  return b == 0 || (a == INT{width}_MIN && b == -1) ? 0 : ({type})(a {symbol} b);
}}
"""


def _reinterpretation(to: str, to_type: str, of: str, of_type: str) -> str:
    return f"""\
static inline {to_type} {to}_from_{of}({of_type} x) {{
  {to_type} y;
  memcpy(&y, &x, sizeof y);
  return y;
}}
"""


_PAIRS = (
    ("f32", "float", "i32", "int32_t"),
    ("f64", "double", "i64", "int64_t"),
)
HELPERS: Mapping[str, str] = {
    "slot_as_double": """\
static inline double slot_as_double(int64_t slot) {
  double x;
  memcpy(&x, &slot, sizeof x);
  return x;
}
""",
    **{
        f"{name}_{suffix}": _extremum(name, type, suffix, name == "maximum")
        for name in ("maximum", "minimum")
        for suffix, type in (("f32", "float"), ("f64", "double"))
    },
    **{
        f"{name}_i{width}": _division(name, symbol, width)
        for name, symbol in (("divide", "/"), ("remainder", "%"))
        for width in (8, 16, 32, 64)
    },
    **{f"{a}_from_{b}": _reinterpretation(a, ta, b, tb) for a, ta, b, tb in _PAIRS},
    **{f"{b}_from_{a}": _reinterpretation(b, tb, a, ta) for a, ta, b, tb in _PAIRS},
    "trailing_zeros_i64": """\
static inline int64_t trailing_zeros_i64(int64_t x) {
  return x == 0 ? 64 : __builtin_ctzll((unsigned long long)x);
}
""",
    "leading_zeros_i64": """\
static inline int64_t leading_zeros_i64(int64_t x) {
  return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}
""",
}
"""C functions by name, in the order in which a file has them."""
