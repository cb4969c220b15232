"""`stepper reduce MODEL [inputs] -o DIR`: the smallest model that still has a fault, with what shows and reports it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from stepper.cli.printing import print_answer, progress_line, show_progress
from stepper.cli.specs import bound_inputs, choices_of, given_states, opened_model, protected_files, runtime_of
from stepper.debug.breakpoints.data_breakpoints import break_description
from stepper.diagnosis.reduce.reduced_case import case_targets, fault_text, write_case
from stepper.diagnosis.reduce.reducing import Reduction, ReductionProgress, reduce_model
from stepper.diagnosis.reduce.trials import OPENVINO, DisagreesWith, EndsInError, FaultCondition, RunSettings, StopsAt
from stepper.errors import FINDING, INTERRUPTED, UsageError
from stepper.files.file_kinds import is_model_path
from stepper.openvino.partner import OpenVINOPartner
from stepper.openvino.runtime import ensure_installed
from stepper.records import as_data
from stepper.wording import counted


def execute(options: Namespace) -> int:
    """Reduce and write; FINDING where there is a fault, 0 where there is none, INTERRUPTED after Ctrl+C."""
    condition = _condition(options)
    model = opened_model(options)
    choices = choices_of(options)
    OpenVINOPartner(options.engine, choices, runtime_of(options)).check(model)
    states = given_states(model, options)
    inputs = bound_inputs(model, options)
    folder = Path(options.output)
    was_there = folder.exists()
    targets = case_targets(folder, protected_files(options), "-o")
    with progress_line(partial(_show, most=options.time), options) as show:
        found = reduce_model(
            model,
            dict(enumerate(inputs)),
            condition,
            RunSettings(
                options.rules,
                options.max_iterations,
                device=options.device or "CPU",
                precision=options.precision or "f32",
                engine=options.engine,
                choices=tuple(choices.items()),
                extensions=tuple(map(str, options.extension)),
                relative=options.rtol,
                absolute=options.atol,
            ),
            seconds=options.time,
            states=states,
            progress=show,
        )
    if found is None:
        if not was_there:
            folder.rmdir()
        said = "nothing to reduce: the model does not have the fault that was asked for on these inputs"
        print_answer(options, {"model": options.model, "fault": None, "reduced": None}, [said])
        return 0
    files = write_case(found, targets, title=Path(options.model).name, finds_pass=not found.is_interrupted)
    print_answer(options, _data(options, found, files), _report_lines(options, found, files))
    return INTERRUPTED if found.is_interrupted else FINDING


def _condition(options: Namespace) -> FaultCondition | None:
    given = [options.break_spec is not None, options.error, options.reference is not None]
    if sum(given) > 1:
        raise UsageError("expected one of --break, --error and --differs")
    if options.break_spec is not None:
        break_description(options.break_spec)  # which says what is wrong with it
        return StopsAt(options.break_spec)
    if options.error:
        return EndsInError()
    if options.reference is None:
        return None
    if options.reference == OPENVINO:
        ensure_installed("stepper reduce --differs openvino")
    elif not is_model_path(options.reference):
        raise UsageError(f"--differs {options.reference}: expected openvino or the path of a healthy model")
    return DisagreesWith(options.reference)


def _show(progress: ReductionProgress, most: float) -> None:
    left = counted(progress.operations, "operation")
    text = f"{left} left, {counted(progress.trials, 'trial')}, {progress.seconds:.0f} of at most {most:.0f} s"
    show_progress(text, progress.seconds / most if most else None)


def _data(options: Namespace, found: Reduction, files: tuple[str, ...]) -> dict[str, Any]:
    before, after = found.operations
    return {
        "model": options.model,
        "fault": {**as_data(found.fault), "text": fault_text(found.fault)},
        "reduced": {
            "folder": options.output,
            "files": list(files),
            "operations_before": before,
            "operations": after,
            "trials": found.trials,
            "seconds": found.seconds,
            "is_smallest": found.is_smallest,
            "is_interrupted": found.is_interrupted,
        },
    }


def _report_lines(options: Namespace, found: Reduction, files: tuple[str, ...]) -> Iterator[str]:
    before, after = found.operations
    yield fault_text(found.fault)
    end = "nothing more goes" if found.is_smallest else "interrupted" if found.is_interrupted else "time is up"
    trials = counted(found.trials, "trial")
    shown = f"{counted(after, 'operation')} of {before} {'shows' if after == 1 else 'show'} it"
    yield f"  {shown}, after {trials} in {found.seconds:.1f} s; {end}"
    yield f"  written to {options.output}: {', '.join(files)}"
    yield f"  shown by: python {Path(options.output) / 'reproduce.py'}"
