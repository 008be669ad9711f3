"""`loop`: perfectly nested iteration spaces over memrefs, each with a kind per axis and a schedule.

A `loop.nest` says which index points are visited and which axes may be visited in any order. How they are
visited is its `#loop.schedule`, which passes write (`loop-schedule`) and carry out (`loop-tile`,
`loop-interchange`, ...); dropping a schedule never changes a result.

    loop.nest (%i, %j) = (%c0, %c0) to (%m, %n) step (1, 1) kinds [parallel, parallel]
        schedule <tile = [0, 16], order = [1, 0], vector = 16, jam = [6, 1]> {
      ...
    }

Axis `a` takes the values `lower, lower + step, ...` below `upper`; comparisons are signed, and
`upper <= lower` means that the body does not run. `parallel`: points that differ in this axis neither read
nor write what another of them writes, so they may run in any order. `reduction`: ascending, one by one,
which is meaning (floating-point sums do not commute). Bounds are operands of the nest, so no axis bounds another.

`loop.parallel` is a loop whose iterations may be shared out to threads in chunks; see its documentation.
`loop.elementary` is a function of one element in such a body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    I64,
    AnyFloatConstr,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    StringAttr,
    VectorType,
)
from xdsl.ir import Block, BlockArgument, Data, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    Pure,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from jitdialects.bytecode.elementary import elementary_functions
from jitdialects.dialects.interfaces import AllocationScope, Elementwise
from jitdialects.dialects.interned import i64_array
from jitdialects.dialects.schedules import LISTS, NUMBERS, Schedule, problem_of

PARALLEL = "parallel"
REDUCTION = "reduction"
KINDS = (PARALLEL, REDUCTION)

KIND = "loop.kind"
"""Discardable attribute of `scf.for`: `"parallel"` or `"reduction"`, as for an axis of a nest."""
SCHEDULE = "loop.schedule"
"""Discardable attribute of `scf.for`: a `#loop.schedule` for this one loop."""
NOALIAS = "loop.noalias"
"""Unit attribute of a function: in one nest, what is written through one of its memref arguments is reached through
no other, and `memref.view`s of one argument at different offsets do not overlap."""
PACKED = "loop.packed"
"""Attribute of a function's argument that is a constant, i64: the columns of the panels it comes in."""
INTERLEAVE = "loop.interleave"
"""Attribute of a module, unit: its vectors of several registers are independent chains, which code generation keeps
side by side rather than doing one after the other to save registers."""
REMARK = "loop.remark"
"""Discardable attribute of a loop: the sentence with which a pass refused to carry out its schedule."""


@irdl_attr_definition
class ScheduleAttr(Data[Schedule]):
    """`#loop.schedule<tile = [6, 16], order = [1, 0], vector = 8, jam = [6, 2], unroll = 4>`."""

    name = "loop.schedule"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Schedule:
        with parser.in_angle_brackets():
            return _parse_schedule(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(_schedule_text(self.data))

    def verify(self) -> None:
        problem = problem_of(self.data)
        if problem is not None:
            raise VerifyException(problem)


def _schedule_text(schedule: Schedule) -> str:
    asked = [f'asked = "{schedule.asked}"'] if schedule.asked else []
    return ", ".join(([str(schedule)] if schedule else []) + asked)


def _parse_schedule(parser: AttrParser) -> Schedule:
    found: dict[str, Any] = {}
    while (key := parser.parse_optional_identifier()) is not None:
        if key in found:
            parser.raise_error(f"{key} is given twice in this schedule")
        parser.parse_punctuation("=")
        if key in LISTS:
            found[key] = tuple(
                parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            )
        elif key in NUMBERS:
            found[key] = parser.parse_integer()
        elif key == "asked":
            found[key] = parser.parse_str_literal()
        else:
            parser.raise_error(
                f"{key} is no key of a schedule: {', '.join(f.name for f in fields(Schedule) if f.name != 'asked')}"
            )
        if parser.parse_optional_punctuation(",") is None:
            break
    return Schedule(**found)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of a nest (where it is not printed) or of a parallel region. It carries nothing."""

    name = "loop.yield"
    assembly_format = "attr-dict"
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(NestOp, ParallelOp), Pure()))


@irdl_op_definition
class NestOp(IRDLOperation):
    """n loops, each perfectly inside the one before it; see the module's documentation."""

    name = "loop.nest"

    lower = var_operand_def(IndexType)
    upper = var_operand_def(IndexType)
    steps = prop_def(DenseArrayBase[I64])
    kinds = prop_def(ArrayAttr[StringAttr])
    schedule = opt_prop_def(ScheduleAttr)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(SingleBlockImplicitTerminator(YieldOp), RecursiveMemoryEffect())

    def __init__(
        self,
        lower: Sequence[SSAValue | Operation],
        upper: Sequence[SSAValue | Operation],
        steps: Sequence[int],
        kinds: Sequence[str],
        body: Region | Block,
        schedule: Schedule | ScheduleAttr | None = None,
    ) -> None:
        if isinstance(schedule, Schedule):
            schedule = ScheduleAttr(schedule) if schedule else None
        super().__init__(
            operands=[lower, upper],
            properties={
                "steps": i64_array(*steps),
                "kinds": ArrayAttr(StringAttr(kind) for kind in kinds),
                "schedule": schedule,
            },
            regions=[Region(body) if isinstance(body, Block) else body],
        )
        for trait in self.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(self, trait)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.lower)

    @property
    def ivs(self) -> tuple[BlockArgument, ...]:
        """The index variables, outermost axis first."""
        return self.body.block.args

    @property
    def step_values(self) -> tuple[int, ...]:
        return self.steps.get_values()

    @property
    def kind_names(self) -> tuple[str, ...]:
        return tuple(kind.data for kind in self.kinds)

    def verify_(self) -> None:
        rank = len(self.lower)
        if rank == 0:
            raise VerifyException(
                "loop.nest has no axis; give one lower and one upper bound per axis"
            )
        counts = (len(self.upper), len(self.steps), len(self.kinds), len(self.body.block.args))
        for what, count in zip(
            ("upper bounds", "steps", "kinds", "index variables"), counts, strict=True
        ):
            if count != rank:
                raise VerifyException(f"loop.nest has {rank} lower bounds but {count} {what}")
        if any(step <= 0 for step in self.step_values):
            raise VerifyException("a step of loop.nest is not positive; loops run upwards")
        for kind in self.kind_names:
            if kind not in KINDS:
                raise VerifyException(f"{kind} is no kind of axis: {' or '.join(KINDS)}")
        if any(not isinstance(arg.type, IndexType) for arg in self.body.block.args):
            raise VerifyException("an index variable of loop.nest is not of type index")
        problem = problem_of(self.schedule.data, rank) if self.schedule is not None else None
        if problem is not None:
            raise VerifyException(problem)

    def print(self, printer: Printer) -> None:
        def values(items: Sequence[SSAValue]) -> None:
            with printer.in_parens():
                printer.print_list(items, printer.print_ssa_value)

        printer.print_string(" ")
        values(self.ivs)
        printer.print_string(" = ")
        values(self.lower)
        printer.print_string(" to ")
        values(self.upper)
        steps = ", ".join(map(str, self.step_values))
        printer.print_string(f" step ({steps}) kinds [{', '.join(self.kind_names)}]")
        if self.schedule is not None:
            printer.print_string(" schedule ")
            self.schedule.print_parameter(printer)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_block_terminators=False)

    @classmethod
    def parse(cls, parser: Parser) -> NestOp:
        def index_operands() -> list[SSAValue]:
            names = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_unresolved_operand
            )
            return [parser.resolve_operand(name, IndexType()) for name in names]

        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
        parser.parse_punctuation("=")
        lower = index_operands()
        parser.parse_keyword("to")
        upper = index_operands()
        parser.parse_keyword("step")
        steps = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_integer)
        parser.parse_keyword("kinds")
        kinds = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
        schedule = None
        if parser.parse_optional_keyword("schedule"):
            schedule = ScheduleAttr.new(ScheduleAttr.parse_parameter(parser))
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region([argument.resolve(IndexType()) for argument in arguments])
        if not body.blocks:
            parser.raise_error("loop.nest needs a body")
        nest = cls(lower, upper, steps, kinds, body, schedule)
        if attributes is not None:
            nest.attributes |= attributes.data
        return nest


@irdl_op_definition
class ParallelOp(IRDLOperation):
    """`loop.parallel (%begin, %end) = (%lower) to (%upper) chunk (%c) { ... loop.yield }`

    The body runs for ranges [begin, end) that together are [lower, upper), each `c` long but the last, or
    for several of them as one: in any order, at the same time, on any thread. `c` is positive; nothing runs
    if `upper <= lower`. Stack memory of the body belongs to one run of it. Operands are of type index until
    `convert-to-llvm`, then i64.
    """

    name = "loop.parallel"

    lower = operand_def(IndexType | I64)
    upper = operand_def(IndexType | I64)
    chunk = operand_def(IndexType | I64)
    body = region_def()

    traits = traits_def(RecursiveMemoryEffect(), AllocationScope())

    @property
    def begin(self) -> BlockArgument:
        """Where a range begins; it ends at the argument after it."""
        return self.body.blocks[0].args[0]

    def verify_(self) -> None:
        block = self.body.first_block
        if block is None or len(block.args) != 2:
            raise VerifyException(
                "the body of loop.parallel takes the begin and the end of a range"
            )
        if any(value.type != self.lower.type for value in (*self.operands, *block.args)):
            raise VerifyException("bounds, chunk and range of loop.parallel are of one type")

    def print(self, printer: Printer) -> None:
        block = self.body.first_block
        assert block is not None
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(block.args, printer.print_ssa_value)
        for word, value in zip((" = ", " to ", " chunk "), self.operands, strict=True):
            printer.print_string(word)
            with printer.in_parens():
                printer.print_ssa_value(value)
        printer.print_string(" : ")
        printer.print_attribute(self.lower.type)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> ParallelOp:
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
        names: list[UnresolvedOperand] = []
        for word in ("=", "to", "chunk"):
            _ = parser.parse_punctuation("=") if word == "=" else parser.parse_keyword(word)
            with parser.in_parens():
                names.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(":")
        type = parser.parse_type()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region([argument.resolve(type) for argument in arguments])
        return cls.create(
            operands=[parser.resolve_operand(name, type) for name in names],
            regions=[body],
            attributes=attributes.data if attributes is not None else {},
        )


@irdl_op_definition
class ElementaryOp(IRDLOperation):
    """`%y = loop.elementary "gelu" %x : vector<8xf32>`: a function of `bytecode/elementary.json` that `math` has no
    operation for, of f32 or f64 or of each lane. `expand-elementary` replaces it by its steps."""

    T: ClassVar = VarConstraint("T", AnyFloatConstr | VectorType.constr(AnyFloatConstr))

    name = "loop.elementary"
    function = prop_def(StringAttr)
    operand = operand_def(T)
    result = result_def(T)
    assembly_format = "$function $operand attr-dict `:` type($result)"
    traits = traits_def(Pure(), Elementwise())

    def verify_(self) -> None:
        known = elementary_functions()
        if self.function.data not in known:
            raise VerifyException(
                f"{self.function.data} is no elementary function; there are {', '.join(known)}"
            )


LOOP = Dialect("loop", [ElementaryOp, NestOp, ParallelOp, YieldOp], [ScheduleAttr])
