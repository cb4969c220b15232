"""The OpenVINO runtime: one device, one precision; imported when it is first needed, and one sentence where it is not.

What is done here is done in this process, where a fault of OpenVINO's would be the end of it; `worker` has another
process do the same. Inference is asynchronous throughout: the synchronous call swallows what goes wrong inside of an
operation and returns memory that was never written.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.openvino.program import is_installed
from stepper.processes.messages import COMPILING, READING, RUNNING
from stepper.wording import excerpt

if TYPE_CHECKING:
    import openvino

    from stepper.openvino.acts import RuntimeFacts
    from stepper.processes.worker import Limits

INSTALL: Final = "pip install 'stepper[openvino]'"
PRECISIONS: Final = ("f32", "f16", "bf16")
_VIRTUAL_DEVICES: Final = ("AUTO", "MULTI", "HETERO", "BATCH")
_LONGEST_COMPLAINT: Final = 300
_ONE_THREAD: Final = {"INFERENCE_NUM_THREADS": "1", "ENABLE_CPU_PINNING": "NO"}
_SMALL: Final = 2**20
_CACHE: Final = "CACHE_DIR"
_MOST_ON_DISK: Final = 2**29
"""Of all compilations together; the oldest go first."""

_PLACES: Final = ("Exception from", "Caught exception", "Traceback", "File ", "RuntimeError: Exception from")


announce: Callable[[str], None] = lambda _stage: None  # noqa: E731  # another takes its place
"""Hears with what OpenVINO begins now: a stage of `processes.messages`. The process in which it runs passes that on."""


def ensure_installed(what: str) -> None:
    """Raise UsageError that says what needs OpenVINO and how to install it, where it is missing."""
    if not is_installed():
        raise UsageError(f"{what} needs OpenVINO: {INSTALL}")


class Runtime:
    """OpenVINO on a device at a precision.

    `device` is a name as OpenVINO has it (CPU, GPU.0, AUTO), `precision` what it is asked to compute floats in (f32,
    f16, bf16). `extensions` are libraries with operations of one's own, or Python classes of such operations.
    `properties` are further properties with which models are compiled, such as DYNAMIC_QUANTIZATION_GROUP_SIZE: 0.
    `timeout` is how many seconds OpenVINO may take for each of reading, converting, compiling and running.
    """

    def __init__(
        self,
        device: str = "CPU",
        precision: str = "f32",
        extensions: Sequence[Any] = (),
        properties: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise UsageError(f"there is no precision '{precision}'; choose {', '.join(PRECISIONS)}")
        self.device, self.precision, self.extensions = device, precision, tuple(extensions)
        self.properties, self.timeout = dict(properties or {}), timeout

    def with_properties(self, properties: Mapping[str, str]) -> Runtime:
        """Return the same with these properties too."""
        return Runtime(self.device, self.precision, self.extensions, {**self.properties, **properties}, self.timeout)

    def for_size(self, size: int) -> Runtime:
        """Return the same for models that read so many bytes: small ones get one thread.

        Threads that wait for each other there cost more than they spare; starting them is a part of each compilation.
        """
        if size > _SMALL or self.device.upper() != "CPU":
            return self
        return Runtime(self.device, self.precision, self.extensions, {**_ONE_THREAD, **self.properties}, self.timeout)

    def beside_another(self) -> Runtime:
        """Return the same for models of which two are computed at a time: each with half of the cores.

        With all of them threads that have nothing to do take the time of those of the other model.
        """
        if self.device.upper() != "CPU":
            return self
        from stepper.processes.cores import cores  # most runs need no other process

        threads = {**_ONE_THREAD, "INFERENCE_NUM_THREADS": str(max(1, cores() // 2))}
        return Runtime(self.device, self.precision, self.extensions, {**threads, **self.properties}, self.timeout)

    def keeping(self) -> Runtime:
        """Return the same, but what it compiles is kept for later runs.

        OpenVINO keeps it in the user's cache folder, by contents and its own version. For other devices than the CPU,
        which have ways of their own, nothing is kept.
        """
        if self.device.upper() != "CPU" or self.extensions or _CACHE in self.properties:
            return self
        from stepper.files.user_cache import roomy, user_cache  # most runs compile nothing

        folder = roomy(user_cache() / "openvino", _MOST_ON_DISK)
        return self if folder is None else self.with_properties({_CACHE: str(folder)})

    def __reduce__(self) -> tuple[Any, ...]:
        return Runtime, (self.device, self.precision, self.extensions, self.properties)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Runtime) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.device, self.precision))

    def __str__(self) -> str:
        return f"OpenVINO ({self.device}, {self.precision})"

    @property
    def limits(self) -> Limits:
        """The limits of time."""
        from stepper.processes.worker import LONGEST, Limits  # most runs need no other process

        return Limits(LONGEST if self.timeout is None else self.timeout)

    @property
    def is_remote(self) -> bool:
        """True if another process can compute as this does: not with extensions that are Python classes of this one."""
        return all(isinstance(extension, (str, Path)) for extension in self.extensions)

    @property
    def _is_everywhere(self) -> bool:
        """True for what every OpenVINO computes with."""
        return self.device.upper() == "CPU" and self.precision == PRECISIONS[0] and not self.extensions

    @property
    def facts(self) -> RuntimeFacts:
        """The settings with which another process computes as this one does."""
        from stepper.openvino.acts import RuntimeFacts

        return RuntimeFacts(self.device, self.precision, tuple(map(str, self.extensions)), self.properties)

    def check(self, *, waits: bool = True) -> None:
        """Raise UsageError where OpenVINO is not installed, has no such device, or the device no such precision.

        It `waits` until OpenVINO is loaded, or does so only where it could be that: every OpenVINO has f32 on the CPU.
        """
        ensure_installed(f"computing with {self}")
        if not self.is_remote:
            self.check_here()
        elif waits or not self._is_everywhere:
            from stepper.openvino.acts import CheckDevice
            from stepper.openvino.worker import shared_worker

            shared_worker().ask(CheckDevice(self.facts), subject=f"the device {self.device}", limits=self.limits)

    def check_here(self) -> None:
        """The same, in this process."""
        core = self.core
        if self.precision == PRECISIONS[0]:
            return
        computed = _computed_precision(core, self.device, self.precision)
        if computed not in (None, self.precision):
            has = [one for one in PRECISIONS if _computed_precision(core, self.device, one) in (None, one)]
            raise UsageError(
                f"the device {self.device} does not compute in {self.precision}: OpenVINO would take {computed} "
                f"instead; here it has {' and '.join(has)}, "
                f"and --engine numpy-{self.precision} emulates it"
            )

    @cached_property
    def core(self) -> openvino.Core:
        """OpenVINO itself, in this process. UsageError where it is not installed or has no such device."""
        ensure_installed(f"computing with {self}")
        import openvino

        core = openvino.Core() if self.extensions else _shared_core()
        for extension in self.extensions:
            try:
                core.add_extension(extension)
            except RuntimeError as error:
                raise UsageError(f"{extension}: cannot be loaded as an extension: {complaint(error)}") from None
        self._check_device(core)
        return core

    def _check_device(self, core: openvino.Core) -> None:
        kind = re.split(r"[:.(]", self.device)[0].upper()
        available = list(core.available_devices)
        if kind not in _VIRTUAL_DEVICES and kind not in {re.split(r"[:.(]", name)[0] for name in available}:
            raise UsageError(f"OpenVINO finds no device '{self.device}' here, only {', '.join(available)}")

    def read(self, text: str, weights: Array | None = None, *, is_kept: bool) -> openvino.Model:
        """Return a model from the text of an IR and the bytes of its .bin.

        `is_kept`: the caller keeps the weights as long as the model is in use; else they are copied.
        """
        core = self.core
        announce(READING)
        if weights is None or not weights.size:
            return core.read_model(text.encode())
        import openvino

        return core.read_model(text.encode(), openvino.Tensor(weights, shared_memory=is_kept))

    def request(self, model: openvino.Model) -> openvino.InferRequest:
        """Return a request of the compiled model. RuntimeError where OpenVINO refuses it; `complaint` has its words."""
        configuration = {"INFERENCE_PRECISION_HINT": self.precision, "NUM_STREAMS": 1}
        if self.device.upper() != "CPU":
            del configuration["NUM_STREAMS"]
        core = self.core
        announce(COMPILING)
        found = core.compile_model(model, self.device, {**configuration, **self.properties}).create_infer_request()
        announce(RUNNING)
        return found

    def compile_file(self, path: str) -> None:
        """Read and compile the IR in a file, for what OpenVINO tells of its doing so."""
        core = self.core
        announce(READING)
        model = core.read_model(path)
        announce(COMPILING)
        core.compile_model(model, self.device, {"INFERENCE_PRECISION_HINT": self.precision, **self.properties})


def load() -> None:
    """Load OpenVINO with its devices, before anything is asked of it."""
    _shared_core().available_devices  # noqa: B018  # that loads them


@functools.cache
def _shared_core() -> openvino.Core:
    """Return the one OpenVINO of the process; loading its plugins takes longer than compiling a layer."""
    import openvino

    return openvino.Core()


@functools.cache
def _computed_precision(core: openvino.Core, device: str, precision: str) -> str | None:
    """Return the type in which products are computed at this precision; None where the device does not say."""
    import openvino
    from openvino import op

    x = op.Parameter(openvino.Type.f32, openvino.Shape([2, 2]))
    model = openvino.Model([openvino.opset1.matmul(x, x, False, False)], [x])
    try:
        compiled = core.compile_model(model, device, {"INFERENCE_PRECISION_HINT": precision})
        found = compiled.get_property("INFERENCE_PRECISION_HINT")
    except RuntimeError:
        return None
    return str(found.get_type_name())


def complaint(error: BaseException) -> str:
    """Return the message of an exception of OpenVINO, without the places in OpenVINO's sources."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [re.sub(r"^.*?Check '.*?' failed at [^:]*:\d+:?", "", line).strip() for line in lines]
    said = [line for line in said if line and not line.startswith(_PLACES)]
    return excerpt(" ".join(said) or str(error), _LONGEST_COMPLAINT)
