"""Why a run stopped, as plain frozen data: what held at the moment, in which operation, iteration and line of the file.

Nothing here refers to the run: causes can be pickled, compared and written as JSON. Their words are in texts.py. Those
of the kinds of data breakpoints are in the files of the kinds; any_cause.py knows all of them.
Numbers that JSON lacks are written as it is done in all answers: "NaN", "Infinity", "-Infinity".
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

from stepper.element_types import Indices, Shape
from stepper.ir.model import BodyRole, LayerSite
from stepper.plain_values import record_data
from stepper.records import Record
from stepper.wording import excerpt

Scalar = bool | int | float | str
"""The value of an element; NaN and the infinities as text."""
Element = Indices


class Trigger(StrEnum):
    """Origin of a stop: a breakpoint, the search for the next anomaly, the aim of a movement, or the run itself."""

    BREAKPOINT = "breakpoint"
    ANOMALY = "anomaly"
    AIM = "aim"
    ERROR = "error"


class Reason(StrEnum):
    """Reason why a movement ended where it did."""

    MOVED = "moved"
    BREAK = "break"
    PAUSED = "paused"
    END = "end of the run"
    START = "start of the run"
    NOWHERE = "nothing to move to"


class NonFiniteKind(StrEnum):
    """Number that is not finite."""

    NAN = "nan"
    INF = "inf"


# --- places and values ----------------------------------------------------------------------------------------------


class Enclosure(Record):
    """A loop or an If around a place: which body of it runs, and in which iteration (None: of an If, or before the
    first).
    """

    layer: LayerSite
    body: BodyRole
    iteration: int | None


class Location(Record):
    """Place in a run: an operation (None: none in particular), the index of its output, and what is around it, from the
    outside inwards.
    """

    operation: LayerSite | None = None
    output: int | None = None
    path: tuple[Enclosure, ...] = ()

    @property
    def type(self) -> str:
        """Return the type of the operation; empty for none."""
        return "" if self.operation is None else self.operation.type

    @property
    def iteration(self) -> int | None:
        """Return the iteration of the innermost loop; None outside of every loop."""
        return next((one.iteration for one in reversed(self.path) if one.body == "body"), None)


def _in_short(location: Location) -> str:
    where = ", ".join(f"@{one.iteration}" for one in location.path if one.iteration is not None)
    return f"{excerpt(str(location.operation or 'the run'))}{f' {where}' if where else ''}"


class TensorBrief(Record):
    """A tensor in few words: its type and shape; `text` has its numbers, too, where they are few."""

    type: str
    shape: Shape
    text: str


class ValueChange(Record):
    """Difference of a value from another: `count` of `size` elements, `first` the first of them, from what to what.

    `first` is None where the values are compared as a whole, because there is one element or another type or shape.
    """

    before: TensorBrief
    now: TensorBrief
    count: int = 0
    size: int = 0
    first: Element | None = None
    first_before: str = ""
    first_now: str = ""


class Carried(Record):
    """A back edge of a loop: from which Result to which Parameter of its body, and the line of the edge."""

    result: LayerSite
    parameter: LayerSite
    line: int


class VerdictOperand(Record):
    """An input of an operation of a condition: `layer` computes it, reshapes and conversions left out.

    `value` is that of a single element. `carried` is the Parameter into which a back edge carries it; `is_constant`: it
    follows from constants alone. `row` is the index of another row of the loop that shows it.
    """

    layer: LayerSite
    brief: TensorBrief
    value: Scalar | None
    carried: LayerSite | None
    is_constant: bool
    row: int | None = None


class Verdict(Record):
    """A boolean and the operation that gave it, in values: `NotEqual` of 12 and 12 is false.

    `decided_by` are the inputs, of a LogicalAnd, an If and the like, that alone make it what it is. `compares`: it is a
    simple operation of the operands, all of which are known; else the value alone can be told, as of a loop.
    `returned` is the Parameter, or operation, of a loop's body whose last value it is.
    """

    layer: LayerSite
    value: bool
    operands: tuple[VerdictOperand, ...] = ()
    decided_by: tuple[Verdict, ...] = ()
    compares: bool = True
    returned: LayerSite | None = None

    @property
    def root(self) -> Verdict:
        """Return the verdict that decided: the first one without others behind it."""
        return self.decided_by[0].root if self.decided_by else self

    @property
    def compared(self) -> tuple[VerdictOperand, ...]:
        """The operands that explain the value; none where they do not."""
        return self.operands if self.compares else ()

    @property
    def told(self) -> tuple[VerdictOperand, ...]:
        """The operands whose values are told: those that are no constants, or all where there are no others."""
        return tuple(one for one in self.compared if not one.is_constant) or self.compared


# --- how a NaN or an Inf appears ------------------------------------------------------------------------------------


class Arithmetic(StrEnum):
    """Reason why an operation gives a NaN or an Inf that none of its inputs has."""

    DIVISION_BY_ZERO = "division by zero"
    ZERO_BY_ZERO = "0 / 0"
    INF_BY_INF = "Inf / Inf"
    INF_MINUS_INF = "Inf - Inf"
    ZERO_TIMES_INF = "0 * Inf"
    OVERFLOW = "overflow"
    LOG_OF_ZERO = "logarithm of 0"
    LOG_OF_NEGATIVE = "logarithm of a negative number"
    ROOT_OF_NEGATIVE = "square root of a negative number"
    POWER_OF_NEGATIVE = "broken power of a negative number"
    OUT_OF_DOMAIN = "outside of the domain"
    INF_IN_SUM = "Inf in a sum"
    UNKNOWN = "unknown"


class OperandValue(Record):
    """An input of an operation: what computes it, its type and shape, and how many of its elements are NaN or infinite.

    `element` is the one that the element spoken of is made of (None: of several), `value` what it is.
    """

    input: int
    layer: LayerSite
    output: int
    type: str
    shape: Shape
    nan: int
    inf: int
    element: Element | None = None
    value: Scalar | None = None

    @property
    def is_finite(self) -> bool:
        """True if no element is NaN or infinite."""
        return not (self.nan or self.inf)


class LinkKind(StrEnum):
    """Role of a link of a chain."""

    COMPUTED = "computed"
    BORN = "born"
    DIVERGED = "diverged"
    """Computed of operands that are equal in the reference: here the difference begins."""
    BACK_EDGE = "back edge"
    INITIAL = "initial value"
    SLICE = "slice"
    INVARIANT = "invariant input"
    BRANCH_INPUT = "input of a branch"
    LAST_VALUE = "last value"
    SCAN = "scan output"
    BRANCH_OUTPUT = "output of a branch"
    NUMBER = "iteration number"
    GIVEN = "model input"
    CONSTANT = "constant"
    STATE = "variable"
    EDITED = "set by the user"
    NO_ITERATION = "no iteration ran"
    FAILED = "failed"


class LinkForm(StrEnum):
    """How an element is made of its parts; an extent of a broadcast is that of each of them."""

    SUM = "sum"
    PRODUCT = "product"
    QUOTIENT = "quotient"
    FUNCTION = "function"
    CHOICE = "choice"
    COMPARISON = "comparison"
    MOVE = "move"
    BROADCAST = "broadcast"
    WHOLE = "whole"


class PartRole(StrEnum):
    """Role of a part: it is a share of the result, decides it, was compared with what did, or says where from."""

    TERM = "term"
    FACTOR = "factor"
    DIVISOR = "divisor"
    ARGUMENT = "argument"
    DECIDES = "decides"
    COMPARED = "compared"
    INDEX = "index"
    CONDITION = "condition"


class LinkPart(Record):
    """An element of an input of an operation that an element of its output is made of: `role` says how.

    Of a term of a sum `amount` is the term, `share` its part of all magnitudes together; of a factor of a product its
    part of all logarithms (None: no meaning). `is_shape`: it is an extent, and `element` says along which axis.
    """

    input: int
    layer: LayerSite
    output: int
    element: Element | None
    value: Scalar | None
    role: PartRole
    amount: float | None = None
    share: float | None = None
    is_shape: bool = False


class Link(Record):
    """A value on the way back: where it is, which element (None: no one in particular), and what it is.

    `kind` says where it comes from: the next link is that, if there is one. `line` is that of the entry of the port map
    or of the back edge that it came through (0: none). `operands` are the inputs of an operation; `arithmetic` is why
    a NaN or Inf is born in it, and `formula` the same in numbers. `follows` is the operand that the next link is.
    `through`, of a back edge: it came the same way through these iterations (first and last), whose links are left out.
    `parts` are the (at most five) largest of the `count` elements that a finite one is made of, in the `form`;
    `rest` is the share of all others. `is_shape`: the value is an extent, `element` says along which axis. `decides`:
    it is the condition of this If, or what ended this loop, which gave what the link before is. `reference` is what the
    reference has there, if anything.
    """

    location: Location
    type: str
    shape: Shape
    element: Element | None
    value: Scalar | None
    kind: LinkKind
    line: int = 0
    operands: tuple[OperandValue, ...] = ()
    arithmetic: Arithmetic | None = None
    formula: str = ""
    follows: int | None = None
    through: tuple[int, int] | None = None
    form: LinkForm | None = None
    parts: tuple[LinkPart, ...] = ()
    count: int = 0
    rest: float | None = None
    is_shape: bool = False
    decides: LayerSite | None = None
    reference: Scalar | None = None


class Chain(Record):
    """Origin of a value, link by link, back in time. `stopped` says why it ends before its beginning, if so."""

    links: tuple[Link, ...]
    stopped: str = ""

    def __repr__(self) -> str:
        ends = dict.fromkeys(link.location for link in (*self.links[:1], *self.links[-1:]))
        where = " back to ".join(map(_in_short, ends))
        return f"<Chain of {len(self.links)} links: {where}{'' if self.birth else ', not its beginning'}>"

    @property
    def birth(self) -> Link | None:
        """Return the link at which it begins; None where that was not found."""
        return self.links[-1] if self.links and not self.stopped else None


# --- causes ---------------------------------------------------------------------------------------------------------


class Cause(Struct, frozen=True, kw_only=True, tag_field="form"):
    """Cause of a stop, of which `kind` is the name. `number` is that of the breakpoint (0: none); `location` is
    where the run stands by it.
    """

    kind: str
    location: Location
    trigger: Trigger = Trigger.BREAKPOINT
    number: int = 0

    def __repr__(self) -> str:
        number = f", {self.trigger} {self.number}" if self.number else ""
        return f"<{type(self).__name__} ({self.kind}): {_in_short(self.location)}{number}>"


class PlaceEvent(StrEnum):
    """Event at a place where a breakpoint is."""

    RAN = "ran"
    BEGAN = "an iteration began"
    CAME_IN = "got its value"
    WENT_OUT = "went out"


class Reached(Cause, frozen=True, kw_only=True):
    """The run came to a place; `condition` is the expression that is true there. `edge` carries its value at this
    moment, from the iteration `passing` to the next.
    """

    kind: Literal["reached"] = "reached"
    what: PlaceEvent
    condition: str = ""
    edge: Carried | None = None
    passing: int | None = None


class Became(Cause, frozen=True, kw_only=True):
    """An expression is true; `was_false`: and was not in the iteration before."""

    kind: Literal["expression"] = "expression"
    expression: str
    was_false: bool


class Unevaluated(Cause, frozen=True, kw_only=True):
    """An expression cannot be evaluated here; `message` says why."""

    kind: Literal["unknown"] = "unknown"
    expression: str
    message: str


class NonFinite(Cause, frozen=True, kw_only=True):
    """A NaN or Inf (`kind`) appears in an output: `element` is the first of the `count` of `size` that have it.

    `operands` are all inputs of the operation, at that element where one can be named. `given`: an input has it
    already, as the run was given it. `arithmetic` and `formula` say how it is made of them (None: it is not). `chain`
    begins at the element, and goes back through what was NaN or infinite already. `last_clean` is the last operation
    before its birth, in the same iteration, whose results are finite; None where the birth is here, or none is near.
    """

    kind: NonFiniteKind
    element: Element
    count: int
    size: int
    operands: tuple[OperandValue, ...]
    given: bool
    arithmetic: Arithmetic | None
    formula: str
    chain: Chain = Chain(())
    last_clean: Location | None = None

    @property
    def came_with(self) -> OperandValue | None:
        """Return the input with which it came in, as the run or the file has it; None where the operation makes it."""
        if not self.given or self.arithmetic is not None:
            return None
        dirty = [one for one in self.operands if (one.nan if self.kind is NonFiniteKind.NAN else one.inf)]
        return next((one for one in dirty if one.element is not None), dirty[0] if dirty else None)


class RunFailed(Cause, frozen=True, kw_only=True):
    """The run met an error and stands before the operation that failed."""

    kind: Literal["error"] = "error"
    message: str


# --- as JSON --------------------------------------------------------------------------------------------------------


def cause_data(cause: Cause) -> dict[str, Any]:
    """Return a cause as JSON has it, `form` being the name of its type."""
    return {"form": type(cause).__name__, **record_data(cause)}
