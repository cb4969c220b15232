"""Turn command-line options into a debugger: model, inputs, variables, backend, reference."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stepper.element_types import Shape
from stepper.engine.array_files import StoredArray, member_of, read_archive, read_array
from stepper.engine.inputs import (
    bind_inputs,
    by_position,
    converted,
    file_of,
    is_filler,
    listed,
    missing_lines,
    position_of,
    value_of,
    variables_of,
)
from stepper.engine.rules import Rules
from stepper.errors import MissingInputs, StepperError, UsageError
from stepper.files.file_kinds import CONVERTED, is_model_path
from stepper.files.output import RECORDING_FILE, REFERENCE_FILE, SESSION_FILE, ProtectedFiles
from stepper.openvino.opening import open_model
from stepper.openvino.partner import NUMPY, OPENVINO, OpenVINOPartner
from stepper.openvino.runtime import Runtime
from stepper.ops.operands import shape_text
from stepper.terminal import say
from stepper.wording import excerpt

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.element_types import Array
    from stepper.ir.model import Layer, Model


_EXAMPLES = {"--state": "h=h0.npy", "--input": "x=[1,2,3] or x=x.npy", "--shape": "x=1,5,4"}
T = TypeVar("T")
EVERYTHING_ELSE = "*"


def given_inputs(model: Model, options: Namespace) -> dict[str | int, Any]:
    """Return arrays by position from the options; an `--input` goes before the same key of `--inputs`.

    UsageError for an input that has its value from `--calls` and is given as well.
    """
    specs, archive, shapes = options.input, options.inputs, options.shape
    parameters = model.graph.parameters
    of_calls: Mapping[str | int, Any] = {} if model.calls is None else getattr(options, "call_inputs", {})
    fixed = {position: _shape(text) for position, text in by_position(parameters, pairs(shapes, "--shape")).items()}
    found: dict[str | int, Any] = {}
    if archive is not None:
        arrays = by_position(parameters, read_archive(Path(archive)), is_archive=True)
        twice = next((position for position in arrays if position in of_calls), None)
        if twice is not None:
            name = parameters[twice].name
            raise UsageError(
                f"--inputs {archive}: '{name}' has its values from the calls; --calls 1 runs one of a case"
            )
        found.update(arrays.items())
    found.update(of_calls)
    texts = pairs(specs, "--input")
    rest = texts.pop(EVERYTHING_ELSE, None)
    for position, text in by_position(parameters, texts).items():
        if position in of_calls:
            raise UsageError(f"input '{parameters[position].name}' has its values from the calls; leave --input out")
        found[position] = value_of(parameters[position], text, fixed.get(position))
    if rest is not None:
        for position, parameter in enumerate(parameters):
            if position not in found:
                found[position] = value_of(parameter, rest, fixed.get(position))
    _check_shapes(parameters, fixed, found)
    return found


def without(other: Model, model: Model, specs: list[str]) -> list[str]:
    """Return options NAME=... of inputs but for those that mean an input which the other model alone has."""
    return [text for text in specs if _is_of(model, text) or not _is_of(other, text)]


def inputs_of_other(other: Model, model: Model, options: Namespace) -> dict[int, Array]:
    """Return the inputs of a model beside another one, by position, that it does not share with that one.

    They are its parts of calls, and each `--input` of a name that it alone has.
    """
    parameters = other.graph.parameters
    found: dict[int, Array] = dict(getattr(options, "call_inputs", {})) if other.calls is not None else {}
    texts = pairs([text for text in options.input if _is_of(other, text) and not _is_of(model, text)], "--input")
    shapes = pairs(options.shape, "--shape")
    for name, text in texts.items():
        position = position_of(parameters, name)
        shape = None if name not in shapes else _shape(shapes[name])
        found[position] = converted(parameters[position], value_of(parameters[position], text, shape))
    return found


def _is_of(model: Model, text: str) -> bool:
    """Return True if an `--input` means an input of the model."""
    try:
        (name,) = pairs([text], "--input")
        return name == EVERYTHING_ELSE or position_of(model.graph.parameters, name) >= 0
    except UsageError:
        return False


def given_shapes(texts: list[str]) -> dict[str, Shape]:
    """Return the sizes of each `--shape` by the name that is given. UsageError for what is not NAME=1,5,4."""
    return {name: _shape(text) for name, text in pairs(texts, "--shape").items()}


def _check_shapes(parameters: tuple[Layer, ...], fixed: Mapping[int, Shape], found: Mapping[str | int, Any]) -> None:
    """Raise UsageError for a --shape of an input that is given with another shape."""
    for position, shape in fixed.items():
        if position in found and found[position].shape != shape:
            name = parameters[position].name
            raise UsageError(
                f"--shape {name}={','.join(map(str, shape))}: input '{name}' is given, with the shape "
                f"{shape_text(found[position].shape)}; --shape is for zeros, ones and rand"
            )


def given_states(model: Model, options: Namespace) -> dict[str, Any]:
    """Return values by variable from the options; a `--state` goes before the same key of `--states`.

    UsageError for what is not a variable, which lists those that there are.
    """
    specs, archive = options.state, options.states
    if not specs and archive is None:
        return {}
    known = {variable.name: variable for variable in variables_of(model)}
    found: dict[str, Any] = {} if archive is None else dict(read_archive(Path(archive)))
    texts = pairs(specs, "--state")
    rest = texts.pop(EVERYTHING_ELSE, None)
    for name, text in texts.items():
        if name not in known:
            raise UsageError(f"the model has no variable '{excerpt(name)}'; {listed(known)}")
        found[name] = value_of(known[name].parameter, text)
    if rest is not None:
        found |= {name: value_of(one.parameter, rest) for name, one in known.items() if name not in found}
    return found


def bound_inputs(model: Model, options: Namespace, kept: Mapping[str | int, Any] | None = None) -> list[Array]:
    """Return one array for each Parameter; `kept` are by position, for those that the options do not give.

    MissingInputs names the options that give them.
    """
    try:
        return bind_inputs(model, {**(kept or {}), **given_inputs(model, options)})
    except MissingInputs as error:
        lines = missing_lines(error.missing, error.inputs)
        name = excerpt(error.missing[0].name)
        lines.append(f"give each with --input '{name}=FILE.npy' (or zeros, ones, rand:SEED, a JSON literal),")
        lines.append("or all in one file with --inputs FILE.npz; --input '*=rand:0' fills those that are missing")
        beside = (model.path.with_name(name) for name in ("inputs.npz", f"{model.path.stem}.npz"))
        found = next((path for path in beside if path.is_file() and _has_inputs(path, model)), None)
        if found is not None:
            lines.append(f"beside the model lies one: --inputs {shlex.quote(str(found))}")
        raise MissingInputs("\n".join(lines), error.missing, error.inputs) from None


def _has_inputs(path: Path, model: Model) -> bool:
    """Return True if an archive has the inputs of a model, and nothing else."""
    parameters = model.graph.parameters
    try:
        return len(by_position(parameters, read_archive(path), is_archive=True)) == len(parameters)
    except StepperError:
        return False


def given_texts(
    model: Model, specs: list[str], archive: str | None, shapes: list[str]
) -> tuple[dict[int, str], dict[int, Shape]]:
    """Return SPECs and shapes by position from the same options; reads nothing but the keys of the archive."""
    parameters = model.graph.parameters
    fixed = {position: _shape(text) for position, text in by_position(parameters, pairs(shapes, "--shape")).items()}
    found: dict[int, str] = {}
    if archive is not None:
        named = {key: f"{archive}:{key}" for key in read_archive(Path(archive))}
        found.update(by_position(parameters, named, is_archive=True))
    texts = pairs(specs, "--input")
    rest = texts.pop(EVERYTHING_ELSE, None)
    found.update(by_position(parameters, texts))
    if rest is not None:
        found = dict.fromkeys(range(len(parameters)), rest) | found
    return found, fixed


def pairs(texts: list[str], option: str) -> dict[str, str]:
    """Return the values by name of options written NAME=VALUE. UsageError for others, and for a name given twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=") if text.count("=") == 1 else text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text}: NAME=VALUE is expected, such as {_EXAMPLES[option]}")
        if name in found:
            raise UsageError(f"{option} gives '{name}' twice")
        found[name] = value
    return found


def _shape(text: str) -> Shape:
    parts = [part.strip() for part in text.strip("[]").split(",")] if text.strip("[] ") else []
    if not all(part.isdecimal() and len(part) < 19 for part in parts):
        raise UsageError(f"--shape '{text}' is not a list of sizes, such as 1,5,4")
    return tuple(int(part) for part in parts)


_FILES = {
    "inputs": "the file of --inputs",
    "states": "the file of --states",
    "script": "the script",
    "session": SESSION_FILE,
    "keys": "the file of keys",
    "align": "the file of --align",
    "resume": "the recording to continue",
}
"""Options with the name of a file, and what that file is."""

_MODELS = {
    "model": RECORDING_FILE,
    "model_path": "the model",
    "reference": REFERENCE_FILE,
    "diff": REFERENCE_FILE,
    "trace": RECORDING_FILE,
}
"""Options with the name of a model or of a recording, and what it is where it is not a model."""

OPTIONS_WITH_A_PATH = frozenset((*_FILES, *_MODELS, "extension"))
"""Options whose whole value may be a path."""


def protected_files(options: Namespace) -> ProtectedFiles:
    """Return all files that a command with these options reads, or keeps a session in; opens none."""
    found = ProtectedFiles()
    for name, what in _MODELS.items():
        path = getattr(options, name, None)
        if path is not None:
            named = "the model" if name == "model" else what
            found += ProtectedFiles.of_model(path, named) if is_model_path(path) else ProtectedFiles.of_file(path, what)
    for name, what in _FILES.items():
        path = getattr(options, name, None)
        if path not in (None, "-"):
            found += ProtectedFiles.of_file(path, what)
    for what, specs in (("input", getattr(options, "input", [])), ("state", getattr(options, "state", []))):
        for name, text in pairs(specs, f"--{what}").items():
            file = file_of(text)
            if file is not None:
                found += ProtectedFiles.of_file(file, f"{what} '{name}'")
    if getattr(options, "calls", None):
        from stepper.cli.call_options import files_of_calls  # few runs are of many calls

        found += files_of_calls(options)
    for library in getattr(options, "extension", []):
        found += ProtectedFiles.of_file(library, "an extension of OpenVINO")
    return found + _files_of_case(options)


def _files_of_case(options: Namespace) -> ProtectedFiles:
    """Return the files of a case that replaces the model, including the application's outputs."""
    case, found = getattr(options, "case", None), ProtectedFiles()
    for path in () if case is None else case.files:
        found += ProtectedFiles.of_file(path, "a file of the case")
    return found


def opened_model(options: Namespace, path: str | None = None) -> Model:
    """Return the model that is named (or another one); converted where it is not an IR, with a message on stderr.

    Where the options say so it is the loop over its calls.
    """
    model = _opened(options.model if path is None else path, options, takes_shapes=path is None)
    if getattr(options, "calls", None) or getattr(options, "carry", None):
        from stepper.cli.call_options import put_calls  # few runs are of many calls

        beside = options.command == "compare" and is_model_path(options.reference)
        return put_calls(model, options, some=beside)
    if path is None and (kept := getattr(options, "kept_calls", None)) is not None:
        from stepper.ir.calls import with_calls

        return with_calls(model, kept)
    return model


_AS_GIVEN = ("input", "shape", "calls", "state", "max_iterations", "device", "precision", "extension")
_OF_CASE = ("inputs", "states", "carry")
"""Options that a case gives when it replaces the model."""


def compared_again(options: Namespace) -> str:
    """Return the line that compares the same model, with what the run is given here."""
    case = getattr(options, "case", None)
    model = options.model if case is None else str(case.folder)
    words = ["stepper", "compare", model, "--with", options.reference]
    return given_again(options, words, (*_AS_GIVEN, *(_OF_CASE if case is None else ())))


def given_again(options: Namespace, words: Sequence[str], names: Sequence[str] = (*_AS_GIVEN, *_OF_CASE)) -> str:
    """Return a line of these words, with what the run is given here by these options."""
    line = [*words]
    for name in names:
        found = getattr(options, name, None)
        for one in found if isinstance(found, list) else [] if found is None else [found]:
            line += [f"--{name.replace('_', '-')}", str(one)]
    line += ["--rules", options.rules] if options.rules != Rules.SPEC else []
    line += ["--open-sequences"] if options.open_sequences else []
    return shlex.join(line)


def ir_of(path: str, options: Namespace) -> Path:
    """Return the .xml of a model, which is converted where it is of another format."""
    return _opened(path, options).path if Path(path).suffix.lower() in CONVERTED else Path(path)


def _opened(path: str, options: Namespace, *, takes_shapes: bool = True) -> Model:
    notify = None if getattr(options, "quiet", False) else lambda text: say(f"stepper: {text}", file=sys.stderr)
    shapes = given_shapes(getattr(options, "shape", [])) if takes_shapes else {}
    arrays = _given_arrays(options) if takes_shapes and Path(path).suffix.lower() == ".onnx" else {}
    return open_model(path, notify, getattr(options, "timeout", None), shapes, arrays)


def _given_arrays(options: Namespace) -> dict[str, StoredArray | Array]:
    """Return the inputs that are given by name, as far as they can be read before the model is; of files the headers.

    What cannot be read is refused when the inputs are bound.
    """
    found: dict[str, StoredArray | Array] = {}
    with suppress(StepperError):
        if (archive := getattr(options, "inputs", None)) is not None:
            found.update(read_archive(Path(archive)))
        for name, text in pairs(getattr(options, "input", []), "--input").items():
            if (file := file_of(text)) is not None:
                found[name] = member_of(file, text.rpartition(":")[2]) if file.suffix == ".npz" else read_array(file)
            elif not is_filler(text):
                with suppress(ValueError, RecursionError):  # of what is no JSON
                    found[name] = np.asarray(json.loads(text))
    return found


def choices_of(options: Namespace) -> dict[str, str]:
    """Return the engines for patterns. UsageError for what is not PATTERN=ENGINE."""
    return dict(_choice(text) for text in options.engine_for)


def partner_of(options: Namespace, model: Model) -> OpenVINOPartner:
    """Return who computes what. UsageError for contradictions, and for a pattern that fits nothing in the model."""
    choices = choices_of(options)
    partner = OpenVINOPartner(options.engine, choices, runtime_of(options))
    if OPENVINO not in (options.engine, *choices.values(), getattr(options, "reference", None)):
        ensure_no_device(options, "give it operations with --engine or --engine-for")
    partner.check(model)
    return partner


def is_usual(options: Namespace) -> bool:
    """Return True if the options leave it to numpy to compute, and to OpenVINO only what has no kernel."""
    return options.engine == NUMPY and not (options.engine_for or options.device or options.precision)


def fallback_of(options: Namespace, engine: str = NUMPY) -> OpenVINOPartner:
    """Return the partner for operations without a kernel where numpy computes all others; on the CPU, in f32."""
    return OpenVINOPartner(engine, runtime=Runtime(extensions=options.extension, timeout=options.timeout))


def runtime_of(options: Namespace) -> Runtime:
    """OpenVINO as the options describe it; not imported yet."""
    extensions = getattr(options, "extension", ())
    return Runtime(options.device or "CPU", options.precision or "f32", extensions, timeout=options.timeout)


def ensure_no_device(options: Namespace, advice: str) -> None:
    """Raise UsageError for a device or a precision where OpenVINO has nothing to compute."""
    for name, given in (("--device", options.device), ("--precision", options.precision)):
        if given:
            raise UsageError(f"{name} is for OpenVINO; {advice}")


def _choice(text: str) -> tuple[str, str]:
    pattern, equals, engine = text.rpartition("=")
    if not equals or not pattern:
        raise UsageError(f"--engine-for '{text}' is not PATTERN=ENGINE, such as MatMul=openvino")
    return pattern, engine


def debugger_of(options: Namespace, *, kept: Mapping[str | int, Any] | None = None) -> Debugger:
    """Return a debugger of the model on the inputs that the options give.

    `kept` are inputs by position, for those that the options do not give.
    """
    model = opened_model(options)
    # Inputs are wanted before the model is opened, so that a missing one is found at once.
    return debugger_on(model, dict(enumerate(bound_inputs(model, options, kept))), options)


def debugger_on(model: Model, inputs: Mapping[int, Array], options: Namespace) -> Debugger:
    """Return a debugger of the model on these inputs, by position."""
    from stepper.debug.debugger import DEFAULT_MEMORY, Debugger  # the application is painted before

    partner = partner_of(options, model)
    if options.open_sequences:
        from stepper.ir.reader import open_sequences  # few want it

        model = open_sequences(model)
    debugger = Debugger(
        model,
        dict(inputs.items()),
        options.rules or Rules.SPEC,
        memory=getattr(options, "memory", None) or DEFAULT_MEMORY,
        max_iterations=options.max_iterations,
        states={**getattr(options, "kept_states", {}), **given_states(model, options)},
        partner=partner,
    )
    debugger.protected += protected_files(options)
    return debugger


def put_reference(debugger: Debugger, options: Namespace) -> None:
    """Compare with what the options name as the reference, if they do."""
    if options.reference is None:
        return
    from stepper.compare.references.reference_opening import debug_reference  # loads what compares

    debugger.reference = debug_reference(
        options.reference,
        debugger.machine,
        debugger.inputs,
        runtime_of(options),
        options.model,
        fallback_of(options),
    )
