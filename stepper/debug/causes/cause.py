"""Say why a run stopped, as plain frozen data.

A cause says what held at the moment, with operation, iteration and line of the file. Nothing here refers to the run:
causes can be pickled, compared and written as JSON. Their words are in texts.py. The words for kinds of data
breakpoints are in the files of the kinds; any_cause.py knows all of them. Numbers that JSON lacks are written like in
all answers: "NaN", "Infinity", "-Infinity".
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
    """Describe an input of an operation of a condition.

    `layer` computes the input; reshapes and conversions are left out. `value` is the value of a single element.
    `carried` is the Parameter into which a back edge carries it. `is_constant`: it follows from constants alone. `row`
    is the index of another row of the loop that shows it.
    """

    layer: LayerSite
    brief: TensorBrief
    value: Scalar | None
    carried: LayerSite | None
    is_constant: bool
    row: int | None = None


class Verdict(Record):
    """A boolean and the operation that gave it, in values: `NotEqual` of 12 and 12 is false.

    `decided_by` are the inputs, of a LogicalAnd, an If and the like, that alone decide the result. `compares`: the
    operation is a simple operation of the operands, and all operands are known. Else only the value is known, for
    example for a loop. `returned` is the Parameter, or operation, of a loop's body whose last value it is.
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
        """Return the operands whose values are shown: non-constants, or all if all are constant."""
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
    """How an element is computed from its contributions; an extent of a broadcast equals each contribution."""

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
    """An element of an input that contributes to an element of the output of an operation: `role` says how.

    In a sum, `amount` is the term and `share` its part of all magnitudes together. In a product, `share` is the
    factor's part of all logarithms (None: no meaning). `is_shape`: the contribution is an extent, and `element` says
    along which axis.
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
    """A value on the path back: its place, its element (None: no particular one), and its value.

    `kind` says where the value comes from; the next link, if there is one, is its origin. `line` is the line of the
    port map entry or back edge through which it came (0: none). `operands` are the inputs of an operation;
    `arithmetic` says why a NaN or Inf first appears in it, and `formula` says it in numbers. `follows` is the
    operand that the next link continues with. `through`, of a back edge: the path repeats through these iterations
    (first and last), whose links are left out. `parts` are the (at most five) largest of the `count` contributions
    to a finite element, in the `form`; `rest` is the share of all others. `is_shape`: the value is an extent, and
    `element` says along which axis. `decides`: the value is the condition of this If, or it ended this loop.
    `reference` is the value in the reference, if any.
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
    """Describe the cause of a stop; `kind` is the name of the cause.

    `number` is the number of the breakpoint (0: none); `location` is where the run stands by it.
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
    """The run came to a place; `condition` is the expression that is true there. `edge` then carries its value from the
    iteration `passing` to the next.
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

    `operands` are all inputs of the operation, at the element where one can be named. `given`: an input of the run has
    it already. `arithmetic` and `formula` say how the operation computes it (None: it does not). `chain` begins at the
    element and goes back through NaN and Inf. `last_clean` is the last operation before the origin, in the same
    iteration, whose results are finite. It is None if this operation is the origin, or if none is near.
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
