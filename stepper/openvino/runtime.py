"""Wrap the OpenVINO runtime: one device, one precision; imported when first needed.

If OpenVINO is missing, the error is one sentence. This module works in the current process, and a fault of OpenVINO
would end the process; `worker` uses another process. Inference is always asynchronous, because the synchronous call
hides errors inside an operation and returns memory that was never written.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from stepper import element_types
from stepper.element_types import STRING, STRING_DTYPE, Array, ElementType, Ints, Shape
from stepper.errors import KernelError, UsageError
from stepper.ir import weights
from stepper.ir.model import Calls, Layer
from stepper.openvino.program import is_installed
from stepper.processes.process_messages import COMPILING, READING, RUNNING, CallFunction, Definition
from stepper.records import Record
from stepper.tensors.tolerances import Tolerance
from stepper.wording import excerpt, install_line

if TYPE_CHECKING:
    import openvino

    from stepper.ir.model import Model
    from stepper.processes.worker import Limits


INSTALL = install_line("openvino")
PRECISIONS = ("f32", "f16", "bf16")
_VIRTUAL_DEVICES = ("AUTO", "MULTI", "HETERO", "BATCH")
_LONGEST_COMPLAINT = 300
_ONE_THREAD = {"INFERENCE_NUM_THREADS": "1", "ENABLE_CPU_PINNING": "NO"}
_SMALL = 2**20
_CACHE = "CACHE_DIR"
_MOST_ON_DISK = 2**29
"""Maximum bytes of all compilations on disk together; the oldest go first."""

_PLACES = ("Exception from", "Caught exception", "Traceback", "File ", "RuntimeError: Exception from")


announce: Callable[[str], None] = lambda _stage: None  # noqa: E731  # another takes its place
"""Hears with what OpenVINO begins now: a stage of `processes.messages`. The process in which it runs passes that on."""


def ensure_installed(what: str) -> None:
    """Raise UsageError that says what needs OpenVINO and how to install it, where it is missing."""
    if not is_installed():
        raise UsageError(f"{what} needs OpenVINO: {INSTALL}")


class Runtime(Record, dict=True):
    """OpenVINO on a device at a precision.

    `device` is a name as OpenVINO has it (CPU, GPU.0, AUTO), `precision` what it is asked to compute floats in (f32,
    f16, bf16). `extensions` are libraries with operations of one's own, or Python classes of such operations.
    `properties` are further properties with which models are compiled, such as DYNAMIC_QUANTIZATION_GROUP_SIZE: 0.
    `timeout` is how many seconds OpenVINO may take for each of reading, converting, compiling and running.
    """

    device: str = "CPU"
    precision: str = "f32"
    extensions: Sequence[Any] = ()
    properties: Mapping[str, str] = {}
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UsageError(f"there is no precision '{self.precision}'; choose {', '.join(PRECISIONS)}")
        extensions = (str(one) if isinstance(one, Path) else one for one in self.extensions)
        force_setattr(self, "extensions", tuple(extensions))

    def with_properties(self, properties: Mapping[str, str]) -> Runtime:
        """Return the same with these properties too."""
        return replace(self, properties={**self.properties, **properties})

    def for_size(self, size: int) -> Runtime:
        """Return the same for models that read so many bytes: small ones get one thread.

        Threads that wait for each other there cost more than they spare; starting them is a part of each compilation.
        """
        if size > _SMALL or self.device.upper() != "CPU":
            return self
        return self.with_properties({**_ONE_THREAD, **self.properties})

    def beside_another(self) -> Runtime:
        """Return a runtime for models that run two at a time: each uses half of the cores.

        With all cores, idle threads of a model would take time from the threads of the other model.
        """
        if self.device.upper() != "CPU":
            return self
        from stepper.processes.starting import cores  # most runs need no other process

        threads = {"INFERENCE_NUM_THREADS": str(max(1, cores() // 2))}
        return self.with_properties({**_ONE_THREAD, **threads, **self.properties})

    def keeping(self) -> Runtime:
        """Return a runtime that keeps its compilations for later runs.

        OpenVINO keeps them in the user's cache folder, by contents and its own version. Devices other than the CPU have
        their own caches, so nothing is kept for them.
        """
        if self.device.upper() != "CPU" or self.extensions or _CACHE in self.properties:
            return self
        from stepper.files.own_files import roomy, user_cache  # most runs compile nothing

        folder = roomy(user_cache() / "openvino", _MOST_ON_DISK)
        return self if folder is None else self.with_properties({_CACHE: str(folder)})

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
        return all(isinstance(extension, str) for extension in self.extensions)

    def check(self, *, waits: bool = True) -> None:
        """Raise UsageError where OpenVINO is not installed, has no such device, or the device no such precision.

        It `waits` until OpenVINO is loaded, or does so only where it could be that: every OpenVINO has f32 on the CPU.
        """
        ensure_installed(f"computing with {self}")
        if not self.is_remote:
            self.check_here()
        elif waits or not (self.device.upper() == "CPU" and self.precision == PRECISIONS[0] and not self.extensions):
            from stepper.openvino.program import shared_worker

            shared_worker().ask(CheckDevice(self), subject=f"the device {self.device}", limits=self.limits)

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
        kind = re.split(r"[:.(]", self.device)[0].upper()
        available = list(core.available_devices)
        if kind not in _VIRTUAL_DEVICES and kind not in {re.split(r"[:.(]", name)[0] for name in available}:
            raise UsageError(f"OpenVINO finds no device '{self.device}' here, only {', '.join(available)}")
        return core

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


# Which function of a model is wanted, as it is said to another process.


class Judgement(Record):
    """Judge an output: the index of the argument that it is compared with, and the tolerance."""

    place: int
    tolerance: Tolerance


class FunctionKind(Record):
    """Select how a model's text is compiled: unchanged by default.

    `stacked`: it takes many sets of inputs; these flags say which inputs are stacked. `calls`: the function makes these
    calls, and gives the outputs that are `joined` over all calls. `judged`: it gives a boolean for each output, true if
    the output agrees with one of the arguments within the tolerance. Then it gives the outputs that do not agree. The
    first `taken` arguments are its inputs.
    """

    stacked: tuple[bool, ...] = ()
    calls: Calls | None = None
    joined: Ints = ()
    judged: tuple[Judgement, ...] = ()
    taken: int = 0


AS_IT_IS = FunctionKind()


# The acts that OpenVINO performs in its worker process, as they cross to it: `worker` asks, `service` performs.


class CheckDevice(Struct, frozen=True, tag=True):
    """Refuse a device that is missing or does not compute in the precision."""

    runtime: Runtime


class Convert(Struct, frozen=True, tag=True):
    """Read a model of any format and write it as an IR; its inputs have these shapes, where any are given."""

    source: str
    target: str
    folder: str
    shapes: dict[str, Shape]


class AskOtherReader(Struct, frozen=True, tag=True):
    """Ask another reader of ONNX files whether it takes one; the facts are its `OtherReader`, or nothing."""

    path: str


class Rewrite(Struct, frozen=True, tag=True):
    """Write an ONNX file with others in the place of operations that OpenVINO lacks; the facts are `Replacements`.

    The inputs have these shapes and the arrays of the message as their values, where any are given; `types` are those
    of the operations that were refused.
    """

    source: str
    target: str
    folder: str
    shapes: dict[str, Shape]
    names: tuple[str, ...]
    types: tuple[str, ...]


class CompileFile(Struct, frozen=True, tag=True):
    """Read and compile an IR in `folder`, for the sake of what OpenVINO writes there meanwhile."""

    runtime: Runtime
    path: str
    folder: str


class DefineModel(Definition, frozen=True, tag=True):
    """A model by the text of its IR and the path of its .bin (empty: it has none).

    The arrays of the message are what these variables begin with.
    """

    runtime: Runtime
    text: str
    weights: str
    states: tuple[str, ...] = ()
    kind: FunctionKind = AS_IT_IS


class DefineLayer(Definition, frozen=True, tag=True):
    """A layer; the arrays of the message are its constant inputs, at these places."""

    runtime: Runtime
    layer: Layer
    constants: Ints
    is_last_resort: bool


OpenVINOAct = CheckDevice | Convert | AskOtherReader | Rewrite | CompileFile | DefineModel | DefineLayer | CallFunction


# Arrays to OpenVINO's tensors and back, of every element type, bit for bit.
#
# numpy lacks some of the types: there OpenVINO shows the bytes, half-byte types several values to a byte. openvino is
# imported by the first call.


def to_tensor(array: Any) -> openvino.Tensor:
    """Return a tensor of its own with what the array holds."""
    import openvino

    element_type = element_types.of(array)
    if element_type is STRING:
        texts = np.array(np.asarray(array).tolist(), np.str_).reshape(array.shape)
        return openvino.Tensor(texts if texts.dtype.itemsize else texts.astype("U1"))
    tensor = openvino.Tensor(native_type(element_type), openvino.Shape(array.shape))
    fill(tensor, array)
    return tensor


def fill(tensor: openvino.Tensor, array: Any) -> None:
    """Write the array into a tensor of its shape, of any type but strings. KernelError where the types differ."""
    element_type, wanted = element_types.of(array), tensor.element_type.get_type_name()
    if element_type.name != wanted:
        raise KernelError(f"OpenVINO expects {wanted}, not {element_type}")
    if not array.size:
        return
    if element_type.bits < 8:
        tensor.data[...] = weights.pack(np.asarray(array), element_type).view(tensor.data.dtype)
    else:
        tensor.data.view(element_type.dtype)[...] = array


def feed(request: openvino.InferRequest, inputs: Sequence[Any]) -> list[openvino.Tensor]:
    """Give a request its inputs; what is returned must be kept until it gets others.

    They are written into the request's own tensors wherever that can be: an output may share the memory of an input,
    and with tensors that come and go OpenVINO writes into memory that is free again.
    """
    kept = []
    for index, array in enumerate(inputs):
        if array.dtype == STRING_DTYPE:
            kept.append(to_tensor(array))
            request.set_input_tensor(index, kept[-1])
        else:
            tensor = request.get_input_tensor(index)
            if shape_of(tensor) != array.shape:
                tensor.shape = list(array.shape)
            fill(tensor, array)
    return kept


def to_array(tensor: openvino.Tensor) -> Array:
    """Return a copy of what the tensor holds, in the dtype of its element type."""
    element_type = element_types.by_name(tensor.element_type.get_type_name())
    if element_type is None:
        raise KernelError(
            f"OpenVINO gives a tensor of {tensor.element_type.get_type_name()}, which is not a known type"
        )
    if element_type.bits >= 8 and element_type is not STRING:
        return np.array(tensor.data.view(element_type.dtype))
    shape = shape_of(tensor)
    if element_type is STRING:
        return np.array(tensor.str_data.tolist(), element_type.dtype).reshape(shape)
    if 0 in shape:
        return np.empty(shape, element_type.dtype)
    raw = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(-1)
    return weights.unpack(raw, element_type, int(np.prod(shape))).reshape(shape)


def shape_of(tensor: openvino.Tensor) -> Shape:
    """Return the sizes of a tensor: by position, iterating over OpenVINO's lists takes twenty times as long."""
    shape = tensor.shape
    return tuple(shape[axis] for axis in range(len(shape)))


def native_type(element_type: ElementType) -> openvino.Type:
    """OpenVINO's own object for an element type."""
    import openvino

    native: openvino.Type = getattr(openvino.Type, element_type.name)
    return native


class NativeText(NamedTuple):
    """The text of an IR, and the bytes of its .bin."""

    text: str
    weights: np.memmap[Any, Any] | None

    @property
    def weights_path(self) -> str:
        """The path of the .bin; empty without one."""
        return "" if self.weights is None else str(self.weights.filename)


def weights_of(model: Model) -> np.memmap[Any, Any] | None:
    """Return the bytes of a model's .bin; None where it has none."""
    if model.weights is None or model.weights.size == 0:
        return None
    return mapped(model.weights.path)


def mapped(path: str | Path) -> np.memmap[Any, Any]:
    """Return the bytes of a .bin; copied on write, for OpenVINO wants memory that could be written."""
    return np.memmap(path, np.uint8, "c")
