"""Messages of the protocol: requests with what each carries, and what is answered; names are those of the protocol.

A field that is not here is not read. What is of another type than the protocol says is refused before anything is done.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

Number = int | str | None


class Request(Struct, frozen=True):
    """A request; `arguments` are read when its command is known. What a client answers to us is of another type."""

    seq: int
    type: str
    command: str = ""
    arguments: Raw = Raw(b"{}")


class Response(Struct, frozen=True):
    """Answer to a request."""

    seq: int
    request_seq: int
    success: bool
    command: str
    message: str | UnsetType = UNSET
    body: Any = UNSET
    type: str = "response"


class EventMessage(Struct, frozen=True):
    """Something that happened."""

    seq: int
    event: str
    body: Any = UNSET
    type: str = "event"


# --- what requests carry --------------------------------------------------------------------------------------------


class _Carried(Struct, frozen=True, rename="camel"):
    """Arguments of a request."""


class NoArguments(_Carried, frozen=True):
    """None, or none that matter."""


class InitializeArguments(_Carried, frozen=True):
    """About the client: how it counts, and what it understands."""

    lines_start_at1: bool = field(default=True, name="linesStartAt1")
    columns_start_at1: bool = field(default=True, name="columnsStartAt1")
    supports_progress_reporting: bool = False
    supports_invalidated_event: bool = False
    supports_variable_paging: bool = False


class SourceArguments(_Carried, frozen=True):
    """A source, by path or by number."""

    name: str | None = None
    path: str | None = None
    source_reference: int | None = None


class SourceRequest(_Carried, frozen=True):
    """The text of a source."""

    source: SourceArguments | None = None
    source_reference: int = 0


class LineBreakpoint(_Carried, frozen=True):
    """A breakpoint on a line."""

    line: int
    condition: str | None = None
    hit_condition: str | None = None
    log_message: str | None = None


class LineBreakpoints(_Carried, frozen=True):
    """All breakpoints of a source."""

    source: SourceArguments
    breakpoints: list[LineBreakpoint] = []


class BreakpointLines(_Carried, frozen=True):
    """The lines of a source on which there can be breakpoints."""

    source: SourceArguments
    line: int
    end_line: int | None = None


class NamedBreakpoint(_Carried, frozen=True):
    """A breakpoint by name."""

    name: str
    condition: str | None = None
    hit_condition: str | None = None


class NamedBreakpoints(_Carried, frozen=True):
    """All breakpoints by name."""

    breakpoints: list[NamedBreakpoint]


class ValueBreakpoint(_Carried, frozen=True):
    """A breakpoint on a value."""

    data_id: str
    access_type: str | None = None
    condition: str | None = None
    hit_condition: str | None = None


class ValueBreakpoints(_Carried, frozen=True):
    """All breakpoints on values."""

    breakpoints: list[ValueBreakpoint]


class ValueBreakpointQuestion(_Carried, frozen=True):
    """Question for a breakpoint on a value."""

    name: str
    variables_reference: int = 0
    frame_id: int | None = None


class ExceptionOption(_Carried, frozen=True):
    """An exception filter with a condition."""

    filter_id: str
    condition: str | None = None


class ExceptionFilters(_Carried, frozen=True):
    """All exception filters that are on."""

    filters: list[str] = []
    filter_options: list[ExceptionOption] = []


class FrameArguments(_Carried, frozen=True):
    """A stack frame."""

    frame_id: int


class StepInArguments(_Carried, frozen=True):
    """A step into something."""

    target_id: int | None = None


class StackArguments(_Carried, frozen=True):
    """A part of the stack."""

    start_frame: int | None = None
    levels: int | None = None


class VariablesArguments(_Carried, frozen=True):
    """A part of the variables in something."""

    variables_reference: int
    filter: Literal["indexed", "named"] | None = None
    start: int | None = None
    count: int | None = None


class SetVariableArguments(_Carried, frozen=True):
    """Another value for a variable."""

    variables_reference: int
    name: str
    value: str


class SetExpressionArguments(_Carried, frozen=True):
    """Another value for what an expression names."""

    expression: str
    value: str
    frame_id: int | None = None


class EvaluateArguments(_Carried, frozen=True):
    """An expression, or a command where the context is `repl`."""

    expression: str
    frame_id: int | None = None
    context: str = ""


class CompletionArguments(_Carried, frozen=True):
    """A line, and where the cursor is in it."""

    text: str
    column: int
    line: int | None = None
    frame_id: int | None = None


class GotoLine(_Carried, frozen=True):
    """A line to go to."""

    source: SourceArguments
    line: int


class GotoArguments(_Carried, frozen=True):
    """A target to go to."""

    target_id: int


class FigureArguments(_Carried, frozen=True):
    """Arguments of `stepper/figure`: the number that a stop has given."""

    figure: int


class MemoryArguments(_Carried, frozen=True):
    """Bytes of a tensor."""

    memory_reference: str
    count: int
    offset: int = 0


class CancelArguments(_Carried, frozen=True):
    """A request, or a movement with a progress, to leave off."""

    request_id: int | None = None
    progress_id: str | None = None


# --- what is answered -----------------------------------------------------------------------------------------------


class _Shown(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Part of an answer; what is as usual is left out."""


class ShownSource(_Shown, frozen=True):
    """A source: a file, or a text that is asked for by its number."""

    name: str
    path: str = ""
    source_reference: int = 0
    origin: str = ""


class ShownBreakpoint(_Shown, frozen=True):
    """Result for a breakpoint that was wanted."""

    verified: bool
    id: int | None = None
    message: str = ""
    source: ShownSource | None = None
    line: int | None = None


class ShownFrame(_Shown, frozen=True):
    """A stack frame."""

    id: int
    name: str
    line: int
    column: int
    source: ShownSource | None = None
    can_restart: bool | None = None
    presentation_hint: str = ""


class ShownScope(_Shown, frozen=True):
    """A scope of a frame."""

    name: str
    variables_reference: int
    expensive: bool
    named_variables: int | None = None
    presentation_hint: str = ""


class VariableHint(_Shown, frozen=True):
    """How a variable is shown: of what kind it is, and whether it can be changed."""

    kind: str = ""
    attributes: tuple[str, ...] = ()


class ShownVariable(_Shown, frozen=True):
    """A variable; with a reference there are others in it."""

    name: str
    value: str
    variables_reference: int
    type: str = ""
    evaluate_name: str = ""
    indexed_variables: int | None = None
    named_variables: int | None = None
    memory_reference: str = ""
    presentation_hint: VariableHint | None = None


class ShownResult(_Shown, frozen=True):
    """The value of an expression, or the answer of a command."""

    result: str
    variables_reference: int
    type: str = ""
    indexed_variables: int | None = None
    memory_reference: str = ""


class ShownTarget(_Shown, frozen=True):
    """Somewhere to go to or to step into."""

    id: int
    label: str
    line: int
    column: int | None = None


class ShownCompletion(_Shown, frozen=True):
    """A way in which a line can go on: `text` stands in place of `length` characters from `start` on."""

    label: str
    text: str
    start: int
    length: int
    detail: str = ""
    type: str = ""
