"""`stepper export TRACE|MODEL`: a figure or table of a model or a run, or the check that a committed one is current."""

from __future__ import annotations

import argparse
import io
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from stepper.cli.archives import write_arrays
from stepper.cli.options.engine import is_usual, opened_model, partner_of
from stepper.cli.options.protected import protected_files
from stepper.cli.options.specs import bound_inputs, given_inputs, given_states
from stepper.cli.printing import say
from stepper.element_types import Array
from stepper.engine.compiler import compile_model, given_away
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.engine.rules import Rules
from stepper.engine.sequences import open_sequences
from stepper.engine.variables import bind_states
from stepper.errors import FINDING, OutputError, UsageError
from stepper.export.exporter import Format, Placer, Request, View, default_depth, default_view, picture
from stepper.export.figures.choice import Choice, Highlight, Values, patterns
from stepper.export.numpy_code.model import numpy_code
from stepper.export.writers.themes import Theme
from stepper.files.models import is_model_path
from stepper.files.output import ARRAYS, FIGURES, SVG, Target, writing_all
from stepper.ir import read
from stepper.ir.model import Model
from stepper.openvino.partner import OpenVINOPartner
from stepper.query.addresses import parse_address, resolve
from stepper.recording import open_recording

_WITHOUT_A_VIEW: Final = ("html", "json", "csv")


def execute(options: argparse.Namespace) -> int:
    """Draw and write, or check; 0 if all went well, 1 for a file that is out of date."""
    options.protected = protected_files(options)
    format = options.format or _format_of(options)
    target = _target(options, format)
    model, machine = _subject(options)
    if format == "numpy":
        written, beside = _numpy_code(options, model)
    else:
        written, beside = _drawn(options, model, machine, Format(format)), {}
    if options.check is not None:
        return max(_check(Path(options.check), written), _check_beside(Path(options.check), beside))
    if beside and options.output in (None, "-"):
        raise UsageError("the code reads its larger constants from an .npz beside it; write it to a file with -o")
    if target is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(written)
        sys.stdout.buffer.flush()
    elif beside:
        _write_both(target, written, beside)
    else:
        target.write(written)
    return 0


def _format_of(options: argparse.Namespace) -> str:
    """The format that a file's suffix names; without any it is SVG. UsageError for a suffix that names none."""
    path = options.check or options.output
    suffix = "" if path is None else Path(path).suffix.lower()
    if not suffix:
        return Format.SVG
    found = next((name for name, kind in FIGURES.items() if suffix in kind.suffixes), None)
    if found is None:
        if options.check is None:
            Target(Path(path or ""), SVG, options.protected, "-o").check_protected()  # what it is counts for more
        known = ", ".join(suffix for kind in FIGURES.values() for suffix in kind.suffixes)
        option = "-o" if options.check is None else "--check"
        raise UsageError(f"{option} {path}: {suffix} names no format; there are {known}, or say with --as which")
    return found


def _target(options: argparse.Namespace, format: str) -> Target | None:
    """Where it goes; None for stdout, and where nothing is written. OutputError where that may not be."""
    if options.check is not None or options.output in (None, "-"):
        return None
    target = Target(Path(options.output), FIGURES[format], options.protected, "-o")
    target.check()
    return target


def _write_both(target: Target, code: bytes, constants: Mapping[str, Array]) -> None:
    """Write the code, and the constants beside it; both or neither."""
    beside = Target(target.path.with_suffix(ARRAYS.suffixes[0]), ARRAYS, target.protected, target.option)
    if beside.path.exists() and not target.path.exists():
        raise OutputError(
            f"{target}: its constants would be written over {beside.path}, which exists already; choose another name"
        )
    with writing_all((target, beside)) as (file, archive):
        file.write(code)
        write_arrays(archive, constants)


# --- the model and its run ------------------------------------------------------------------------------------------

Subject = tuple[Model, Callable[[], Machine] | None]


def _subject(options: argparse.Namespace) -> Subject:
    """The model and what makes a run of it at its beginning; None for that where no inputs are given."""
    path = Path(options.model)
    if not is_model_path(options.model) and path.suffix.lower() != ".bin" and path.is_file():
        return _recorded(options)
    if options.model_path is not None:
        raise UsageError("--model says where the model of a recording is")
    model = opened_model(options)
    options.partner = partner_of(options, model)
    opened = open_sequences(model) if options.open_sequences else model
    if not options.input and options.inputs is None and model.graph.parameters:
        return opened, None
    inputs = bound_inputs(model, given_inputs(model, options.input, options.inputs, options.shape))
    states = given_states(model, options.state, options.states)
    return opened, lambda: _machine(opened, inputs, states, options)


def _recorded(options: argparse.Namespace) -> Subject:
    """The model of a recording, and its run again on the recorded inputs, under the recorded rules."""
    own = options.input or options.inputs is not None or options.state or options.states is not None
    if own or options.open_sequences or not is_usual(options):
        raise UsageError("a recording has its own inputs and its own way of running")
    with open_recording(options.model) as recording:
        model = read(recording.model_path(options.model_path))
        opened = open_sequences(model) if recording.origin.open_sequences else model
        inputs = bound_inputs(model, dict(enumerate(recording.inputs().values())))
        options.rules = recording.origin.rules
        options.partner = OpenVINOPartner.described(recording.origin.engine, options.extension)
        states = recording.states()
    return opened, lambda: _machine(opened, inputs, states, options)


def _machine(model: Model, inputs: Sequence[Array], states: Mapping[str, Any], options: argparse.Namespace) -> Machine:
    compiled = _compiled(model, options)
    return Machine(compiled, inputs, max_iterations=options.max_iterations, states=bind_states(compiled, states))


def _compiled(model: Model, options: argparse.Namespace) -> CompiledModel:
    return compile_model(model, Rules(options.rules), options.partner)


# --- what is written ------------------------------------------------------------------------------------------------


def _drawn(options: argparse.Namespace, model: Model, machine: Callable[[], Machine] | None, format: Format) -> bytes:
    view = default_view(model, has_inputs=machine is not None) if options.view is None else View(options.view)
    if options.view is None and format in _WITHOUT_A_VIEW:
        view = View.UNROLLED
    if view is not View.UNROLLED and options.values not in ("none", "shape"):
        raise UsageError(f"--values {options.values} needs a run: --view unrolled, with inputs")
    if view is not View.UNROLLED and options.iters is not None:
        raise UsageError(f"--iters {options.iters} needs the iterations of a run: --view unrolled, with inputs")
    values = Values.FULL if format is Format.HTML and options.values == "none" else options.values
    choice = Choice(
        depth=default_depth(view) if options.depth is None else options.depth,
        only=patterns(options.only),
        hide=patterns(options.hide),
        carried=options.carried,
        values=Values(values),
        highlight=None if options.highlight is None else _highlight(model, options),
        elsewhere=given_away(model, options.partner),
    )
    request = Request(
        view=view,
        loop=options.loop,
        iterations=None if options.iters is None else options.iters.strip(),
        choice=choice,
        theme=Theme(options.theme),
        width=options.width,
        placer=Placer(options.layout),
        warn=(lambda _text: None) if options.quiet else _warn,
    )
    if format in (Format.JSON, Format.CSV) and options.iters is None:
        request = replace(request, iterations="")
    if values == Values.THUMBNAILS and format not in (Format.SVG, Format.HTML):
        request.warn(f"thumbnails are drawn in svg and html alone; {format} says the shapes instead")
    found = picture(model, machine, request)
    if format is Format.SVG:
        request.warn(f"laid out by {'Graphviz' if request.placer is Placer.DOT else 'the program itself'}")
    return found.written(format)


def _highlight(model: Model, options: argparse.Namespace) -> Highlight:
    """The operation, and the iteration of the loop around it, that an address names."""
    target = resolve(parse_address(options.highlight), _compiled(model, options))
    asked = target.iterations[-1] if target.iterations else None
    return Highlight(target.program.graph, target.named.id, asked if isinstance(asked, int) else None)


def _numpy_code(options: argparse.Namespace, model: Model) -> tuple[bytes, dict[str, Array]]:
    """The model, or one loop of it, as readable numpy code, and the constants that stand beside it."""
    others = Counter(who for who in given_away(model, options.partner).values())
    if others and not options.quiet:
        whose = ", ".join(f"{count} by {who}" for who, count in others.items())
        _warn(f"the code has numpy alone; of these operations the run has {whose}")
    code = numpy_code(model, rules=Rules(options.rules), loop=options.loop)
    return code.text.encode("utf-8"), code.constants


def _warn(text: str) -> None:
    say(f"stepper: {text}", file=sys.stderr)


def _check(path: Path, content: bytes) -> int:
    try:
        current = path.read_bytes()
    except FileNotFoundError:
        say(f"stepper: {path} does not exist; write it with -o", file=sys.stderr)
        return FINDING
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if current == content:
        return 0
    say(f"stepper: {path} is out of date; write it again with -o", file=sys.stderr)
    return FINDING


def _check_beside(path: Path, arrays: Mapping[str, Array]) -> int:
    """Whether the constants beside the code are those that it needs now."""
    if not arrays:
        return 0
    beside = path.with_suffix(".npz")
    now = io.BytesIO()
    write_arrays(now, arrays)
    return _check(beside, now.getvalue())
