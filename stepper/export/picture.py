"""A figure with what was asked for, ready to be written in any format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from msgspec import field
from msgspec.structs import replace

from stepper.debug.reference_values import ReferenceValues
from stepper.debug.story.facts import Story, story_data
from stepper.element_types import Array
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.errors import UsageError
from stepper.export.drawing.styles import PageDrawing, StepTimes
from stepper.export.figures.content import FigureContent
from stepper.export.figures.figure import Figure
from stepper.export.figures.loop_trace import LoopPath, LoopTrace
from stepper.export.options import FigureView, LayoutEngine, Preset, Theme, TimeDirection
from stepper.export.places import Zoom
from stepper.files.kinds import FigureFormat, FormatSubject, figure_format
from stepper.plain_values import json_text
from stepper.records import Record
from stepper.wording import excerpt


def unheard(_text: str) -> None:
    """Drop a warning; a function of the module can be pickled."""


class FigureRequest(Record):
    """Options of a figure. `view` None: the unrolled trace where there are inputs, else a rolled body, else the model.

    `why` is the address that a story is of, or `end`, with the name of a loop or none. `iterations` is such as
    `0:3,-1` ("": all; None: all of a short run, the ends of a long one; `most_shown` is how many are to be shown where
    they follow each other in time, not on the page). `width` is that of the page in pixels, `scale` the pixels of a PNG
    for one of the figure. `direction` of iterations: RIGHT is the figure of textbooks (None: that on paper and slides,
    else DOWN). `preset` is the kind of page that the figure has to fit. `title` stands above ("": nothing, None: what
    is drawn), `caption` is text for those who do not see the figure, before what it says itself; `legend`: lines and
    boxes are explained. `zoom` is the part that is drawn, `beside` makes the run with which ours is
    compared. `in_steps`: a run is wanted iteration by iteration; `pace`
    has an SVG play the steps, each for so many seconds; an HTML page is `embedded` in another one: without heading and
    facts. `warn` gets sentences that a user should read.
    """

    view: FigureView | None = None
    loop: str | None = None
    why: str | None = None
    iterations: str | None = None
    content: FigureContent = field(default_factory=FigureContent)
    theme: Theme = Theme.AUTO
    width: int | None = None
    direction: TimeDirection | None = None
    preset: Preset | None = None
    scale: float = 1.0
    title: str | None = None
    caption: str | None = None
    legend: bool = True
    layout: LayoutEngine = LayoutEngine.OWN
    zoom: Zoom | None = None
    beside: Callable[[Machine], ReferenceValues] | None = None
    in_steps: bool = False
    pace: float | None = None
    embedded: bool = False
    most_shown: int | None = None
    rules: Rules = Rules.SPEC
    warn: Callable[[str], None] = unheard


class FileContent(NamedTuple):
    """Content of a file, and the arrays of the .npz that belongs beside it."""

    content: bytes
    arrays: Mapping[str, Array] = {}


class SteppedPage(Record):
    """A page of its own that a notebook shows inside of its page."""

    page: str
    title: str

    def __repr__(self) -> str:
        return f"<SteppedPage: {excerpt(self.title, 200)}>"

    def _repr_html_(self) -> str:
        from html import escape  # notebooks alone need it

        style = "width: 100%; height: 560px; border: 0"
        return f'<iframe style="{style}" title="{escape(self.title)}" srcdoc="{escape(self.page)}"></iframe>'


class Picture(Record):
    """A figure that can be written in every format, and that shows itself in a notebook.

    `page` is what is
    drawn where the figure alone does not say it (None: the figure, laid out), `times` when its parts come to be;
    `story` is the data of a story.
    """

    figure: Figure
    request: FigureRequest = field(default_factory=FigureRequest)
    loop: LoopPath | None = None
    trace: LoopTrace | None = None
    page: PageDrawing | None = None
    times: StepTimes | None = None
    story: Story | None = None

    def __str__(self) -> str:
        return f"{self.figure.title}. {self.figure.description}"

    def __repr__(self) -> str:
        return f"<Picture: {excerpt(self.figure.title, 200)}>"

    def written(self, format: str) -> bytes:
        """Return the content of a file in a format, by its name.

        Raise UsageError for an unknown format, where the view has none in that format, or where Graphviz is asked to
        lay it out and is missing.
        """
        chosen = figure_format(format)
        if chosen.subject is FormatSubject.MODEL:
            raise UsageError(f"{format} is written from a model, not from a figure: stepper export --as {format}")
        if self.story is not None and chosen.name == "json":
            return _encoded(f"{json_text(story_data(self.story), 1)}\n")
        if chosen.subject is FormatSubject.RUN and self.trace is None:
            raise UsageError(f"--as {format} shows a run; it needs --view unrolled and inputs")
        content: str | bytes = writer_of(chosen)(self)
        return content if isinstance(content, bytes) else _encoded(content)

    def text(self, format: str) -> str:
        """Return the content of a file in a format of text."""
        return self.written(format).decode()

    def slider(self) -> SteppedPage:
        """Return the run step by step, with a slider, for a notebook: it needs no kernel, and is in an exported page.

        Raise UsageError where the figure is not of a run.
        """
        return SteppedPage(replace(self, request=replace(self.request, embedded=True)).text("html"), self.figure.title)

    def _repr_svg_(self) -> str:
        return self.text("svg")

    def _repr_html_(self) -> str:
        return self.text("svg")

    def _repr_markdown_(self) -> str:
        return f"```mermaid\n{self.text('mermaid')}```"


def _encoded(text: str) -> bytes:
    """Return a text as UTF-8; what a path has that is no text is written as JSON escapes it."""
    return text.encode("utf-8", "backslashreplace")


def writer_of(format: FigureFormat) -> Callable[..., Any]:
    """Return the function that writes a format; its module is loaded when it is first needed."""
    module, _, name = format.writer.rpartition(".")
    found: Callable[..., Any] = getattr(import_module(f"stepper.export.{module}"), name)
    return found
