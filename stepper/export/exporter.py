"""From a model or a run to a figure and its files: the one door to the views and the writers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import cache, partial
from os import PathLike
from typing import Any, TypeVar

from msgspec.structs import replace

from stepper.debug.causes.loop_ends import ConditionLimit
from stepper.debug.debugger import Debugger
from stepper.debug.scopes import ReferenceValues
from stepper.debug.story.story_facts import Story
from stepper.engine.machine import Machine
from stepper.engine.program import Partner, default_partner
from stepper.errors import OutputError, StepperError, UsageError
from stepper.export.explain import story_drawing, story_figure
from stepper.export.figure_views import model_figure, observed_run, ports_figure, rolled_figure, unrolled_figure
from stepper.export.figures.builder import legend_of
from stepper.export.figures.loop_facts import differences_within, loop_facts
from stepper.export.figures.loop_trace import (
    ELIDED,
    WHOLE,
    LoopPath,
    LoopTrace,
    Numbers,
    Tracer,
    find_loop,
    loops_of,
    split_activation,
)
from stepper.export.fitting import SLIDE, fitted, room_of
from stepper.export.fold_blocks import LARGE
from stepper.export.options import (
    BlockStyle,
    ConstantStyle,
    FigureView,
    Preset,
    Theme,
    TimeDirection,
    ValueDetail,
)
from stepper.export.parting import RunDifferences, compare_runs, compared_with, graphs_within
from stepper.export.parts import prepared, usual_view, zoomed
from stepper.export.picture import (
    USUAL_HOPS,
    FigureContent,
    FigureRequest,
    FileContent,
    Picture,
    Zoom,
    smaller_parts,
    unheard,
    writer_of,
    zoom_around,
    zoom_named,
)
from stepper.export.stepping import steps_of
from stepper.export.styles import POINTS
from stepper.export.textbook import MOST_SHOWN, ends_of, textbook_page
from stepper.export.textbook_lanes import Textbook
from stepper.files.file_kinds import ARRAYS, FigureFormat, FormatSubject
from stepper.files.output import OutputFile, writing_all
from stepper.ir.model import Model
from stepper.ir.reader import ModelSource, opened
from stepper.plain_values import write_arrays
from stepper.recording.origin import Iterations
from stepper.wording import counted

S = TypeVar("S", bound=StrEnum)
RunMaker = Callable[[], Machine]
"""Function that makes a run of a model at its beginning."""

MOST_STEPS = 500
"""Maximum number of iterations for which a body is drawn step by step."""
MOST_BELOW = 100
"""Iterations below each other in steps at most: every frame has all of them."""
MOST_VALUES = 200_000
"""Values of all iterations of a body in steps at most: larger bodies have fewer iterations."""
MANY = 200
"""Iterations above which a drawing is warned about."""


def export(model: Model, machine: RunMaker | None, request: FigureRequest, format: FigureFormat) -> FileContent:
    """Return the content of the file; options that are not set take the defaults of the format.

    `machine` makes a run of this model at its beginning (None: there are no inputs). Raise UsageError where the request
    and the format do not fit.
    """
    if request.zoom is not None and format.subject is not FormatSubject.FIGURE:
        raise UsageError(
            f"--as {format.name} has all operations; --around, --from and --detail draw a part of a figure"
        )
    if request.beside is not None and format.subject is not FormatSubject.FIGURE:
        raise UsageError(
            f"--as {format.name} is of one run; --diff draws a figure of two, and compare lists them as data"
        )
    if format.subject is FormatSubject.MODEL:
        written: FileContent = writer_of(format)(model, request)
        return written
    return FileContent(picture(model, machine, with_defaults(request, format)).written(format.name))


def with_defaults(request: FigureRequest, format: FigureFormat) -> FigureRequest:
    """Return the request with the defaults of a format for the options that are not set."""
    if request.view is None and request.why is None and format.subject is FormatSubject.RUN:
        request = replace(request, view=FigureView.UNROLLED)
    if request.iterations is None:
        request = replace(request, iterations=format.iterations)
    request = replace(request, most_shown=format.most_shown)
    if request.content.values is ValueDetail.NONE:
        values = ValueDetail.FULL if request.in_steps else ValueDetail(format.values)
        request = replace(request, content=replace(request.content, values=values))
    return request


def save(written: FileContent, target: OutputFile) -> None:
    """Write the file and, where there are arrays, the .npz beside it: both or neither. Raise OutputError."""
    if not written.arrays:
        target.write(written.content)
        return
    beside = OutputFile(target.path.with_suffix(ARRAYS.suffixes[0]), ARRAYS, target.protected, target.option)
    if beside.path.exists() and not target.path.exists():
        raise OutputError(
            f"{target}: its constants would be written over {beside.path}, which exists already; choose another name"
        )
    with writing_all((target, beside)) as (file, archive):
        file.write(written.content)
        write_arrays(archive, written.arrays)


def picture(model: Model, machine: RunMaker | None, request: FigureRequest) -> Picture:
    """Return the figure of a request; `machine` makes a run of this model at its beginning (None: without inputs)."""
    asked, zoom = request, request.zoom
    if zoom is not None:
        usual = usual_view(zoom, has_inputs=machine is not None)
    else:
        usual = default_view(model, has_inputs=machine is not None) if request.why is None else FigureView.STORY
    view = request.view or usual
    _check_content(model, request, view)
    limits = {} if view is FigureView.STORY else _condition_limits(model)
    content = replace(request.content, model=model, limits=limits)
    may_turn = (
        request.direction is None and request.preset is Preset.DOCS and zoom is None and view is FigureView.UNROLLED
    )
    request = _on_page(replace(request, view=view, content=content, warn=_once(request.warn)))
    request = compared(model, machine, request)
    if machine is not None and view in (FigureView.MODEL, FigureView.ROLLED):
        never_begun, sizes = observed_run(machine())
        sizes = sizes if request.beside is None else {}  # another run may have others
        request = replace(request, content=replace(request.content, never_begun=never_begun, sizes=sizes))

    def make(content: FigureContent, request: FigureRequest = request, zoom: Zoom | None = zoom) -> Picture:
        asked = replace(request, content=content)
        if zoom is None:
            made = _picture(model, machine, asked)
        else:
            made = zoomed(model, _picture(model, machine, prepared(model, asked, zoom, view)), zoom)
        if content.differences is not None:
            made = replace(made, figure=compared_with(made.figure, content.differences))
        return _told(made, request)

    try:
        found = fitted(make, request)
        if may_turn and (request.in_steps or request.pace is not None):
            steps_of(found)  # which have a room of their own
        return found
    except UsageError:
        less = _smaller_part(make, request, zoom)
        less = less or _around_parting(model, machine, asked, request.content.differences)
        if less is None and may_turn and request.content.differences is None:
            less = _turned(make, request)
        if less is None:
            raise
        return less


_Making = Callable[..., Picture]


def _once(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Emit each warning once, however often a figure is made until it fits.

    A function that drops warnings is returned unchanged.
    """
    return warn if warn is unheard else cache(warn)


def _smaller_part(make: _Making, request: FigureRequest, zoom: Zoom | None) -> Picture | None:
    """Return a part of a figure with fewer neighbours that has room; None where there is none."""
    of_two_runs = request.content.differences is not None
    for part in () if zoom is None else smaller_parts(zoom, of_two_runs=of_two_runs):
        with suppress(UsageError):
            found = fitted(partial(make, zoom=part), request)
            kind = " that differ" if part.differing else ""
            request.warn(f"neighbours{kind} within {counted(part.hops, 'hop')}: more have no room")
            return found
    return None


def _around_parting(
    model: Model, machine: RunMaker | None, asked: FigureRequest, found: RunDifferences | None
) -> Picture | None:
    """Return what is around the first difference of two runs, or the body where they do not part; None for a part."""
    if found is None or asked.zoom is not None:
        return None
    zoom = None if found.first is None else zoom_around(model, found.first)
    if zoom is None and (found.first is not None or asked.view not in (None, FigureView.UNROLLED)):
        return None
    view = FigureView.ROLLED if zoom is None or zoom.loop is not None else FigureView.MODEL
    loop = asked.loop if zoom is None else None
    with suppress(UsageError):
        made = picture(model, machine, replace(asked, view=view, zoom=zoom, loop=loop, iterations=None))
        part = "the body" if zoom is None else "the neighbourhood of the first difference"
        asked.warn(f"{part}: the rest has no room")
        return made
    return None


def _turned(make: _Making, request: FigureRequest) -> Picture:
    """Return iterations side by side. Raise UsageError where these have no room, either."""
    turned = replace(request, direction=TimeDirection.RIGHT)
    found = fitted(partial(make, request=turned), turned)
    request.warn("iterations side by side, their bodies as one box: one below the other they have no room")
    return found


def _on_page(request: FigureRequest) -> FigureRequest:
    """Return the request with what its preset means for what is not said."""
    if request.preset is Preset.SLIDE and request.width is not None:
        raise UsageError(f"a slide is {SLIDE[0]} x {SLIDE[1]} pixels; --width is for --preset paper and docs")
    if request.direction is None:
        sideways = request.preset in (Preset.PAPER, Preset.SLIDE) and request.view is FigureView.UNROLLED
        is_plain = request.zoom is None and request.beside is None  # else single values are shown
        direction = TimeDirection.RIGHT if sideways and is_plain else TimeDirection.DOWN
        request = replace(request, direction=direction)
    themes = {Preset.PAPER: Theme.PRINT, Preset.SLIDE: Theme.LIGHT}
    if request.preset in themes and request.theme is Theme.AUTO:
        request = replace(request, theme=themes[request.preset])
    return request


def _told(found: Picture, request: FigureRequest) -> Picture:
    """Return a picture with the title, the caption and the legend of a request."""
    figure, page = found.figure, found.page
    title = figure.title if request.title is None else request.title
    if page is not None:
        told = " ".join(filter(None, (request.caption, page.description)))
        page = replace(page, title=title, description=told)
    said = figure.description if request.caption is None else f"{request.caption} {figure.description}"
    legend = legend_of(figure) if request.legend else ()
    return replace(found, figure=replace(figure, title=title, description=said, legend=legend), page=page)


def _check_content(model: Model, request: FigureRequest, view: FigureView) -> None:
    for said in request.content.fitting_nothing(model):
        request.warn(said)
    is_static = view in (FigureView.MODEL, FigureView.ROLLED)
    if request.content.blocks is BlockStyle.ONCE and (request.zoom is not None or not is_static):
        what = "a part of a figure" if request.zoom is not None else f"--view {view}"
        raise UsageError(f"--blocks once is for --view model and --view rolled, not for {what}")


def _picture(model: Model, machine: RunMaker | None, request: FigureRequest) -> Picture:
    view = request.view
    if view is FigureView.MODEL:
        return Picture(model_figure(model, request.content), request)
    if view is FigureView.STORY:
        return _story(model, machine, request)
    name, around = split_activation(request.loop)
    loop = find_loop(model, name)
    if view is FigureView.ROLLED:
        figure = rolled_figure(model, loop, request.content)
        if not request.in_steps or machine is None:
            return Picture(figure, request, loop)
        trace = _trace(machine(), loop, around, replace(request, most_shown=MOST_STEPS, direction=TimeDirection.DOWN))
        figure = figure if trace.count else ports_figure(model, loop, request.content, trace)
        return Picture(figure, request, loop, trace)
    if view is FigureView.PORTS:
        return Picture(ports_figure(model, loop, request.content), request, loop)
    if machine is None:
        raise UsageError(
            "an unrolled trace needs a run, and a run needs inputs: --inputs FILE.npz or --input NAME=SPEC"
        )
    is_below = request.direction is not TimeDirection.RIGHT
    trace = _trace(machine(), loop, around, request, MOST_BELOW if request.in_steps else None)
    if is_below and len(trace.iterations) > MANY and request.most_shown is None:
        request.warn(f"drawing {len(trace.iterations):,} iterations; --iters 0:3,-1 shows the first and the last")
    facts = loop_facts(model, loop.outer, loop.layer, trace.condition_limit)
    made = Picture(unrolled_figure(trace, request.content, facts), request, loop, trace)
    return made if is_below or not trace.count else _textbook(model, made, trace, facts)


def _trace(
    machine: Machine,
    loop: LoopPath,
    around: Numbers,
    request: FigureRequest,
    most: int | None = None,
) -> LoopTrace:
    """Return the run of a loop with the iterations that are to be shown. Raise UsageError for more than `most`."""
    wanted = None if request.iterations is None else Iterations.parse(request.iterations)
    values, more = request.content.values, "--iters : shows all"
    if request.direction is TimeDirection.RIGHT:  # the textbook's figure, of the first and the last ones
        ends = f"0:{MOST_SHOWN},-{MOST_SHOWN}:"
        if wanted is not None:
            ends = "" if wanted.everything else f"{ends},{request.iterations}"
        wanted, values, most = Iterations.parse(ends), ValueDetail.THUMBNAILS, MOST_BELOW + 2 * MOST_SHOWN
    elif request.most_shown is not None:
        most = min(request.most_shown, max(WHOLE, MOST_VALUES // len(loop.body.graph.layers)))
        tail = min(most // 4, 10)
        wanted = wanted or Iterations.parse(f"0:{most - tail},-{tail}:")
        more = f"--iters shows others, {most:,} at most"
    trace = Tracer(machine, loop, around, wanted, values, most).trace()
    if trace.failed:
        request.warn(trace.ended)
    if request.iterations is None and trace.left_out and request.direction is not TimeDirection.RIGHT:
        request.warn(f"showing {len(trace.iterations)} of {trace.count:,} iterations; {more}")
    return trace


def _condition_limits(model: Model) -> Mapping[tuple[int, int], ConditionLimit]:
    """Return the limits that conditions of loops imply by themselves; none of a model that cannot be compiled."""
    if not any(layer.type == "Loop" for _, graph in model.graphs() for layer in graph.layers):
        return {}
    from stepper.debug.causes.loop_ends import condition_limits_of
    from stepper.engine.compiler import compile_model

    try:
        return condition_limits_of(compile_model(model))
    except StepperError:
        return {}


def _story(model: Model, machine: RunMaker | None, request: FigureRequest) -> Picture:
    """Explain the cause of a value, or why a loop ended, after a run to its end or failure."""
    if machine is None:
        raise UsageError("--view story needs a run, and a run needs inputs: --inputs FILE.npz or --input NAME=SPEC")
    question = (request.why or "").strip()
    if not question:
        raise UsageError("--view story explains a value or the end of a loop: --why ADDRESS, or --why end")
    debugger = Debugger.of(machine(), ())
    try:
        debugger.last()
    except StepperError as error:
        request.warn(str(error))
    return picture_of_story(debugger.story(question), model, request)


def picture_of_story(story: Story, model: Model, request: FigureRequest) -> Picture:
    """Return the explanation of a run of a model as a picture."""
    name, notes = model.name or model.path.stem, tuple(differences_within(model.graph))
    page, left_out = story_drawing(story, name, request, notes)
    if left_out:
        request.warn(f"not drawn: {left_out}; a greater --width draws more")
    return Picture(story_figure(story, name, notes), request, page=page, story=story)


def _textbook(model: Model, made: Picture, trace: LoopTrace, facts: tuple[str, ...]) -> Picture:
    """Return a run with the textbook's figure; other formats than drawings have the iterations one below the other."""
    request = made.request
    wanted = None if request.iterations is None else Iterations.parse(request.iterations)
    told = "; ".join((trace.ended, *facts))
    text = f"A run of {trace.loop.title}, {counted(trace.count, 'iteration')} side by side: {told}."
    room = room_of(request)
    width = None if room is None else room.width * POINTS
    page, times = textbook_page(Textbook(trace, model), request, text, _ends(wanted, trace), width)
    return replace(made, page=page, times=times)


def _ends(wanted: Iterations | None, trace: LoopTrace) -> tuple[int, int] | None:
    """Return how many of the first and of the last iterations are wanted. Raise UsageError for others."""
    if wanted is None:
        return None
    found = ends_of([one.number for one in trace.iterations if wanted.includes(one.number, trace.count)], trace.count)
    if found is None:
        raise UsageError(
            "iterations side by side are the first ones and the last ones, such as --iters 0:3,-2:; "
            "--direction down draws any"
        )
    return found


def default_view(model: Model, *, has_inputs: bool) -> FigureView:
    """Return the view that is drawn where none is named."""
    if not loops_of(model):
        return FigureView.MODEL
    return FigureView.UNROLLED if has_inputs else FigureView.ROLLED


def draw(
    model: ModelSource,
    inputs: Mapping[str | int, Any] | None = None,
    *,
    view: FigureView | str | None = None,
    loop: str | None = None,
    why: str | None = None,
    iterations: str | None = None,
    values: ValueDetail | str = ValueDetail.NONE,
    theme: Theme | str = Theme.AUTO,
    depth: int | None = None,
    constants: ConstantStyle | str = ConstantStyle.INLINE,
    direction: TimeDirection | str | None = None,
    preset: Preset | str | None = None,
    width: int | None = None,
    legend: bool = True,
    pace: float | None = None,
    title: str | None = None,
    caption: str | None = None,
    warn: Callable[[str], None] | None = None,
    around: str | None = None,
    ways: tuple[str, str] | None = None,
    detail: str | None = None,
    blocks: BlockStyle | str | None = None,
    hops: int = USUAL_HOPS,
    diff: str | PathLike[str] | None = None,
    partner: Partner | None = None,
) -> Picture:
    """Return a figure of a model (or of a path), or of a run of it where there are inputs; a notebook shows it.

    `around` is the address of an operation: the figure is its neighbourhood, with `detail` beside a small whole. `ways`
    are two addresses: the figure has all paths between them. `why` is the question of an explanation: an address, or
    `end`. `pace` has the SVG play the iterations of a run, each for so many seconds. `diff` is a reference, as for
    `--diff`: another model, a recording, an .npz or `openvino`. `partner` computes the operations that it claims.
    `written("svg")` and the other formats give the content of a file. Raise the errors of stepper.errors.
    """
    from stepper.engine.compiler import compile_model, given_away
    from stepper.engine.inputs import bind_inputs

    if pace is not None and not 0 < pace < float("inf"):
        raise UsageError(f"pace is seconds above 0, not {pace:g}")
    model = opened(model)
    zoom = None
    if any(asked is not None for asked in (around, ways, detail)):
        compiled = compile_model(model, partner=partner)
        zoom = zoom_named(compiled, around=around, ways=ways, detail=detail, hops=hops, depth=depth)

    def machine() -> Machine:
        return Machine(compile_model(model, partner=partner), bind_inputs(model, inputs or {}))

    def beside(run: Machine) -> ReferenceValues:
        from stepper.compare.references.reference_opening import debug_reference  # loads what compares

        given = bind_inputs(model, inputs or {})
        return debug_reference(str(diff), run, given, None, str(model.path), partner, option="diff")

    chosen = _of(FigureView, view) if view is not None else None
    content = FigureContent(
        values=_of(ValueDetail, values),
        constants=_of(ConstantStyle, constants),
        blocks=None if blocks is None else _of(BlockStyle, blocks),
        elsewhere=given_away(model, partner or default_partner()),
    )
    request = FigureRequest(
        view=chosen,
        loop=loop,
        why=why,
        iterations=iterations,
        content=content,
        theme=_of(Theme, theme),
        width=width,
        direction=None if direction is None else _of(TimeDirection, direction),
        preset=None if preset is None else _of(Preset, preset),
        legend=legend,
        in_steps=pace is not None,
        pace=pace,
        title=title,
        caption=caption,
        warn=warn or unheard,
        zoom=zoom,
        beside=None if diff is None else beside,
    )
    if depth is None:
        depth = default_depth(chosen or default_view(model, has_inputs=inputs is not None), model)
    return picture(model, None if inputs is None else machine, replace(request, content=replace(content, depth=depth)))


def default_depth(view: FigureView, model: Model) -> int:
    """Return how many levels of bodies a view draws inside of their layers where no depth is given.

    Of a model all, one at least, as far as it does not get too large; what a body has inside is a level less.
    """
    if view is FigureView.UNROLLED:
        return 0
    depth, level, boxes = 0, [model.graph], 0
    while level:
        layers = [layer for graph in level for layer in graph.layers if layer.type != "Constant"]
        boxes += len(layers)
        if boxes > LARGE:
            break
        depth += 1
        level = [body.graph for layer in layers for body in layer.bodies]
    return max(1, depth - (1 if view is FigureView.MODEL else 2))


def _of(kind: type[S], word: S | str) -> S:
    try:
        return kind(word)
    except ValueError:
        raise UsageError(f"'{word}' is none of {', '.join(kind)}") from None


_FITTING = (FigureView.MODEL, FigureView.ROLLED, FigureView.UNROLLED)


def compared(model: Model, machine: RunMaker | None, request: FigureRequest) -> FigureRequest:
    """Return the request with the differences of the run from the one that is asked for beside it, if any is.

    Raise UsageError for a view that shows none.
    """
    if request.beside is None:
        return request
    if request.view not in _FITTING:
        raise UsageError(f"--diff colours the views {', '.join(_FITTING)}; --view {request.view} shows no values")
    if request.direction is TimeDirection.RIGHT:
        raise UsageError("--diff draws iterations one below the other; leave --direction right and its presets out")
    if request.in_steps:
        raise UsageError("--diff draws one figure of two runs; leave --frames and --animate out")
    if machine is None:
        raise UsageError("--diff compares a run, and a run needs inputs: --inputs FILE.npz or --input NAME=SPEC")
    run = machine()
    reference = request.beside(run)
    found = compare_runs(run, reference, lambda _numbers: False)
    if request.view is FigureView.UNROLLED:
        loop, around, iterations = _parting_run(model, request, found)
        address = loop.address + "".join(f"@{number}" for number in around)
        request = replace(request, loop=address, iterations=iterations)
        count, wanted = found.counts.get((id(loop.body.graph), around), 0), Iterations.parse(iterations)

        def is_shown(numbers: Numbers) -> bool:
            return bool(numbers) and numbers[:-1] == around and wanted.includes(numbers[-1], count)

        kept = compare_runs(machine(), reference, is_shown)
        found = replace(found, pairs=kept.pairs)
        if request.content.values is ValueDetail.NONE:
            request = replace(request, content=replace(request.content, values=ValueDetail.FULL))
    return replace(request, content=replace(request.content, differences=found))


def _parting_run(model: Model, request: FigureRequest, found: RunDifferences) -> tuple[LoopPath, Numbers, str]:
    """Return the run of a loop, and its iterations, in which the two part, where none is named."""
    name, around = split_activation(request.loop)
    first, iterations = found.first, request.iterations
    inside = () if name is not None or first is None else loops_of(model)  # else it is the one in which the two part
    parting = [one for one in inside if one.layer.is_loop and first and first.value[0] in graphs_within(one.layer)]
    loop = parting[-1] if parting else find_loop(model, name)
    loops_around = sum(layer.is_loop for layer in loop.around)
    is_inside = first is not None and first.value[0] in graphs_within(loop.layer)
    if len(around) < loops_around:
        around = first.numbers[:loops_around] if first is not None and is_inside else (0,) * loops_around
    if iterations is None:
        iterations = "" if found.counts.get((id(loop.body.graph), around), 0) <= WHOLE else ELIDED
        if iterations and first is not None and is_inside and first.numbers[:loops_around] == around:
            place = first.numbers[loops_around]
            iterations = f"0,{max(place - 1, 0)}:{place + 2},-1"
    return loop, around, iterations
