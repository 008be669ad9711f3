"""The call stub of a compiled function: from Python objects to the kernel ABI and back, as LLVM text.

    ptr jd_stub(ptr %state, ptr %arguments, i64 %count)

gives a new reference to the result; null where the call is not for this code: other types, sizes or
layouts, a guard that does not hold; `REFUSED` where it was, and Python is to have it all the same: something failed
(memory, a check inside), or it is a sample. Neither is an error: the caller takes the way through Python, which serves or explains every call. It checks what `runtime.dispatch` checks, word by word, in
less than 100 ns instead of 8 us. LLVM text, because each signature has its own and Python is what it replaces.

Results are arrays that an earlier call returned and that nobody holds any more: each result has a ring of
`RING` of them, whose sizes may be set anew while the block is large enough; else the state's allocator, a
Python function of the sizes, makes one. The state is an array of words, see `StateLayout`; one process-wide
*environment* (`ENVIRONMENT`) has the addresses of types and functions of CPython.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Shape, Symbol
from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.runtime.messages import CompileReply, TensorFact
from jitdialects.runtime.native import objects
from jitdialects.runtime.native.stub_text import ENVIRONMENT, StubText

ENTRY = "jd_stub"
REFUSED = 1
"""Given for a call that no other stub is to try. Unlike after null, the GIL may have been let go."""
RING = 4
"""Results kept per result; a power of two."""
TURN_BYTES = 1 << 12
"""Larger results come into the same block again where they can."""
KEEP_BYTES = 1 << 20
"""Larger results are not kept: computing them takes longer than making an array."""
RELEASE_BYTES = 1 << 18
"""A call that touches more runs without the GIL."""
SAMPLE = 16
"""One in so many calls is timed."""
_CONTROL, _DEFAULT = 0xFFC0, 0x1F80
"""As in `runtime.float_environment`."""
_BASE_FLAGS = objects.C_CONTIGUOUS | objects.ALIGNED | objects.WRITEABLE
_SET_ANEW = objects.F_CONTIGUOUS | objects.WRITEABLE
_SLOT = 2
"""Words of a place in a ring: the array (or 0), the bytes of its block."""


@dataclass(frozen=True)
class StateLayout:
    """Words of a state: environment, context of the kernel ABI, calls served, cycles of sampled calls, calls in
    flight, whether results come in a tuple, calls until one goes through Python as a sample,
    calls between such, the shelf of their pool; then the words of constants; then per result its
    allocator, its dtype object, the next place in its ring, and the ring."""

    constants: int
    results: int

    ENV, CONTEXT, CALLS, CYCLES, IN_FLIGHT, TUPLE, TICK, PERIOD, SHELF = range(9)
    FIXED = 9
    PER_RESULT = 3 + RING * _SLOT

    def result(self, number: int) -> int:
        """The first word of a result."""
        return self.FIXED + self.constants + number * self.PER_RESULT

    @property
    def words(self) -> int:
        return self.result(self.results)


def stub_text(signature: Signature, reply: CompileReply, constants: Sequence[int]) -> str:
    """LLVM text that defines the stub and declares the kernel's entry. `constants`: the words that each constant
    of the reply takes in the kernel ABI."""
    stub = _Stub(signature, reply, StateLayout(sum(constants), len(reply.results)))
    stub.build()
    return stub.text()


class _Stub(StubText):
    """Writes one stub."""

    def __init__(self, signature: Signature, reply: CompileReply, layout: StateLayout) -> None:
        super().__init__()
        self.signature = signature
        self.reply = reply
        self.layout = layout
        self.slots: list[str] = []
        self.bytes: list[str] = []
        """Bytes that arguments and results take."""
        self.made: list[str] = []
        self.allocas: list[str] = []

    # ---- arguments

    def build(self) -> None:
        """The whole stub."""
        count = self.value(f"icmp eq i64 %count, {len(self.signature.arguments)}")
        self.need(count)
        self.emit("%env = load ptr, ptr %state")
        for position, argument in enumerate(self.signature.arguments):
            value = self.load("ptr", "%arguments", 8 * position)
            if argument.dtype.weak:
                self._scalar(value, position, argument)
            else:
                self._array(value, position, argument)
        for relation, left, right in self.reply.guards:
            predicate = "eq" if relation == "==" else "sle"
            holds = f"icmp {predicate} i64 {self.size(left)}, {self.size(right)}"
            self.need(self.value(holds))
        self._sample()
        for word in range(self.layout.constants):
            self.slots.append(self.load("i64", "%state", 8 * (self.layout.FIXED + word)))
        self._need_arena()
        self._fly(1)
        for number in range(self.layout.results):
            self.store("ptr", "null", "%held", 8 * number)
        for number, result in enumerate(self.reply.results):
            self._result(number, result)
        arena = self._arena()
        context = "0"
        if self.reply.parallel:
            context = self.load("i64", "%state", 8 * self.layout.CONTEXT)
        self.slots += [arena, context]
        self._run()
        self._give()

    def _scalar(self, value: str, position: int, argument: ArgumentType) -> None:
        if argument.dtype.name == "bool":
            true = self.value(f"icmp eq ptr {value}, {self.environment('true')}")
            false = self.value(f"icmp eq ptr {value}, {self.environment('false')}")
            self.need(self.value(f"or i1 {true}, {false}"))
            self.slots.append(self.value(f"zext i1 {true} to i64"))
            return
        kind = "float" if argument.dtype.name == "float64" else "int"
        type = self.load("ptr", value, objects.TYPE)
        self.need(self.value(f"icmp eq ptr {type}, {self.environment(kind)}"))
        if kind == "float":
            self.slots.append(self.load("i64", value, objects.VALUE))
            return
        convert = self.environment("as_integer")
        number = self.value(f"call i64 {convert}(ptr {value}, ptr %overflow)")
        overflow = self.value("load i32, ptr %overflow")
        self.need(self.value(f"icmp eq i32 {overflow}, 0"))
        self.slots.append(number)
        self.known[Symbol(f"s{position}")] = number

    def _array(self, value: str, position: int, argument: ArgumentType) -> None:
        type = self.load("ptr", value, objects.TYPE)
        self.need(self.value(f"icmp eq ptr {type}, {self.environment('array')}"))
        descriptor = self.load("ptr", value, objects.DESCRIPTOR)
        wanted = argument.dtype.numpy
        layout = objects.ALIGNED | (0 if argument.strided else objects.C_CONTIGUOUS)
        flags = self.value(
            f"and i32 {self.load('i32', value, objects.FLAGS)}, "
            f"{objects.ALIGNED | objects.C_CONTIGUOUS}"
        )
        order = self.value(f"zext i8 {self.load('i8', descriptor, objects.BYTE_ORDER)} to i32")
        differences = [
            self.value(f"xor i32 {found}, {expected}")
            for found, expected in (
                (self.load("i32", descriptor, objects.TYPE_NUMBER), wanted.num),
                (order, ord(wanted.byteorder)),
                (self.load("i32", value, objects.RANK), len(argument.shape)),
                (flags, layout),
            )
        ]
        together = differences[0]
        for difference in differences[1:]:
            together = self.value(f"or i32 {together}, {difference}")
        self.need(self.value(f"icmp eq i32 {together}, 0"))
        self.slots.append(self.load("i64", value, objects.DATA))
        self._sizes(value, position, argument)

    def _sizes(self, value: str, position: int, argument: ArgumentType) -> None:
        shape, item = argument.shape, argument.dtype.numpy.itemsize
        if shape:
            sizes = self.load("ptr", value, objects.SIZES)
            for axis, size in enumerate(shape):
                self._bind(self.load("i64", sizes, 8 * axis), size)
        elif argument.is_integer_scalar:
            data = self.load("ptr", value, objects.DATA)
            number = self.load(f"i{8 * item}", data, 0)
            if item < 8:
                number = self.value(f"sext i{8 * item} {number} to i64")
            self.known[Symbol(f"s{position}")] = number
        self.slots += map(self.size, shape)
        self.bytes.append(self.size(dims.scale(self.product(shape), item)))
        if not argument.strided:
            self.slots += map(self.size, dims.strides(shape))
            return
        strides = self.load("ptr", value, objects.STRIDES)
        for axis in range(len(shape)):
            stride = self.load("i64", strides, 8 * axis)
            self.slots.append(self.value(f"ashr exact i64 {stride}, {item.bit_length() - 1}"))

    def _bind(self, found: str, size: Dim) -> None:
        if size in self.known or isinstance(size, int):
            self.need(self.value(f"icmp eq i64 {found}, {self.size(size)}"))
            return
        ((atom, _),) = size.terms  # a signature has numbers and names only
        self.known[size] = self.known[atom] = found

    # ---- results

    def _sample(self) -> None:
        """Let one in so many calls through: Python is to see which shapes general code serves, and what takes how
        long."""
        tick = self.load("i64", "%state", 8 * self.layout.TICK)
        self.need(self.value(f"icmp ne i64 {tick}, 0"), "sample")
        self.store("i64", self.value(f"sub i64 {tick}, 1"), "%state", 8 * self.layout.TICK)

    def _need_arena(self, not_enough: str = "wanting", busy: str = "miss") -> None:
        """A call that needs more temporaries than there is memory for, or that meets another one, is not taken."""
        if self.reply.arena != 0:
            wanted = self.size(self.reply.arena)
            enough = self.environment("arena_bytes", "i64")
            self.need(self.value(f"icmp ule i64 {wanted}, {enough}"), not_enough)
            is_free = f"icmp eq i64 {self.environment('arena_busy', 'i64')}, 0"
            self.need(self.value(is_free), busy)

    def _arena(self) -> str:
        """The address of the temporaries' memory. Making the results may have let other threads run, which may
        compute there now, or have replaced it."""
        if self.reply.arena == 0:
            return "0"
        self._need_arena("refused", "refused")
        return self.environment("arena", "i64")

    def _result(self, number: int, result: TensorFact) -> None:
        """A result array: an old one that nobody holds, or a new one."""
        at, tag = 8 * self.layout.result(number), f"r{number}"
        item = result.dtype.numpy.itemsize
        bytes = self.size(dims.scale(self.product(result.shape), item))
        self.bytes.append(bytes)
        layout = self._layout(result.shape, item)
        self._look_for_old(tag, at, result, bytes)
        self.label(f"{tag}.reused")
        self._set_sizes(f"%{tag}.old", layout)
        self.emit(f"store i64 2, ptr %{tag}.old")
        self.emit(f"br label %{tag}.have")
        self.label(f"{tag}.fresh")
        self._allocate(tag, at, result, bytes)
        self.label(f"{tag}.have")
        self.emit(f"%{tag} = phi ptr [%{tag}.old, %{tag}.reused], [%{tag}.new, %{tag}.kept]")
        self.store("ptr", f"%{tag}", "%held", 8 * number)
        self.made.append(f"%{tag}")
        self.slots.append(self.load("i64", f"%{tag}", objects.DATA))
        self.slots += map(self.size, (*result.shape, *dims.strides(result.shape)))

    def _look_for_old(self, tag: str, at: int, result: TensorFact, bytes: str) -> None:
        """Find an array of the ring that can be had. A caller that lets large results go meets one block again and
        again, which is in the cache; small ones take turns, since a count just written is slow to read. Where there is
        none, go to where a new one belongs: an empty place, or, where all are held, each in its turn."""
        turn = self.load("i64", "%state", at + 16)
        turned = self.value(f"add i64 {turn}, {8 * _SLOT}")
        turned = self.value(f"and i64 {turned}, {8 * _SLOT * RING - 1}")
        small = self.value(f"icmp ule i64 {bytes}, {TURN_BYTES}")
        first = self.value(f"select i1 {small}, i64 {turned}, i64 {turn}")
        self.store("i64", first, "%state", at + 16)
        self.emit(f"br label %{tag}.first")
        self.label(f"{tag}.first")
        self.emit(f"br label %{tag}.try")
        self.label(f"{tag}.try")
        self.emit(f"%{tag}.offset = phi i64 [{turn}, %{tag}.first], [%{tag}.onward, %{tag}.held]")
        offset = self.value(f"add i64 %{tag}.offset, {at + 24}")
        self.emit(f"%{tag}.place = getelementptr i8, ptr %state, i64 {offset}")
        self.emit(f"%{tag}.old = load ptr, ptr %{tag}.place")
        empty = self.value(f"icmp eq ptr %{tag}.old, null")
        self.emit(f"br i1 {empty}, label %{tag}.fresh, label %{tag}.check, !prof !1")
        self.label(f"{tag}.check")
        self._check_old(tag, at, result, bytes)
        self.label(f"{tag}.held")
        onward = self.value(f"add i64 %{tag}.offset, {8 * _SLOT}")
        self.emit(f"%{tag}.onward = and i64 {onward}, {8 * _SLOT * RING - 1}")
        more = self.value(f"icmp ne i64 %{tag}.onward, {turn}")
        self.emit(f"br i1 {more}, label %{tag}.try, label %{tag}.all")
        self.label(f"{tag}.all")
        self.store("i64", turned, "%state", at + 16)
        self.emit(f"br label %{tag}.fresh")

    def _check_old(self, tag: str, at: int, result: TensorFact, bytes: str) -> None:
        """Take an array that is held by the ring alone, is as it was made but for what is set anew, and whose block is
        large enough, and not four times too large. One that was changed, or has weak references, makes room."""
        old = f"%{tag}.old"
        count = self.load("i64", old, 0)
        self.need(self.value(f"icmp eq i64 {count}, 1"), f"{tag}.held")
        flags = self.load("i32", old, objects.FLAGS)
        flags = self.value(f"and i32 {flags}, {0xFFFF & ~_SET_ANEW}")
        descriptor = self.load("i64", old, objects.DESCRIPTOR)
        words = [
            self.load("i64", old, objects.WEAK),
            self.value(f"xor i64 {descriptor}, {self.load('i64', '%state', at + 8)}"),
        ]
        for found, expected in (
            (flags, _BASE_FLAGS & ~_SET_ANEW),
            (self.load("i32", old, objects.RANK), len(result.shape)),
        ):
            words.append(
                self.value(f"zext i32 {self.value(f'xor i32 {found}, {expected}')} to i64")
            )
        changes = words[0]
        for word in words[1:]:
            changes = self.value(f"or i64 {changes}, {word}")
        self.need(self.value(f"icmp eq i64 {changes}, 0"), f"{tag}.fresh")
        capacity = self.load("i64", f"%{tag}.place", 8)
        least = self.value(f"lshr i64 {capacity}, 2")
        large_enough = self.value(f"icmp ule i64 {bytes}, {capacity}")
        small_enough = self.value(f"icmp uge i64 {bytes}, {least}")
        fits = self.value(f"and i1 {large_enough}, {small_enough}")
        self.emit(f"br i1 {fits}, label %{tag}.reused, label %{tag}.held, !prof !0")

    def _layout(self, shape: Shape, item: int) -> tuple[list[tuple[str, str]], str]:
        """Per axis size and stride in bytes, and the flags."""
        strides = [self.size(dims.scale(stride, item)) for stride in dims.strides(shape)]
        return list(zip(map(self.size, shape), strides, strict=True)), self._flags(shape)

    def _set_sizes(self, array: str, layout: tuple[list[tuple[str, str]], str]) -> None:
        axes, flags = layout
        if axes:
            sizes = self.load("ptr", array, objects.SIZES)
            strides = self.load("ptr", array, objects.STRIDES)
            for axis, (size, stride) in enumerate(axes):
                self.store("i64", size, sizes, 8 * axis)
                self.store("i64", stride, strides, 8 * axis)
        self.store("i32", flags, array, objects.FLAGS)

    def _flags(self, shape: Shape) -> str:
        """An array is Fortran-contiguous too where at most one size is not 1, or one is 0."""
        if len(shape) < 2:
            return str(_BASE_FLAGS | objects.F_CONTIGUOUS)
        longer = "0"
        empty = "false"
        for size in map(self.size, shape):
            is_long = self.value(f"icmp ne i64 {size}, 1")
            longer = self.value(f"add i32 {longer}, {self.value(f'zext i1 {is_long} to i32')}")
            empty = self.value(f"or i1 {empty}, {self.value(f'icmp eq i64 {size}, 0')}")
        few = self.value(f"icmp ule i32 {longer}, 1")
        either = self.value(f"or i1 {few}, {empty}")
        both = _BASE_FLAGS | objects.F_CONTIGUOUS
        return self.value(f"select i1 {either}, i32 {both}, i32 {_BASE_FLAGS}")

    def _allocate(self, tag: str, at: int, result: TensorFact, bytes: str) -> None:
        """Ask the pool's shelf, then the allocator, and keep what comes in the ring in place of what is there."""
        rank = len(result.shape)
        self.allocas.append(f"%{tag}.dims = alloca [{rank + 1} x i64]")
        self.allocas.append(f"%{tag}.sizes = alloca [{rank + 1} x ptr]")
        for axis, size in enumerate(result.shape):
            self.store("i64", self.size(size), f"%{tag}.dims", 8 * axis)
        shelf = self.load("ptr", "%state", 8 * self.layout.SHELF)
        dtype = self.load("ptr", "%state", at + 8)
        new = self.environment("new_array")
        self.emit(
            f"%{tag}.shelved = call ptr {new}(ptr {shelf}, i64 {bytes}, ptr {dtype}, i32 {rank}, "
            f"ptr %{tag}.dims)"
        )
        self.emit(f"%{tag}.some = icmp ne ptr %{tag}.shelved, null")
        self.emit(f"br label %{tag}.look")
        self.label(f"{tag}.look")
        self.emit(f"br i1 %{tag}.some, label %{tag}.made, label %{tag}.ask")
        self.label(f"{tag}.ask")
        self.emit(f"call void {self.environment('clear')}()")
        make, drop = self.environment("from_integer"), self.environment("decref")
        numbers: list[str] = []
        for axis, size in enumerate(result.shape):
            number = self.value(f"call ptr {make}(i64 {self.size(size)})")
            self.store("ptr", number, f"%{tag}.sizes", 8 * axis)
            numbers.append(number)
        whole = "true"
        for number in numbers:
            whole = self.value(f"and i1 {whole}, {self.value(f'icmp ne ptr {number}, null')}")
        self.need(whole, f"{tag}.short")
        allocator = self.load("ptr", "%state", at)
        call = self.environment("call")
        self.emit(
            f"%{tag}.asked = call ptr {call}(ptr {allocator}, ptr %{tag}.sizes, i64 {rank}, ptr null)"
        )
        for number in numbers:
            self.emit(f"call void {drop}(ptr {number})")
        self.need(self.value(f"icmp ne ptr %{tag}.asked, null"), "refused")
        self.emit(f"br label %{tag}.given")
        self.label(f"{tag}.short")
        for number in numbers:
            self.emit(f"call void {drop}(ptr {number})")
        self.emit("br label %refused")
        self.label(f"{tag}.given")
        self.emit(f"br label %{tag}.made")
        self.label(f"{tag}.made")
        self.emit(
            f"%{tag}.new = phi ptr [%{tag}.shelved, %{tag}.look], [%{tag}.asked, %{tag}.given]"
        )
        drop = self.environment("decref")
        few = self.value(f"icmp ule i64 {bytes}, {KEEP_BYTES}")
        self.emit(f"br i1 {few}, label %{tag}.keep, label %{tag}.kept")
        self.label(f"{tag}.keep")
        before = self.value(f"load ptr, ptr %{tag}.place")  # not the old one: Python has run
        count = self.value(f"load i64, ptr %{tag}.new")
        self.emit(f"store i64 {self.value(f'add i64 {count}, 1')}, ptr %{tag}.new")
        self.emit(f"store ptr %{tag}.new, ptr %{tag}.place")
        self.store("i64", bytes, f"%{tag}.place", 8)
        self.emit(f"call void {drop}(ptr {before})")  # which accepts null
        self.emit(f"br label %{tag}.kept")
        self.label(f"{tag}.kept")
        self.emit(f"br label %{tag}.have")

    # ---- the call

    def _run(self) -> None:
        for number, slot in enumerate(self.slots):
            self.store("i64", slot, "%slots", 8 * number)
        total = "0"
        for part in self.bytes:
            total = part if total == "0" else self.value(f"add i64 {total}, {part}")
        calls = self.load("i64", "%state", 8 * self.layout.CALLS)
        self.store("i64", self.value(f"add i64 {calls}, 1"), "%state", 8 * self.layout.CALLS)
        sampled = self.value(f"and i64 {calls}, {SAMPLE - 1}")
        self.emit(f"%timed = icmp eq i64 {sampled}, 0")
        self.emit("br i1 %timed, label %start, label %run, !prof !1")
        self.label("start")
        self.emit("%started = call i64 @llvm.readcyclecounter()")
        self.emit("br label %run")
        self.label("run")
        self.emit(f"%since = phi i64 [0, %{self._block_before('start')}], [%started, %start]")
        self.emit("call void @llvm.x86.sse.stmxcsr(ptr %mode)")
        self.emit("%before = load i32, ptr %mode")
        control = self.value(f"and i32 %before, {_CONTROL}")
        self.emit(f"%strange = icmp ne i32 {control}, {_DEFAULT}")
        self.emit("br i1 %strange, label %set, label %ready, !prof !1")
        self.label("set")
        self.emit(f"store i32 {_DEFAULT}, ptr %mode")
        self.emit("call void @llvm.x86.sse.ldmxcsr(ptr %mode)")
        self.emit("br label %ready")
        self.label("ready")
        long = self.value(f"icmp ugt i64 {total}, {RELEASE_BYTES}")
        self.emit(f"br i1 {long}, label %long, label %short")
        self.label("short")
        self.emit("%status0 = call i32 @jd_entry(ptr %slots)")
        self.emit("br label %done")
        self.label("long")
        self._run_without_gil()
        self.emit("br label %done")
        self.label("done")
        self.emit("%status = phi i32 [%status0, %short], [%status1, %long]")
        self.emit("br i1 %strange, label %reset, label %counted, !prof !1")
        self.label("reset")
        self.emit("store i32 %before, ptr %mode")
        self.emit("call void @llvm.x86.sse.ldmxcsr(ptr %mode)")
        self.emit("br label %counted")
        self.label("counted")
        self.need(self.value("icmp eq i32 %status, 0"), "failed")
        self.emit("br i1 %timed, label %stop, label %ended, !prof !1")
        self.label("stop")
        ended = self.value("call i64 @llvm.readcyclecounter()")
        spent = self.value(f"sub i64 {ended}, %since")
        cycles = self.load("i64", "%state", 8 * self.layout.CYCLES)
        self.store(
            "i64", self.value(f"add i64 {cycles}, {spent}"), "%state", 8 * self.layout.CYCLES
        )
        self.emit("br label %ended")
        self.label("ended")

    def _block_before(self, label: str) -> str:
        """The label of the block that ends with the last branch to `label`."""
        labels = [line[:-1] for line in self.lines if line.endswith(":") and line[0] != " "]
        return labels[labels.index(label) - 1] if labels.index(label) else "entry"

    def _fly(self, change: int) -> None:
        """Count a call that may let the GIL go: its code must stay. What is asked of CPython may run any Python,
        and so any thread: allocators, destructors of what is dropped, a garbage collection for a new tuple."""
        at = self.value(f"getelementptr i8, ptr %state, i64 {8 * self.layout.IN_FLIGHT}")
        flying = self.value(f"load i64, ptr {at}")
        self.emit(f"store i64 {self.value(f'add i64 {flying}, {change}')}, ptr {at}")

    def _run_without_gil(self) -> None:
        busy = self.value(f"getelementptr i8, ptr %env, i64 {8 * ENVIRONMENT.index('arena_busy')}")
        if self.reply.arena != 0:
            self.emit(f"store i64 1, ptr {busy}")
        thread = self.value(f"call ptr {self.environment('release_gil')}()")
        self.emit("%status1 = call i32 @jd_entry(ptr %slots)")
        self.emit(f"call void {self.environment('take_gil')}(ptr {thread})")
        if self.reply.arena != 0:
            self.emit(f"store i64 0, ptr {busy}")

    def _give(self) -> None:
        """Return the one result, or the tuple of results."""
        as_tuple = self.load("i64", "%state", 8 * self.layout.TUPLE)
        if len(self.made) == 1:
            self.emit(f"%alone = icmp eq i64 {as_tuple}, 0")
            self.emit("br i1 %alone, label %one, label %many")
            self.label("one")
            self._fly(-1)
            self.emit(f"ret ptr {self.made[0]}")
            self.label("many")
        new = self.environment("tuple")
        self.emit(f"%tuple = call ptr {new}(i64 {len(self.made)})")
        self.need(self.value("icmp ne ptr %tuple, null"), "refused")
        put = self.environment("set_item")
        for number, array in enumerate(self.made):
            self.emit(f"{self.name()} = call i32 {put}(ptr %tuple, i64 {number}, ptr {array})")
        self._fly(-1)
        self.emit("ret ptr %tuple")
        # the interpreter is to run this call: it is not counted, and what was made for it goes
        self.label("failed")
        calls = self.load("i64", "%state", 8 * self.layout.CALLS)
        self.store("i64", self.value(f"sub i64 {calls}, 1"), "%state", 8 * self.layout.CALLS)
        self.emit("br label %refused")
        self.label("refused")
        drop = self.environment("decref")
        for number in range(len(self.made)):
            self.emit(f"call void {drop}(ptr {self.load('ptr', '%held', 8 * number)})")
        self.emit(f"call void {self.environment('clear')}()")
        self._fly(-1)
        self.emit(f"ret ptr inttoptr (i64 {REFUSED} to ptr)")
        if self.reply.arena != 0:
            self.label("wanting")
            at = 8 * ENVIRONMENT.index("arena_wanted")
            self.store("i64", self.size(self.reply.arena), "%env", at)
            self.emit("br label %miss")
        self.label("sample")
        period = self.load("i64", "%state", 8 * self.layout.PERIOD)
        self.store("i64", period, "%state", 8 * self.layout.TICK)
        # not null: the stub behind this one, of general code, would take the call
        self.emit(f"ret ptr inttoptr (i64 {REFUSED} to ptr)")
        self.label("miss")
        self.emit("ret ptr null")

    def text(self) -> str:
        """The module."""
        body = "\n".join([*(f"  {line}" for line in self.allocas), *self.lines])
        return f"""\
declare i32 @jd_entry(ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.readcyclecounter()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define ptr @{ENTRY}(ptr %state, ptr %arguments, i64 %count) nounwind {{
entry:
  %slots = alloca [{max(1, len(self.slots))} x i64]
  %overflow = alloca i32
  %mode = alloca i32
  %held = alloca [{len(self.made)} x ptr]
{body}
}}

!0 = !{{!"branch_weights", i32 2000, i32 1}}
!1 = !{{!"branch_weights", i32 1, i32 2000}}
"""


def is_servable(reply: CompileReply) -> bool:
    """Whether a stub can serve this code: it has results."""
    return bool(reply.results)
