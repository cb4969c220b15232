"""`stepper export TRACE|MODEL`: a figure or table of a model or a run, or the check that a committed one is current."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from stepper.cli.specs import (
    bound_inputs,
    fallback_of,
    given_states,
    is_usual,
    opened_model,
    partner_of,
    protected_files,
)
from stepper.debug.scopes import ReferenceValues
from stepper.element_types import Array
from stepper.engine.compiler import compile_model, given_away
from stepper.engine.inputs import bind_states
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.engine.rules import Rules
from stepper.errors import FINDING, UsageError
from stepper.export.exporter import default_depth, default_view, export, picture, save, with_defaults
from stepper.export.options import FigureView, LayoutEngine, TimeDirection, ValueDetail
from stepper.export.parts import usual_view
from stepper.export.picture import (
    USUAL_HOPS,
    FigureContent,
    FigureRequest,
    FileContent,
    Highlight,
    Zoom,
    patterns,
    zoom_named,
)
from stepper.export.stepping import check_format, frames, made_folder, other_frames
from stepper.files.file_kinds import (
    ARRAYS,
    FORMATS,
    SVG,
    FigureFormat,
    FormatSubject,
    figure_format,
    format_of_suffix,
    is_model_path,
)
from stepper.files.output import OutputFile
from stepper.ir.model import Model
from stepper.ir.reader import open_sequences
from stepper.openvino.partner import OpenVINOPartner
from stepper.plain_values import write_arrays
from stepper.query.address_resolution import resolve
from stepper.query.address_syntax import parse_address
from stepper.recording import open_recording
from stepper.terminal import say
from stepper.wording import enumerated, excerpt

_PACE = 1.2
"""Default seconds per iteration of an animated figure."""


def execute(options: Namespace) -> int:
    """Draw and write, or check. Return 0 if all went well, FINDING for a file that is out of date."""
    options.protected = protected_files(options)
    format = _format(options)
    _check_steps(options, format)
    target = _target(options, format)
    model, machine = _subject(options)
    if options.frames is not None:
        return _frames(options, model, machine, format)
    written = _written(options, model, machine, format)
    if options.check is not None:
        return _check(Path(options.check), written)
    if written.arrays and options.output in (None, "-"):
        raise UsageError("the code reads its larger constants from an .npz beside it; write it to a file with -o")
    if target is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(written.content)
        sys.stdout.buffer.flush()
    else:
        save(written, target)
    return 0


def _format(options: Namespace) -> FigureFormat:
    """Return the format of --as, else of the file's suffix; SVG without any. UsageError for a suffix of no format."""
    if options.format:
        return figure_format(options.format)
    path = (options.check or options.output) if options.frames is None else None
    suffix = "" if path is None else Path(path).suffix
    if not suffix:
        return figure_format("svg")
    try:
        return format_of_suffix(suffix)
    except UsageError as error:
        if options.check is None:
            OutputFile(
                Path(path or ""), SVG, options.protected, "-o"
            ).check_protected()  # the weightier reason comes first
        option = "-o" if options.check is None else "--check"
        raise UsageError(f"{option} {path}: {error}, or say with --as which") from None


def _check_steps(options: Namespace, format: FigureFormat) -> None:
    """Raise UsageError for options of steps that do not fit together."""
    if options.pace is not None and not options.animate:
        raise UsageError("--pace is for --animate: how long the picture shows each iteration")
    if options.animate and (format.name != "svg" or options.frames is not None):
        raise UsageError("--animate makes one SVG that plays; for files of any drawing, step by step, use --frames DIR")
    if options.animate and options.layout == LayoutEngine.DOT:
        raise UsageError("--animate needs --layout own")
    if options.embed and format.name != "html":
        raise UsageError("--embed is for --as html")
    if options.frames is None:
        return
    check_format(format)
    if options.layout == LayoutEngine.DOT:
        raise UsageError("--frames needs --layout own")
    if options.output is not None:
        raise UsageError("--frames DIR says where the files go; leave out -o")
    if options.check is not None and Path(options.check).resolve() != Path(options.frames).resolve():
        raise UsageError("with --frames DIR, --check is of the same DIR")


def _target(options: Namespace, format: FigureFormat) -> OutputFile | None:
    """Return the file to write; None for stdout and with --check. OutputError where it may not be written."""
    if options.check is not None or options.output in (None, "-") or options.frames is not None:
        return None
    target = OutputFile(Path(options.output), format.kind, options.protected, "-o")
    target.check()
    return target


# --- the model and its run ------------------------------------------------------------------------------------------

Subject = tuple[Model, Callable[[], Machine] | None]


def _subject(options: Namespace) -> Subject:
    """Return the model and what makes a run of it at its beginning; None for that where no inputs are given."""
    path = Path(options.model)
    if not is_model_path(options.model) and path.suffix.lower() != ".bin" and path.is_file():
        return _recorded(options)
    if options.model_path is not None:
        raise UsageError("--model is for a recording: where its model is now")
    model = opened_model(options)
    options.partner = partner_of(options, model)
    opened = open_sequences(model) if options.open_sequences else model
    if not options.input and options.inputs is None and not options.calls and model.graph.parameters:
        return opened, None
    inputs = bound_inputs(model, options)
    options.bound_inputs = inputs
    states = given_states(model, options)
    return opened, lambda: _machine(opened, inputs, states, options)


def _recorded(options: Namespace) -> Subject:
    """Return the model of a recording, and its run again on the recorded inputs, under the recorded rules."""
    own = options.input or options.inputs is not None or options.state or options.states is not None
    if own or options.open_sequences or options.calls or options.carry or not is_usual(options):
        raise UsageError("a recording has its own inputs and its own way of running")
    with open_recording(options.model) as recording:
        opened = recording.model(options.model_path)
        inputs = recording.bound_inputs(opened)
        options.rules = recording.origin.rules
        options.partner = OpenVINOPartner.described(recording.origin.engine, options.extension)
        options.bound_inputs = inputs
        states = recording.states()
    return opened, lambda: _machine(opened, inputs, states, options)


def _machine(model: Model, inputs: Sequence[Array], states: Mapping[str, Any], options: Namespace) -> Machine:
    compiled = _compiled(model, options)
    return Machine(compiled, inputs, max_iterations=options.max_iterations, states=bind_states(compiled, states))


def _compiled(model: Model, options: Namespace) -> CompiledModel:
    return compile_model(model, Rules(options.rules), options.partner)


# --- what is written ------------------------------------------------------------------------------------------------


def _written(
    options: Namespace, model: Model, machine: Callable[[], Machine] | None, format: FigureFormat
) -> FileContent:
    return export(model, machine, _request(options, model, machine, format), format)


def _frames(options: Namespace, model: Model, machine: Callable[[], Machine] | None, format: FigureFormat) -> int:
    """Write or check a file for each step. Return FINDING where one is out of date."""
    request = with_defaults(_request(options, model, machine, format), format)
    files = frames(picture(model, machine, request), format)
    folder, names, found = Path(options.frames), [], 0
    for name, content in files:
        if options.check is not None:
            found = max(found, check_file(folder / name, content, "write it with --frames"))
        else:
            OutputFile(made_folder(folder) / name, format.kind, options.protected, "--frames").write(content)
        names.append(name)
    for name in other_frames(folder, names) if folder.is_dir() else ():
        say(f"stepper: {folder / name} is no frame of this run and stays", file=sys.stderr)
        found = FINDING if options.check is not None else 0
    return found


def _request(
    options: Namespace, model: Model, machine: Callable[[], Machine] | None, format: FigureFormat
) -> FigureRequest:
    in_steps = options.frames is not None or options.animate
    zoom = _zoom(model, options)
    if in_steps and zoom is not None:
        raise UsageError("a part of a figure has no steps; leave out --around, --from, --to and --detail")
    usual = default_view(model, has_inputs=machine is not None)
    if zoom is not None:
        usual = usual_view(zoom, has_inputs=machine is not None)
    if format.subject is FormatSubject.RUN:
        usual = FigureView.UNROLLED
    view = options.view or (usual if options.why is None else FigureView.STORY)
    if (view is FigureView.STORY) is not (options.why is not None):
        raise UsageError("--view story and --why belong together: --why ADDRESS, or --why end")
    if in_steps:
        _check_run(view, machine)
    is_run = view is FigureView.UNROLLED or (in_steps and view is FigureView.ROLLED)
    if not is_run and options.values not in ("none", "shape"):
        raise UsageError(f"--values {options.values} needs a run: --view unrolled, with inputs")
    if not is_run and options.iters is not None:
        raise UsageError(f"--iters {options.iters} needs the iterations of a run: --view unrolled, with inputs")
    if view is not FigureView.UNROLLED and options.direction == TimeDirection.RIGHT:
        raise UsageError("--direction right needs the iterations of a run: --view unrolled, with inputs")
    content = FigureContent(
        depth=default_depth(view, model) if options.depth is None else options.depth,
        only=patterns(options.only),
        hide=patterns(options.hide),
        carried=options.carried,
        values=options.values,
        constants=options.constants,
        blocks=options.blocks,
        highlight=None if options.highlight is None else _highlight(model, options),
        elsewhere=given_away(model, options.partner),
    )
    request = FigureRequest(
        view=view,
        loop=options.loop,
        why=options.why,
        iterations=None if options.iters is None else options.iters.strip(),
        content=content,
        theme=options.theme,
        width=options.width,
        scale=options.scale,
        title=options.title,
        direction=options.direction,
        preset=options.preset,
        zoom=zoom,
        beside=None if options.diff is None else lambda run: _reference(run, options),
        caption=options.caption,
        legend=options.legend == "on",
        layout=options.layout,
        in_steps=in_steps,
        embedded=options.embed,
        pace=(options.pace or _PACE) if options.animate else None,
        rules=Rules(options.rules),
        warn=(lambda _text: None) if options.quiet else _warn,
    )
    if options.values == ValueDetail.THUMBNAILS and not format.has_thumbnails:
        having = enumerated([one.name for one in FORMATS.values() if one.has_thumbnails])
        request.warn(f"thumbnails are drawn in {having} alone; {format.name} says the shapes instead")
    return request


def _check_run(view: FigureView, machine: Callable[[], Machine] | None) -> None:
    """Raise UsageError where a view has no steps."""
    if view not in (FigureView.UNROLLED, FigureView.ROLLED):
        raise UsageError(f"--view {view} has no steps; --view unrolled and rolled have")
    if machine is None:
        raise UsageError("steps need a run, and a run needs inputs: --inputs FILE.npz or --input NAME=SPEC")


def _reference(run: Machine, options: Namespace) -> ReferenceValues:
    """Return the run that --diff names."""
    from stepper.compare.references.reference_opening import debug_reference  # loads what compares

    partner = fallback_of(options)
    return debug_reference(options.diff, run, options.bound_inputs, None, options.model, partner, option="--diff")


def _zoom(model: Model, options: Namespace) -> Zoom | None:
    """Return the part of the figure that the options ask for; None: all of it."""
    if (options.begin is None) is not (options.end is None):
        raise UsageError("--from and --to go together: they draw the paths between two operations")
    if options.hops is not None and options.around is None and options.detail is None:
        raise UsageError(f"--hops {options.hops} is for --around OP or --detail OP")
    if options.around is options.begin is options.detail is None:
        return None
    ways = None if options.begin is None else (options.begin, options.end)
    hops = USUAL_HOPS if options.hops is None else options.hops
    compiled = _compiled(model, options)
    return zoom_named(compiled, around=options.around, ways=ways, detail=options.detail, hops=hops, depth=options.depth)


def _highlight(model: Model, options: Namespace) -> Highlight:
    """Return the operation, and the iteration of the loop around it, that an address names."""
    target = resolve(parse_address(options.highlight), _compiled(model, options))
    asked = target.iterations[-1] if target.iterations else None
    return Highlight(target.program.graph, target.named.id, asked if isinstance(asked, int) else None)


def _warn(text: str) -> None:
    say(f"stepper: {text}", file=sys.stderr)


def _check(path: Path, written: FileContent) -> int:
    """Return FINDING where a file, or the .npz beside it, is not what would be written."""
    expected = {path: written.content}
    if written.arrays:
        archive = io.BytesIO()
        write_arrays(archive, written.arrays)
        expected[path.with_suffix(ARRAYS.suffixes[0])] = archive.getvalue()
    return max(check_file(one, content) for one, content in expected.items())


def check_file(path: Path, content: bytes, remedy: str = "write it with -o") -> int:
    """Return FINDING, and say where it differs first, for a file that does not have this content."""
    try:
        current = path.read_bytes()
    except FileNotFoundError:
        say(f"stepper: {path} does not exist; {remedy}", file=sys.stderr)
        return FINDING
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    difference = _difference(current, content)
    if difference is None:
        return 0
    say(f"stepper: {path} is out of date ({difference}); {remedy}", file=sys.stderr)
    return FINDING


def _difference(current: bytes, written: bytes) -> str | None:
    """Return where two contents differ first; None for the same, line endings of text left aside."""
    if current == written:
        return None
    if b"\0" in current or b"\0" in written:
        return f"{len(current):,} bytes, not {len(written):,}" if len(current) != len(written) else "other bytes"
    lines, wanted = (content.decode(errors="replace").splitlines() for content in (current, written))
    for number, (one, other) in enumerate(zip_longest(lines, wanted), 1):
        if one != other:
            return f"line {number}: {_around(one, other)}, not {_around(other, one)}"
    return None


def _around(line: str | None, other: str | None) -> str:
    """Return a line from shortly before where it leaves the other one."""
    if line is None:
        return "no line"
    same = next((at for at, (one, two) in enumerate(zip(line, other or "", strict=False)) if one != two), len(line))
    return f"'{'…' if same > 20 else ''}{excerpt(line[max(0, same - 20) :], 60)}'"
