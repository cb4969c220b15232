"""From what a user writes after `--with` to a reference: OpenVINO, ONNX, a recorded run, an archive of values."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stepper.compare.references.archive import ArchiveReference
from stepper.compare.references.onnx import OnnxReference
from stepper.compare.references.onnx_worker import EVALUATORS, OnnxPeer
from stepper.compare.references.openvino import OpenVINOReference, StoppedRun
from stepper.compare.references.protocol import ReferenceRun
from stepper.element_types import Array
from stepper.engine.frames import Every
from stepper.engine.inputs import variables_alone
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.errors import LimitReached, StepperError, UsageError
from stepper.files.kinds import ensure_no_pipe
from stepper.openvino.partner import OPENVINO
from stepper.openvino.peer import OpenVINOPeer
from stepper.openvino.runtime import Runtime
from stepper.wording import near_text, reason_of

_SQLITE = b"SQLite format 3\0"


def open_reference(
    text: str,
    compiled: CompiledModel,
    inputs: Sequence[Array],
    runtime: Runtime | None = None,
    source: str | Path = "",
    max_iterations: int | None = None,
    option: str = "--with",
    states: Mapping[str, Any] | None = None,
    *,
    keeps: bool = False,
) -> ReferenceRun:
    """Return the reference for a model. `runtime` is OpenVINO's device and precision, `source` the file as the user
    named it, before it was converted, `max_iterations` the limit of our run, `states` what variables begin with;
    `keeps` lets OpenVINO find again what an earlier run has compiled (see OpenVINOPeer).

    UsageError for what is none or is not installed, InputError or SessionError for a file that is damaged.
    """
    if text == OPENVINO:
        runtime = runtime or Runtime()
        stopped = _stopped(compiled, inputs, max_iterations, states)
        peer = OpenVINOPeer(compiled.model, runtime, variables_alone(compiled.model, states), keeps=keeps)
        return OpenVINOReference(peer, inputs, str(runtime), stopped, runtime.timeout)
    if text in EVALUATORS:
        onnx = OnnxPeer(source or compiled.model.path, text, (runtime or Runtime()).limits)
        return OnnxReference(onnx, compiled.model, inputs)
    path = Path(text)
    if path.suffix == ".npz":
        return ArchiveReference(path, compiled)
    try:
        ensure_no_pipe(path)
        with path.open("rb") as file:
            beginning = file.read(len(_SQLITE))
    except OSError as error:
        near = near_text(text, (OPENVINO, *EVALUATORS))
        reason = f"there is no such file; {near}" if near and not path.exists() else reason_of(path, error)
        raise UsageError(f"{option} {text}: cannot be read: {reason}") from None
    if beginning == _SQLITE:
        from stepper.compare.references.recording import RecordingReference

        return RecordingReference(path, compiled, inputs)
    raise UsageError(
        f"{option} {text}: expected a model, a recorded run, an archive of values (.npz), openvino, onnx or onnxruntime"
    )


def model_title(ours: Path, theirs: Path) -> str:
    """Return what another model is called: its file's name, with its folder where ours has the same one."""
    return "/".join(theirs.absolute().parts[-2:]) if ours.name == theirs.name else theirs.name


def _stopped(
    compiled: CompiledModel, inputs: Sequence[Array], max_iterations: int | None, states: Mapping[str, Any] | None
) -> StoppedRun | None:
    """Return how the limit of iterations ends our run; None where there is none, or the run ends by itself."""
    if max_iterations is None:
        return None
    begin, machine = time.monotonic(), Machine(compiled, inputs, max_iterations=max_iterations, states=states)
    try:
        machine.advance(Every.END)
    except LimitReached:
        return StoppedRun(time.monotonic() - begin, max_iterations)
    except StepperError:
        pass  # the comparison finds that
    return None
