"""Open models with OpenVINO: IRs, other formats converted once, and live `openvino.Model`s.

Imports that only the last two need are local, because most models are IRs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepper.element_types import Array
from stepper.engine.array_files import StoredArray
from stepper.errors import ArgumentTypeError, ModelError
from stepper.files.file_kinds import CONVERTED
from stepper.files.recognition import opened_in
from stepper.ir.model import Model
from stepper.ir.reader import ModelSource, read


def open_model(
    source: ModelSource,
    told: Callable[[str], None] | None = None,
    timeout: float | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    inputs: Mapping[str, Array | StoredArray] | None = None,
) -> Model:
    """Return the model of an IR's .xml, of a file that OpenVINO converts, or of a live `openvino.Model`.

    `told` hears of a conversion, which may take its time: `timeout` seconds at most, if given. A converted model has
    the name of its file. If the conversion needs shapes of inputs, it takes `shapes`, by name, or the shapes of the
    arrays in `inputs`. Small arrays also settle which branch an If takes. Raises ModelError if the file cannot be read
    or converted, LimitReached at the limit of time, and UsageError if OpenVINO is needed and not installed.
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, (str, Path)):
        path = opened_in(source) or Path(source)
        if path.suffix.lower() not in CONVERTED:
            return read(path)
        from stepper.openvino.conversion import converted

        return read(converted(path, told, timeout, shapes, inputs), path.name)
    return _live(source)


def _live(source: Any) -> Model:
    """Return a live model, written to a temporary place that is there as long as the model that is read from it."""
    if type(source).__module__.partition(".")[0] != "openvino":
        kind = type(source).__name__
        raise ArgumentTypeError(f"{kind} is not a model: name a file, or give a stepper or an OpenVINO model")
    import shutil
    import tempfile
    import weakref

    import openvino

    from stepper.openvino.runtime import complaint

    folder = Path(tempfile.mkdtemp(prefix="stepper-"))
    try:
        openvino.serialize(source, str(folder / "model.xml"))
        model = read(folder / "model.xml")
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, RuntimeError):
            raise ModelError(f"OpenVINO cannot write the model: {complaint(error)}") from None
        raise
    weakref.finalize(model, shutil.rmtree, folder, ignore_errors=True)
    return model
