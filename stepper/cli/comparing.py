"""From the options of the command line to a comparison with a reference of any kind."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from stepper.cli.call_options import check_carried
from stepper.cli.printing import Progress
from stepper.cli.specs import (
    bound_inputs,
    ensure_no_device,
    fallback_of,
    given_states,
    inputs_of_other,
    opened_model,
    runtime_of,
    without,
)
from stepper.compare.align import read_pairs
from stepper.compare.comparison import RunComparison, compare_models, compare_with
from stepper.compare.references.onnx import EVALUATORS
from stepper.compare.references.recorded import ArchiveReference
from stepper.compare.references.reference_opening import model_title, open_reference
from stepper.element_types import ELEMENT_TYPES, Array
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_states
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.errors import UsageError
from stepper.files.file_kinds import is_model_path
from stepper.ir.model import Model
from stepper.ir.reader import open_sequences
from stepper.openvino.partner import EMULATES, OPENVINO
from stepper.tensors.tolerances import OTHER_KERNELS, Tolerances, parse_tolerance
from stepper.terminal import say
from stepper.wording import near_text


def usual_references(options: Namespace) -> tuple[str, ...]:
    """Return what a run is compared with where nothing is named, the second if the first cannot run it, and so on.

    Of an .onnx those are evaluators of the file itself: OpenVINO reads it as we do, with what its converter leaves out.
    """
    is_onnx = Path(options.model).suffix.lower() == ".onnx"
    if not is_onnx or any(getattr(options, name, None) for name in _ASK_OPENVINO):
        return (OPENVINO,)
    found = [name for name in reversed(EVALUATORS) if find_spec(name) and find_spec(EVALUATORS[0])]
    return (*found, OPENVINO)


_ASK_OPENVINO = ("calls", "carry", "state", "states", "device", "precision", "extension")
"""Options with which a run is one that no evaluator of ONNX makes."""


def compared(options: Namespace, *, only_outputs: bool = False) -> RunComparison:
    """Return how the model and the reference of the options part; `only_outputs`: as `compare_with` says."""
    if options.reference != OPENVINO:
        ensure_no_device(options, "compare with it: --with openvino")
    model = opened_model(options)
    if options.open_sequences:
        model = open_sequences(model)
    if is_model_path(options.reference):
        return _with_model(model, options)
    inputs = bound_inputs(model, options)
    if options.align is not None:
        raise UsageError("--align is for two models; there is only one here")
    return _with_another(model, inputs, options, only_outputs=only_outputs)


def _with_model(model: Model, options: Namespace) -> RunComparison:
    of_calls, everything, shapes = getattr(options, "call_inputs", {}), options.input, options.shape
    other = opened_model(options, options.reference)
    check_carried((model, other), options)
    # What the reference alone takes is given by the same options.
    own = inputs_of_other(other, model, options)
    options.call_inputs = of_calls
    options.input, options.shape = without(other, model, everything), without(other, model, shapes)
    inputs = bound_inputs(model, options)
    options.input, options.shape = everything, shapes
    return compare_models(
        model,
        open_sequences(other) if options.open_sequences else other,
        inputs,
        reference_inputs=own,
        title=model_title(Path(options.model), Path(options.reference)),
        rules=Rules(options.rules),
        tolerances=tolerances_of(options, model, exact=True),
        given=_given(options, model, other),
        max_iterations=options.max_iterations,
        states=given_states(model, options),
        partner=fallback_of(options, options.engine),
        reference_partner=fallback_of(options),
    )


def _with_another(model: Model, inputs: list[Array], options: Namespace, *, only_outputs: bool) -> RunComparison:
    compiled = compile_model(model, Rules(options.rules), fallback_of(options, options.engine))
    states = bind_states(compiled, given_states(model, options))
    if states and options.reference in EVALUATORS:
        raise UsageError(f"--with {options.reference} begins with the variables that the model has; leave --state out")
    machine = Machine(compiled, inputs, max_iterations=options.max_iterations, states=states)
    reference = open_reference(
        options.reference,
        compiled,
        inputs,
        runtime_of(options),
        options.model,
        options.max_iterations,
        states=states,
        keeps=True,
    )
    if isinstance(reference, ArchiveReference) and reference.unknown and not options.quiet:
        keys = ", ".join(reference.unknown[:5])
        say(f"{len(reference.unknown)} keys of {reference.title} name nothing in the model: {keys}", file=sys.stderr)
    with Progress(machine, wanted=not options.quiet):
        tolerances = tolerances_of(options, compiled.model, exact=reference.is_exact)
        return compare_with(machine, reference, tolerances, only_outputs=only_outputs)


def _given(options: Namespace, ours: Model, theirs: Model) -> Mapping[str, str]:
    """Return the pairs of --align. Raises if a name does not exist."""
    pairs = {} if options.align is None else read_pairs(Path(options.align))
    for model, names in ((ours, pairs.keys()), (theirs, pairs.values())):
        known = {layer.name for _path, graph in model.graphs() for layer in graph.layers}
        for name in names:
            if name not in known:
                raise UsageError(f"--align {options.align}: {model.path.name} has no layer '{name}'")
    return pairs


def tolerances_of(options: Namespace, model: Model, *, exact: bool) -> Tolerances:
    """Return those of the options. UsageError for a name that is neither an element type nor one of the model."""
    by_name = dict(parse_tolerance(text) for text in options.tolerance)
    layers = [layer for _path, graph in model.graphs() for layer in graph.layers]
    known = {*ELEMENT_TYPES, *(layer.type for layer in layers), *(layer.name for layer in layers)}
    for name in by_name:
        if name not in known:
            near = near_text(name, known)
            what = f"there is no element type, type of operation or layer '{name}'"
            raise UsageError(f"--tolerance {name}: {what}{f'; {near}' if near else ''}")
    narrow = EMULATES.get(options.engine) or getattr(options, "reference_precision", None)
    if narrow and options.rtol is options.atol is options.ulp is None:
        by_name = {**dict.fromkeys(("f32", "f64"), OTHER_KERNELS[narrow]), **by_name}
    return Tolerances(exact, options.rtol, options.atol, options.ulp or 0, by_name)
