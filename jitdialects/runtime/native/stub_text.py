"""LLVM text of a stub, line by line: values, branches, words of the environment, expressions over sizes."""

from __future__ import annotations

from functools import reduce

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Apply, Atom, Dim, Shape

ENVIRONMENT = (
    "busy",  # calls that this process must not take: a capture is running
    "array",  # types
    "float",
    "int",
    "true",
    "false",
    "as_integer",  # PyLong_AsLongLongAndOverflow
    "from_integer",  # PyLong_FromLongLong
    "call",  # PyObject_Vectorcall
    "decref",  # Py_DecRef
    "tuple",  # PyTuple_New
    "set_item",  # PyTuple_SetItem
    "clear",  # PyErr_Clear
    "release_gil",  # PyEval_SaveThread
    "take_gil",  # PyEval_RestoreThread
    "arena",  # scratch memory for temporaries
    "arena_bytes",
    "arena_busy",
    "arena_wanted",  # the most that a call asked for in vain
    "new_from_descriptor",  # PyArray_NewFromDescr
    "lease",  # type
    "allocate",  # PyObject_Malloc
    "free",  # PyObject_Free
    "incref",  # Py_IncRef
    "new_array",  # jd_new_array
    "no_memory",  # PyErr_NoMemory
)
"""Words of the environment, in order."""


class StubText:
    """The lines of one function. Methods that give a value give its name in the text."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[Dim | Atom, str] = {}
        """Names of sizes that were computed, or bound by the arguments."""
        self._names = 0

    # ---- text

    def emit(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def value(self, text: str) -> str:
        """A new value with this definition."""
        name = self.name()
        self.emit(f"{name} = {text}")
        return name

    def label(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def need(self, condition: str, otherwise: str = "miss") -> None:
        """Go on where `condition`, an i1, holds."""
        following = f"c{self.name()[2:]}"
        self.emit(f"br i1 {condition}, label %{following}, label %{otherwise}, !prof !0")
        self.label(following)

    def load(self, type: str, base: str, offset: int) -> str:
        at = base if not offset else self.value(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.value(f"load {type}, ptr {at}")

    def store(self, type: str, value: str, base: str, offset: int) -> None:
        at = base if not offset else self.value(f"getelementptr i8, ptr {base}, i64 {offset}")
        self.emit(f"store {type} {value}, ptr {at}")

    def environment(self, name: str, type: str = "ptr") -> str:
        return self.load(type, "%env", 8 * ENVIRONMENT.index(name))

    # ---- sizes

    def size(self, size: Dim) -> str:
        """The value of an expression."""
        if isinstance(size, int):
            return str(size)
        if size not in self.known:
            total = str(size.constant)
            for atom, coefficient in size.terms:
                term = self._atom(atom)
                if coefficient != 1:
                    term = self.value(f"mul i64 {term}, {coefficient}")
                total = term if total == "0" else self.value(f"add i64 {total}, {term}")
            self.known[size] = total
        return self.known[size]

    def _atom(self, atom: Atom) -> str:
        if atom not in self.known:
            assert isinstance(atom, Apply)  # symbols are bound by the arguments
            left, right = map(self.size, atom.arguments)
            self.known[atom] = self._apply(atom.function, left, right)
        return self.known[atom]

    def _apply(self, function: str, left: str, right: str) -> str:
        match function:
            case "mul":
                return self.value(f"mul i64 {left}, {right}")
            case "min" | "max":
                return self.value(f"call i64 @llvm.s{function}.i64(i64 {left}, i64 {right})")
            case "wrap":
                negative = self.value(f"icmp slt i64 {left}, 0")
                wrapped = self.value(f"add i64 {left}, {right}")
                return self.value(f"select i1 {negative}, i64 {wrapped}, i64 {left}")
            case _:  # floordiv; guards keep the divisor positive, of which nothing is known yet
                divisor = self.value(f"call i64 @llvm.smax.i64(i64 {right}, i64 1)")
                quotient = self.value(f"sdiv i64 {left}, {divisor}")
                rest = self.value(f"srem i64 {left}, {divisor}")
                below = self.value(f"icmp slt i64 {rest}, 0")
                step = self.value(f"sext i1 {below} to i64")
                return self.value(f"add i64 {quotient}, {step}")

    def product(self, sizes: Shape) -> Dim:
        return reduce(dims.mul, sizes, 1)
