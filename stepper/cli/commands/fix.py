"""`stepper fix MODEL [inputs] --with REFERENCE`: the edit that makes the outputs equal to those of a reference."""

from __future__ import annotations

import io
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepper.cli.comparing import tolerances_of
from stepper.cli.printing import print_answer, progress_line, show_progress
from stepper.cli.specs import (
    bound_inputs,
    debugger_of,
    ensure_no_device,
    fallback_of,
    given_again,
    given_inputs,
    given_states,
    opened_model,
    protected_files,
    runtime_of,
)
from stepper.diagnosis.check.checking import check_run
from stepper.diagnosis.narrowing import marked_files
from stepper.diagnosis.rule import rules
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_states, input_names
from stepper.errors import FINDING, INTERRUPTED, UsageError
from stepper.files.file_kinds import ARRAYS, SCRIPT
from stepper.files.output import OutputFile, ProtectedFiles, writing_all
from stepper.ir.model import Model
from stepper.openvino.partner import OPENVINO
from stepper.plain_values import write_arrays
from stepper.records import as_data
from stepper.repair.edit import RepairEdit, patched
from stepper.repair.expected_outputs import RepairReference, read_reference
from stepper.repair.fix_texts import answer_lines, edits_text, heal_lines, progress_text
from stepper.repair.healing import healed
from stepper.repair.repairing import FixStatus, FoundFix, repaired
from stepper.repair.search import SearchProgress
from stepper.repair.writing import patched_ir, python_function, test_files
from stepper.tensors.tolerances import OTHER_KERNELS
from stepper.wording import enumerated

_DISTINGUISH = "distinguish.npz"


def execute(options: Namespace) -> int:
    """Search and write; 0 if the outputs agree already, else FINDING, INTERRUPTED after Ctrl+C."""
    if options.reference is not None and (options.finding is not None or options.layers):
        raise UsageError("--finding and --layer are for a search without a reference: leave --with out")
    if options.reference is None and options.test is not None:
        raise UsageError("--test compares with a reference: add --with REFERENCE")
    if options.reference != OPENVINO:
        ensure_no_device(options, "compare with it: --with openvino")
    targets = _targets(options, protected_files(options))
    model = opened_model(options)
    partner = fallback_of(options)
    compiled = compile_model(model, options.rules, partner)
    states = bind_states(compiled, given_states(model, options))
    run = {"rules": options.rules, "partner": partner, "max_iterations": options.max_iterations, "states": states}
    if options.reference is None:
        return _heal(options, model, run, targets)
    if states and options.test is not None:
        raise UsageError("--test gives its run no variables: leave --state and --states out")
    reference = read_reference(
        options.reference,
        compiled,
        given_inputs(model, options),
        _pairs(options.also),
        runtime_of(options),
        options.model,
        options.max_iterations,
        states,
        partner,
    )
    with progress_line(_show, options) as show:
        found = repaired(
            model,
            reference,
            tolerances_of(options, model, exact=reference.is_exact),
            seconds=options.time,
            progress=show,
            **run,
        )
    contents = dict[str, bytes]()
    if found.edits:
        what = edits_text(found.answer.repairs[0].edits)
        contents = _contents(model, found.edits, what, reference.examples[0].inputs, states, targets)
        if "test" in targets:
            contents |= _test_contents(options, model, reference, what)
    if found.distinguishing is not None:
        contents["distinguish"] = _npz(_named(model, found.distinguishing))
    files = _write(targets, contents)
    data = {"model": options.model, **as_data(found.answer), "files": files}
    print_answer(options, data, [*answer_lines(found.answer), *_advice(options, found, files)])
    if found.answer.is_interrupted:
        return INTERRUPTED
    return 0 if found.answer.status is FixStatus.AGREE else FINDING


def _show(progress: SearchProgress) -> None:
    show_progress(progress_text(progress))


def _heal(options: Namespace, model: Model, run: dict[str, Any], targets: Mapping[str, OutputFile]) -> int:
    """Search for rewrites without a reference; 0 if there is nothing to heal, else FINDING. `run` says how to run."""
    layers = [*options.layers, *_layers_of_finding(options)]
    inputs = bound_inputs(model, options)
    found = healed(model, inputs, layers, **run)
    contents = dict[str, bytes]()
    if found.edits:
        what = edits_text([found.answer.heals[0].edit])
        contents = _contents(model, found.edits, what, inputs, run["states"], targets)
    files = _write(targets, contents)
    data = {"model": options.model, **as_data(found.answer), "files": files}
    print_answer(options, data, [*heal_lines(found.answer), *_written_lines(options, files)])
    return FINDING if found.answer.iterations else 0


def _layers_of_finding(options: Namespace) -> list[str]:
    """Return the layers of the findings of the asked rule. UsageError if a run has none."""
    if options.finding is None:
        return []
    found = check_run(debugger_of(options), seconds=options.time).findings
    named = [one for one in found if options.finding in (one.rule, rules()[one.rule].id)]
    layers = [one.spot.layer.name for one in named if one.spot.layer is not None]
    if not layers:
        known = enumerated(sorted({rules()[one.rule].id for one in found})) or "none"
        raise UsageError(f"--finding {options.finding}: check finds no such thing in a layer here; it finds {known}")
    return layers


def _pairs(texts: list[str]) -> list[tuple[str, str]]:
    """Return the archives of inputs and outputs that each `--also` names."""
    found = []
    for text in texts:
        inputs, comma, outputs = text.partition(",")
        if not comma or not inputs or not outputs:
            raise UsageError(f"--also {text}: expected INPUTS.npz,OUTPUTS.npz")
        found.append((inputs, outputs))
    return found


def _targets(options: Namespace, protected: ProtectedFiles) -> dict[str, OutputFile]:
    """Return the files to write by what they are. OutputError if one of them may not be written."""
    found: dict[str, OutputFile] = {}
    if options.output is not None:
        found["model"], found["weights"] = marked_files(options.output, protected, "-o")
        beside = Path(options.output).with_name(_DISTINGUISH)
        found["distinguish"] = OutputFile(beside, ARRAYS, protected, "-o")
    if options.python is not None:
        found["python"] = OutputFile(Path(options.python), SCRIPT, protected, "--python")
    if options.test is not None:
        if options.output is None:
            raise UsageError("--test runs the repaired model: add -o FILE.xml")
        test = Path(options.test)
        found["test"] = OutputFile(test, SCRIPT, protected, "--test")
        stem = Path(options.output).stem
        for what in ("inputs", "expected"):
            found[what] = OutputFile(test.with_name(f"{stem}_{what}.npz"), ARRAYS, protected, "--test")
    for target in found.values():
        target.check()
    return found


def _write(targets: Mapping[str, OutputFile], contents: Mapping[str, bytes]) -> list[str]:
    """Write the contents for which there is a file; return the names of the files."""
    chosen = [(targets[what], content) for what, content in contents.items() if what in targets]
    if not chosen:
        return []
    with writing_all([target for target, _content in chosen]) as files:
        for file, (_target, content) in zip(files, chosen, strict=True):
            file.write(content)
    return [str(target.path) for target, _content in chosen]


def _contents(
    model: Model,
    edits: Sequence[RepairEdit],
    what: str,
    inputs: Sequence[Array],
    states: Mapping[str, Any],
    targets: Mapping[str, OutputFile],
) -> dict[str, bytes]:
    """Return the repaired model and the repair as a Python function, as far as there are files for them."""
    contents = dict[str, bytes]()
    if "model" in targets:
        made = patched_ir(patched(model, edits), inputs, states)
        contents |= {"model": made.xml, "weights": made.weights}
    if "python" in targets:
        contents["python"] = python_function(model, patched(model, edits), what).encode()
    return contents


def _test_contents(options: Namespace, model: Model, reference: RepairReference, what: str) -> dict[str, bytes]:
    default, example = OTHER_KERNELS["f32"], reference.examples[0]
    tolerance = options.rtol or default.relative, options.atol or default.absolute
    inputs = _named(model, example.inputs)
    test = test_files(Path(options.output), inputs, dict(example.expected), what, tolerance)
    return {"test": test.test.encode(), "inputs": _npz(test.inputs), "expected": _npz(test.expected)}


def _named(model: Model, inputs: tuple[Array, ...]) -> dict[str, Array]:
    names = [input_names(parameter)[0] for parameter in model.graph.parameters]
    usable = len(set(names)) == len(names) and not any("/" in name or not name for name in names)
    return {name if usable else str(index): inputs[index] for index, name in enumerate(names)}


def _npz(arrays: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    write_arrays(buffer, dict(arrays))
    return buffer.getvalue()


def _written_lines(options: Namespace, files: list[str]) -> list[str]:
    """Return which files were written, and the line that shows the repaired model beside the original."""
    lines = [f"written: {', '.join(files)}"] if files else []
    if options.output in files:
        lines.append(f"look: {given_again(options, ['stepper', options.output, '--reference', options.model])}")
    return lines


def _advice(options: Namespace, found: FoundFix, files: list[str]) -> Iterator[str]:
    yield from _written_lines(options, files)
    if found.distinguishing is not None:
        file = next((one for one in files if Path(one).name == _DISTINGUISH), None)
        if file is None:
            yield "several repairs are possible; add -o FILE.xml to save an input on which they differ"
        else:
            yield f"several repairs are possible: run your original on {file} and add its outputs with --also"
