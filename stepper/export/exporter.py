"""From a model or a run to a figure and its files: the one door to the views and the writers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from stepper.engine.machine import Machine
from stepper.engine.partners import Partner, default_partner
from stepper.errors import UsageError
from stepper.export.figures.choice import Choice, Values
from stepper.export.figures.figure import Arrangement, Figure
from stepper.export.figures.loop_trace import LoopTrace, Tracer, split_activation
from stepper.export.figures.places import LoopPlace, find_loop, loops_of
from stepper.export.layout.columns import arrange_columns
from stepper.export.layout.drawing import Drawing
from stepper.export.layout.layered import arrange_layered
from stepper.export.layout.stack import arrange_stack
from stepper.export.views.ports import ports_figure
from stepper.export.views.static import loop_facts, model_figure, rolled_figure
from stepper.export.views.unrolled import iteration_figures, unrolled_figure
from stepper.export.writers.dot import dot, drawn_by_dot
from stepper.export.writers.html import html
from stepper.export.writers.markdown import markdown
from stepper.export.writers.mermaid import mermaid
from stepper.export.writers.placed_dot import placed_dot
from stepper.export.writers.svg import extent, svg
from stepper.export.writers.tables import trace_csv, trace_json
from stepper.export.writers.themes import Theme
from stepper.ir.excerpts import excerpt
from stepper.ir.model import Model
from stepper.ir.opening import ModelSource, opened
from stepper.recording.options import Iterations

SMALLEST_TEXT: Final = 6.0
"""Pixels; a figure whose text would be smaller on the page is not readable there."""

FONT_SIZE: Final = 13
S = TypeVar("S", bound=StrEnum)

LONGEST_FLOWCHART: Final = 50_000
"""Characters of Mermaid text; its `maxTextSize` if nothing else is set."""

MOST_AROUND: Final = 150
"""Boxes of iterations round which Graphviz leads lines in a second; of more it takes longer than a reader waits."""

MANY: Final = 200
"""Iterations above which a drawing is warned about."""


class View(StrEnum):
    """What a figure shows."""

    MODEL = "model"
    ROLLED = "rolled"
    UNROLLED = "unrolled"
    PORTS = "ports"


class Format(StrEnum):
    """What it is written as."""

    DOT = "dot"
    SVG = "svg"
    PNG = "png"
    PDF = "pdf"
    MD = "md"
    MERMAID = "mermaid"
    HTML = "html"
    JSON = "json"
    CSV = "csv"


class Placer(StrEnum):
    """Who lays an SVG out: our own layout (the same bytes everywhere), or Graphviz."""

    OWN = "own"
    DOT = "dot"


def _say_nothing(_text: str) -> None:
    """What is done with warnings that nobody asked for: a function of the module, which pickles."""


class Request(Struct, frozen=True):
    """What is asked for. `view` None: the unrolled trace where there are inputs, else a rolled body, else the model.

    `iterations` is such as `0:3,-1` ("": all; None: all of a short run, the ends of a long one). `width` is that of the
    page in pixels. `warn` is told what a user should know.
    """

    view: View | None = None
    loop: str | None = None
    iterations: str | None = None
    choice: Choice = field(default_factory=Choice)
    theme: Theme = Theme.AUTO
    width: int | None = None
    placer: Placer = Placer.OWN
    warn: Callable[[str], None] = _say_nothing


class Picture(Struct, frozen=True):
    """A figure that can be written in every format, and that shows itself in a notebook.

    `loop_facts` are what the file says of the beginning and the end of a loop that was run.
    """

    figure: Figure
    request: Request = field(default_factory=Request)
    place: LoopPlace | None = None
    trace: LoopTrace | None = None
    loop_facts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.figure.title}. {self.figure.description}"

    def __repr__(self) -> str:
        return f"<Picture: {excerpt(self.figure.title, 200)}>"

    def written(self, format: Format | str) -> bytes:
        """The file's content. UsageError where the view has none in that format, or a program for it is missing."""
        chosen = Format(format)
        if chosen in (Format.PNG, Format.PDF, Format.SVG) and self.request.placer is Placer.DOT:
            few = len(self.figure.nodes) <= MOST_AROUND
            has_places = self.figure.arrangement is Arrangement.STACK and few
            return drawn_by_dot(self.dot(), chosen, placed=has_places)
        if chosen in (Format.PNG, Format.PDF):
            text = placed_dot(self.figure, arranged(self.figure), self.request.theme)
            return drawn_by_dot(text, chosen, placed=True)
        return self._text(chosen).encode("utf-8")

    def _text(self, format: Format) -> str:
        if format in (Format.HTML, Format.JSON, Format.CSV):
            return self._of_trace(format)
        if format is Format.MD:
            return markdown(self.figure, self.place, self.trace)
        writers: dict[Format, Callable[[], str]] = {
            Format.SVG: self.svg,
            Format.DOT: self.dot,
            Format.MERMAID: self.mermaid,
        }
        return writers[format]()

    def _of_trace(self, format: Format) -> str:
        if self.trace is None:
            raise UsageError(f"--as {format} shows a run; it needs --view unrolled and inputs")
        if format is Format.JSON:
            return trace_json(self.trace, self.request.choice)
        if format is Format.CSV:
            return trace_csv(self.trace, self.request.choice)
        figures = iteration_figures(self.trace, self.request.choice, self.loop_facts)
        if not figures:
            raise UsageError("the loop ran no iteration, so there is none for a slider to show")
        return html(figures, self.request.theme)

    def svg(self) -> str:
        """SVG by our own layout. UsageError where it would not be readable in the width asked for."""
        drawing = arranged(self.figure)
        self._check_width(extent(self.figure, drawing)[0])
        return svg(self.figure, drawing, self.request.theme, self.request.width)

    def _check_width(self, wide: int) -> None:
        width = self.request.width
        if width is None or wide <= width:
            return
        size = FONT_SIZE * width / wide
        if size < SMALLEST_TEXT:
            raise UsageError(
                f"the figure is {wide:,} pixels wide; in {width:,} its text would be {size:.1f} pixels high. "
                "Hide operations (--hide, --only, --carried), fold bodies (--depth 0), or allow more --width"
            )
        self.request.warn(f"the figure is {wide:,} pixels wide; in {width:,} its text is {size:.1f} pixels high")

    def dot(self) -> str:
        """The figure in the DOT language."""
        return dot(self.figure, self.request.theme)

    def mermaid(self) -> str:
        """The figure as a Mermaid flowchart."""
        text = mermaid(self.figure)
        if len(text) > LONGEST_FLOWCHART:
            self.request.warn(f"the flowchart has {len(text):,} characters; GitHub draws {LONGEST_FLOWCHART:,} at most")
        return text

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.svg()

    def _repr_markdown_(self) -> str:
        return f"```mermaid\n{self.mermaid()}```"


def arranged(figure: Figure) -> Drawing:
    """A figure laid out by our own layout."""
    arrange = {
        Arrangement.LAYERED: arrange_layered,
        Arrangement.STACK: arrange_stack,
        Arrangement.COLUMNS: arrange_columns,
    }
    return arrange[figure.arrangement](figure)


def picture(model: Model, machine: Callable[[], Machine] | None, request: Request) -> Picture:
    """What the request asks for; `machine` makes a run of this model at its beginning (None: there are no inputs)."""
    view = request.view or default_view(model, has_inputs=machine is not None)
    if view is View.MODEL:
        return Picture(model_figure(model, request.choice), request)
    name, around = split_activation(request.loop)
    place = find_loop(model, name)
    if view is View.ROLLED:
        return Picture(rolled_figure(model, place, request.choice), request, place)
    if view is View.PORTS:
        return Picture(ports_figure(model, place), request, place)
    if machine is None:
        raise UsageError(
            "an unrolled trace needs a run, and a run needs inputs: --inputs FILE.npz or --input NAME=SPEC"
        )
    wanted = None if request.iterations is None else Iterations.parse(request.iterations)
    tracer = Tracer(machine(), place, around, wanted, request.choice.values, measured=True)
    trace = tracer.trace()
    if trace.failed:
        request.warn(trace.ended)
    if len(trace.iterations) > MANY:
        request.warn(f"drawing {len(trace.iterations):,} iterations; --iters 0:3,-1 shows the first and the last")
    if wanted is None and trace.left_out:
        request.warn(f"showing {len(trace.iterations)} of {trace.count:,} iterations; --iters : shows all")
    facts = loop_facts(model, place)
    return Picture(unrolled_figure(trace, request.choice, facts), request, place, trace, facts)


def default_view(model: Model, *, has_inputs: bool) -> View:
    """What is drawn if nothing is asked for."""
    if not loops_of(model):
        return View.MODEL
    return View.UNROLLED if has_inputs else View.ROLLED


def draw(
    model: ModelSource,
    inputs: Mapping[str | int, Any] | None = None,
    *,
    view: View | str | None = None,
    loop: str | None = None,
    iterations: str | None = None,
    values: Values | str = Values.NONE,
    theme: Theme | str = Theme.AUTO,
    depth: int | None = None,
    partner: Partner | None = None,
) -> Picture:
    """A figure of a model (or of a path), or of a run of it where there are inputs; a notebook shows it as it is.

    `partner` computes the operations that it claims. `written("svg")` and the other formats give the content of a
    file. Raises the errors of stepper.errors.
    """
    from stepper.engine.compiler import compile_model, given_away
    from stepper.engine.feeds import bind_inputs

    model = opened(model)

    def machine() -> Machine:
        return Machine(compile_model(model, partner=partner), bind_inputs(model, inputs or {}))

    chosen = _of(View, view) if view is not None else None
    choice = Choice(values=_of(Values, values), elsewhere=given_away(model, partner or default_partner()))
    request = Request(chosen, loop, iterations, choice, _of(Theme, theme))
    if depth is None:
        depth = default_depth(chosen or default_view(model, has_inputs=inputs is not None))
    return picture(model, None if inputs is None else machine, replace(request, choice=replace(choice, depth=depth)))


def default_depth(view: View) -> int:
    """How many levels of bodies a view draws inside of their layers if nothing else is asked for."""
    return 0 if view is View.UNROLLED else 1


def _of(kind: type[S], word: S | str) -> S:
    try:
        return kind(word)
    except ValueError:
        raise UsageError(f"'{word}' is none of {', '.join(kind)}") from None
