"""A figure with what was asked for, ready to be written in any format: its options, and the part that is drawn.

Selection and detail of a figure: depth, operations, values, highlight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from typing import Any, NamedTuple

from msgspec import field
from msgspec.structs import replace

from stepper.debug.causes.loop_ends import ConditionLimit
from stepper.debug.scopes import ReferenceValues
from stepper.debug.story.story_facts import Story
from stepper.element_types import Array
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Elsewhere
from stepper.engine.rules import Rules
from stepper.errors import UsageError
from stepper.export.figures.drawn_graph import WHOLE_EXPRESSIONS, FoldingOptions, drawn_graph
from stepper.export.figures.figure import Figure, FigureSite, InnerBody
from stepper.export.figures.loop_trace import LoopPath, LoopTrace
from stepper.export.options import (
    BlockStyle,
    ConstantStyle,
    FigureView,
    LayoutEngine,
    Preset,
    Theme,
    TimeDirection,
    ValueDetail,
)
from stepper.export.parting import PartingPlace, RunDifferences
from stepper.export.styles import PageDrawing, StepTimes
from stepper.files.file_kinds import FigureFormat, FormatSubject, figure_format
from stepper.ir.model import Body, Graph, Layer, Model
from stepper.name_patterns import Pattern, PatternError, regex
from stepper.plain_values import json_text, record_data
from stepper.query.address_resolution import resolve
from stepper.query.address_syntax import parse_address
from stepper.records import Record
from stepper.wording import excerpt


class Highlight(Record):
    """A layer of one graph and, in an unrolled trace, the iteration (None: all)."""

    graph: Graph
    layer: int
    iteration: int | None = None


class FigureContent(Record):
    """Select content and detail of a figure.

    `depth` is the number of levels of bodies that are drawn inside their layers. `only` and `hide` are regular
    expressions for names, or whole types. `carried` keeps only the parts of a body that back edges carry. Hidden
    operations are drawn as a group with their number. `elsewhere` says what another backend computes; such boxes have a
    mark. Constants that are drawn inline or as boxes are read from `model`. `blocks`: draw each copy of a repeated
    block, or one copy (None: one copy in a large figure). `limits` are the limits that conditions imply, by id() of the
    graph and by the loop's id in it; `differences` are the differences from another run. `expressions`: an operation
    with one reader is drawn in the box of its reader. `cell`: a rolled body is its port map. `never_begun` are loops
    that a run entered without an iteration, by id() of the graph and id. `sizes` are the sizes of values whose size the
    file leaves open, by id() of the graph, layer and output.
    """

    depth: int = 1
    only: tuple[Pattern, ...] = ()
    hide: tuple[Pattern, ...] = ()
    carried: bool = False
    expressions: bool = False
    cell: bool = False
    never_begun: frozenset[tuple[int, int]] = frozenset()
    sizes: Mapping[tuple[int, int, int], tuple[int, ...]] = {}
    values: ValueDetail = ValueDetail.NONE
    highlight: Highlight | None = None
    constants: ConstantStyle = ConstantStyle.INLINE
    model: Model | None = None
    limits: Mapping[tuple[int, int], ConditionLimit] = {}
    fold_accumulators: bool = True
    blocks: BlockStyle | None = None
    differences: RunDifferences | None = None
    elsewhere: Elsewhere = field(default_factory=dict)

    def limit_of(self, graph: Graph, loop: Layer) -> ConditionLimit | None:
        """Return the limit that the condition of a loop of a graph implies."""
        return self.limits.get((id(graph), loop.id))

    def never_began(self, graph: Graph, loop: Layer) -> bool:
        """True if the run entered a loop of a graph and did no iteration of it."""
        return (id(graph), loop.id) in self.never_begun

    def folding(self, graph: Graph) -> FoldingOptions:
        """Return the parts of a graph that are folded."""
        hidden = frozenset(layer.id for layer in graph.layers if not self._shows(layer))
        return FoldingOptions(
            constants=self.constants is not ConstantStyle.BOX,
            accumulators=self.fold_accumulators and not hidden,
            hidden=hidden,
            expressions=WHOLE_EXPRESSIONS if self.expressions else 0,
            results=True,
        )

    def _shows(self, layer: Layer) -> bool:
        if self.carried or any(_fits(pattern, layer) for pattern in self.hide):
            return False
        return not self.only or any(_fits(pattern, layer) for pattern in self.only)

    def computed_by(self, graph: Graph, layers: Sequence[int]) -> tuple[str, ...]:
        """Return the partners that compute the layers of a box, each once."""
        who = (self.elsewhere.get((id(graph), layer), "") for layer in layers)
        return tuple(dict.fromkeys(words for words in who if words))

    def fitting_nothing(self, model: Model) -> Iterator[str]:
        """Yield a sentence on each pattern of `only` and `hide` that no operation of a model fits."""
        layers = [layer for _, graph in model.graphs() for layer in graph.layers]
        for option, found in (("--only", self.only), ("--hide", self.hide)):
            for pattern in found:
                if not any(_fits(pattern, layer) for layer in layers):
                    yield f"{option} {pattern.text}: no operation has such a name or type"

    def highlights(self, graph: Graph, layers: Sequence[int], iteration: int | None = None) -> bool:
        """True if a box that stands for these layers is highlighted."""
        found = self.highlight
        if found is None or found.graph is not graph or found.layer not in layers:
            return False
        return found.iteration is None or iteration is None or found.iteration == iteration


def _fits(pattern: Pattern, layer: Layer) -> bool:
    return pattern.found_in(layer.name) or pattern.is_whole(layer.type)


def patterns(texts: Sequence[str]) -> tuple[Pattern, ...]:
    """Return the regular expressions of the command line. Raise UsageError for a text that is none."""
    found = []
    for text in texts:
        try:
            found.append(regex(text))
        except PatternError as error:
            raise UsageError(f"'{text}' is not a regular expression: {error}") from None
    return tuple(found)


USUAL_HOPS = 2


class BodyStep(NamedTuple):
    """A step into a body: the loop or If, the graph in which it stands, and which of its bodies."""

    layer: Layer
    outer: Graph
    body: Body


class FigurePlace(Record, eq=False):
    """Locate an operation that a user named with `address`.

    `iteration` is the iteration of the loop around it (None: not given).
    """

    address: str
    steps: tuple[BodyStep, ...]
    graph: Graph
    layer: Layer
    iteration: int | None = None

    @property
    def loop(self) -> LoopPath | None:
        """The innermost loop around it."""
        return next((loop for loop in reversed(self.around) if loop.layer.is_loop), None)

    @property
    def around(self) -> tuple[LoopPath, ...]:
        """All loops and Ifs around it, outer before inner."""
        layers = [step.layer for step in self.steps]
        return tuple(LoopPath(tuple(layers[:at]), step.layer, step.outer) for at, step in enumerate(self.steps))

    def depth_in(self, root: LoopPath | None) -> int:
        """Return how many levels below a figure of `root` (None: of the model) it stands.

        Raise UsageError where it is not inside.
        """
        if root is None:
            return len(self.steps)
        depth = next((at for at, step in enumerate(self.steps) if step.layer is root.layer), None)
        if depth is None:
            raise UsageError(
                f"'{self.address}' is not inside of {root.title}; --loop names another one, or use --view model"
            )
        return len(self.steps) - depth - 1

    def shapes_in(self, root: LoopPath | None, content: FigureContent) -> tuple[str, str]:
        """Return the ids of its box and of its open frame in the model's figure, or in the rolled one of `root`."""
        begin = len(self.steps) - self.depth_in(root) - (root is not None)
        inside = tuple(InnerBody(step.layer.id, step.body.role) for step in self.steps[begin:])
        body = self.steps[-1].body if self.steps and self.steps[-1].layer.is_loop else None
        drawn = drawn_graph(self.graph, body, content.folding(self.graph))
        box, frame = (FigureSite(inside, own) for own in (f"n{drawn.box_of[self.layer.id]}", f"c{self.layer.id}"))
        return box.id, frame.id


def place_named(address: str, compiled: CompiledModel) -> FigurePlace:
    """Return the place that an address names. Raise UsageError for one that names none, or several."""
    target = resolve(parse_address(address), compiled)
    graph, asked = target.program.graph, target.iterations[-1] if target.iterations else None
    steps = _steps_to(compiled.main.graph, id(graph)) or ()
    return FigurePlace(address, steps, graph, target.named, asked if isinstance(asked, int) else None)


class ZoomKind(StrEnum):
    """Kind of a zoom: one operation with its neighbours, what lies between two, or the first inside of the whole."""

    AROUND = "around"
    BETWEEN = "between"
    DETAIL = "detail"


OPTIONS = {
    ZoomKind.AROUND: "--around",
    ZoomKind.BETWEEN: "--from and --to",
    ZoomKind.DETAIL: "--detail",
}
"""Options of the command line by what they ask for."""


class Zoom(Record, eq=False):
    """Select the drawn part of a figure: within `hops` of `place`, or between `place` and `end`.

    `depth` is how many levels of bodies are drawn inside their layers (None: as many as necessary). `differing`: with
    two runs, neighbours whose values are equal are left out.
    """

    kind: ZoomKind
    place: FigurePlace
    end: FigurePlace | None = None
    hops: int = USUAL_HOPS
    depth: int | None = None
    differing: bool = False

    @property
    def places(self) -> tuple[FigurePlace, ...]:
        """The operations that it names."""
        return (self.place,) if self.end is None else (self.place, self.end)

    @property
    def loop(self) -> LoopPath | None:
        """The innermost loop around all of them."""
        if self.end is None:
            return self.place.loop
        shared = [loop for loop in self.place.around if any(loop.layer is one.layer for one in self.end.around)]
        return next((loop for loop in reversed(shared) if loop.layer.is_loop), None)


def zoom_around(model: Model, place: PartingPlace) -> Zoom | None:
    """Return a zoom on the operation of the first difference; None where it is not in the model."""
    graph, layer, _ = place.value
    steps = _steps_to(model.graph, graph)
    if steps is None:
        return None
    inside = steps[-1].body.graph if steps else model.graph
    found = inside.by_id.get(layer)
    return None if found is None else Zoom(ZoomKind.AROUND, FigurePlace(place.name, steps, inside, found))


def _steps_to(graph: Graph, wanted: int, before: tuple[BodyStep, ...] = ()) -> tuple[BodyStep, ...] | None:
    """Return the steps into the bodies that lead to a graph by its id; None where there are none."""
    if id(graph) == wanted:
        return before
    ways = (
        _steps_to(body.graph, wanted, (*before, BodyStep(layer, graph, body)))
        for layer in graph.layers
        for body in layer.bodies
    )
    return next((way for way in ways if way is not None), None)


def smaller_parts(zoom: Zoom, *, of_two_runs: bool) -> Iterator[Zoom]:
    """Yield zooms on the same operation with fewer and fewer neighbours; the ways between two have no fewer.

    Of two runs neighbours that are the same go before those that are nearer.
    """
    if zoom.end is not None:
        return
    for hops in reversed(range(zoom.hops + 1)):
        if hops < zoom.hops:
            yield replace(zoom, hops=hops)
        if hops and of_two_runs:
            yield replace(zoom, hops=hops, differing=True)


def zoom_named(
    compiled: CompiledModel,
    *,
    around: str | None = None,
    ways: tuple[str, str] | None = None,
    detail: str | None = None,
    hops: int = USUAL_HOPS,
    depth: int | None = None,
) -> Zoom | None:
    """Return the part of a figure that one of these addresses asks for; None for none. Raise UsageError for several."""
    asked = {ZoomKind.AROUND: (around,), ZoomKind.BETWEEN: ways or (None,), ZoomKind.DETAIL: (detail,)}
    given = {kind: addresses for kind, addresses in asked.items() if addresses[0] is not None}
    if len(given) > 1:
        names = " and ".join(OPTIONS[kind] for kind in given)
        raise UsageError(f"{names} are parts of their own; name one of them")
    for kind, addresses in given.items():
        place, *end = (place_named(address, compiled) for address in addresses if address is not None)
        return Zoom(kind, place, end[0] if end else None, hops, depth)
    return None


def unheard(_text: str) -> None:
    """Drop a warning; a function of the module can be pickled."""


class FigureRequest(Record):
    """Hold the options of a figure.

    `view` None: the unrolled trace if there are inputs, else a rolled body, else the model. `why` is the address that
    an explanation covers, or `end`, with the name of a loop or none. `iterations` selects iterations, for example
    `0:3,-1` ("": all; None: all of a short run, the ends of a long run). `most_shown` is how many iterations are shown
    if they follow each other in time, not on the page. `width` is the width of the page in pixels, `scale` the pixels
    of a PNG per pixel of the figure. `direction` is the direction of iterations: RIGHT is the figure of textbooks
    (None: RIGHT on paper and slides, else DOWN). `preset` is the kind of page that the figure must fit. `title` stands
    above ("": nothing, None: a description of the figure). `caption` is alternative text for readers who do not see the
    figure; it comes before the figure's own description. `legend`: lines and boxes are explained. `zoom` is the drawn
    part. `beside` makes the run with which our run is compared. `in_steps`: the run is drawn iteration by iteration.
    `pace` makes an SVG play the steps, each for this many seconds. An `embedded` HTML page is part of another page:
    without heading and facts. `warn` gets sentences that a user should read.
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
    """Hold a figure that can be written in every format and shows itself in a notebook.

    `page` is the drawing if it differs from the laid-out figure (None: the figure, laid out). `times` says when its
    parts appear; `story` is the data of an explanation.
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
            return _encoded(f"{json_text(record_data(self.story), 1)}\n")
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

    _repr_html_ = _repr_svg_

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
