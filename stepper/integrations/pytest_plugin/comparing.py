"""The fixtures `stepper_agree` and `stepper_golden`: every value of two runs is compared, inside of loops too."""

from __future__ import annotations

import os
from pathlib import Path

from stepper.compare.comparison import RunComparison, compare_models, compare_with
from stepper.compare.references.opening import open_reference
from stepper.compare.report import text_lines
from stepper.engine.compiler import compile_model
from stepper.engine.machine import Machine
from stepper.errors import UsageError
from stepper.files.kinds import RECORDING, is_model_path
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.integrations.pytest_plugin.failing import FixtureOfRuns, GivenInputs, KeptRun, failing
from stepper.ir.model import Model
from stepper.ir.reader import ModelSource
from stepper.tensors.tolerances import Tolerances


class AgreementCheck(FixtureOfRuns):
    """Compares a model with another, OpenVINO, onnxruntime, a recording or an archive of values."""

    @failing
    def __call__(
        self,
        model: ModelSource,
        other: ModelSource,
        inputs: GivenInputs,
        *,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> RunComparison:
        """Return the comparison, in which nothing is outside of the tolerances.

        `other` is what `stepper compare --with` takes, or a model. Without `rtol` and `atol` they follow from the
        element types, as there.
        """
        run = KeptRun(model, inputs)
        found = _compared(run, other, rtol, atol)
        if found.differs:
            reference = other.path if isinstance(other, Model) else other
            raise self.failed(run, text_lines(found), reference=reference)
        return found


class GoldenCheck(FixtureOfRuns):
    """Compares a run with the recording of a good one, which --stepper-update makes."""

    @failing
    def __call__(
        self,
        file: str | Path,
        model: ModelSource,
        inputs: GivenInputs,
        *,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> RunComparison | None:
        """Return the comparison with the recording; None where it was written anew."""
        file, run = Path(file), KeptRun(model, inputs)
        if self.is_updating:
            _write(run, file)
            return None
        if not file.exists():
            raise UsageError(f"there is no {file} yet; pytest --stepper-update records it from this run")
        found = _compared(run, file, rtol, atol)
        if found.differs:
            again = "pytest --stepper-update records it anew, if this is as it should be"
            raise self.failed(run, text_lines(found), again, reference=file)
        return found


def _compared(run: KeptRun, other: ModelSource, rtol: float | None, atol: float | None) -> RunComparison:
    tolerances = None if rtol is atol is None else Tolerances(True, rtol, atol)
    if not isinstance(other, (str, Path)) or is_model_path(str(other)):
        return compare_models(run.model, other, run.by_position, tolerances=tolerances)
    compiled = compile_model(run.model)
    reference = open_reference(str(other), compiled, run.inputs, source=run.path, option="stepper_agree")
    tolerances = None if tolerances is None else Tolerances(reference.is_exact, rtol, atol)
    return compare_with(Machine(compiled, run.inputs), reference, tolerances)


def _write(run: KeptRun, file: Path) -> None:
    """Record a run; an earlier recording, and nothing else, is replaced."""
    from stepper.recording import RecordingOptions, open_recording, record

    OutputFile(file, RECORDING, ProtectedFiles.of_model(run.path), "stepper_golden").check()
    if file.exists():
        open_recording(file).close()  # refuses what is none
    # Of a process of its own: where tests run in several, some may have the same file.
    written = file.with_name(f".{file.name}.{os.getpid()}.part")
    written.unlink(missing_ok=True)
    try:
        machine = Machine(compile_model(run.model), run.inputs)
        with record(machine, run.inputs, written, RecordingOptions.parse("all")) as recorder:
            recorder.run()
        written.replace(file)
    finally:
        written.unlink(missing_ok=True)
