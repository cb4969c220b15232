"""Find the OpenVINO transformation that changes the results of a model: `first_change`.

Our own engine runs the model before any pass and after each pass, on the same inputs. The outputs, the loops' outputs,
shapes and iterations are compared with the results of the model before any pass. Passes that changed nothing in the
file are not run. After some passes the model has operations of the plugin that only the plugin can run; these passes
are reported.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from msgspec import Struct, field

from stepper import element_types
from stepper.element_types import Array, ElementType, is_floating
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Activation, Every, Frame, Frames, LoopEndObserver
from stepper.engine.inputs import bind_inputs, bind_states, variables_alone, variables_of
from stepper.engine.machine import Machine
from stepper.engine.program import Function, LoopPlan
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog, output_names
from stepper.errors import LimitReached, StepperError
from stepper.ir import xml
from stepper.ir.model import Layer, Model, parameter_type
from stepper.ir.reader import read
from stepper.ir.xml import Element
from stepper.openvino.native_text import holder, layer_path, new_edge, new_layer
from stepper.openvino.partner import TracedPass
from stepper.ops import registry
from stepper.ops.operands import shape_text
from stepper.ops.registry import Kernel
from stepper.records import Record
from stepper.tensors.difference import measure
from stepper.tensors.number_text import number_text
from stepper.tensors.tolerances import EXACT, OTHER_KERNELS, Tolerance

# ---------------------------------------------------------------------------------------------------------------------
# Operations of OpenVINO's CPU plugin, as its passes put them in: enough of them to run a model after most passes
#
# The passes near the end of a compilation put in operations that no operation set has, give operations other element
# types than their definition says (`type_relaxed_opset1`), and write booleans as u8. None of it is in a saved model.


_RELAXED = "type_relaxed_opset"
_TYPE_ATTRIBUTES = ("output_type", "index_element_type")


class PluginOperations:
    """A partner of the engine that computes the plugin's own operations with numpy."""

    description = "the plugin's own operations by numpy"

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        """True if this is an operation of the plugin, or one with other types than its definition has."""
        return layer.type in _OPERATIONS or (has_kernel and layer.version.startswith(_RELAXED))

    def bind(self, layer: Layer, constants: Sequence[Array | None]) -> tuple[Function, str]:
        """Return the function of the layer, and who computes it."""
        del constants
        if (operation := _OPERATIONS.get(layer.type)) is not None:
            attributes = layer.attributes
            return (lambda *inputs: (operation(attributes, *inputs),)), self.description
        assert layer.definition is not None, "a kernel was found for it"
        kernel = registry.find(layer.type, layer.definition)
        assert kernel is not None
        return _relaxed(layer, kernel), self.description


def _relaxed(layer: Layer, kernel: Kernel) -> Function:
    """Return the kernel with the element types that the plugin gave it. A boolean stays one, where it is called u8."""
    named_types = (layer.attributes.get(f"{side}_data_types", "").split(",") for side in ("input", "output"))
    incoming, outgoing = ([element_types.by_name(text.strip()) for text in texts] for texts in named_types)
    named = {} if outgoing[0] is None else dict.fromkeys(_TYPE_ATTRIBUTES, outgoing[0].name)
    function = kernel.bind({**named, **layer.attributes})

    def run(*inputs: Any) -> tuple[Any, ...]:
        found = function(*[_cast(value, incoming, index) for index, value in enumerate(inputs)])
        outputs = found if kernel.several_outputs else (found,)
        return tuple(value if value.dtype == np.bool_ else _cast(value, outgoing, k) for k, value in enumerate(outputs))

    return run


def _cast(value: Any, types: Sequence[ElementType | None], index: int) -> Any:
    wanted = types[index] if index < len(types) else None
    return value if wanted is None or value.dtype == wanted.dtype else value.astype(wanted.dtype)


def _fully_connected(_attributes: Mapping[str, str], x: Any, weights: Any, bias: Any = None) -> Any:
    product = np.matmul(x, np.swapaxes(weights, -1, -2))
    return product if bias is None or bias.size == 0 else product + bias


def _power_static(attributes: Mapping[str, str], x: Any) -> Any:
    scale, shift, power = (np.asarray(attributes[name], x.dtype) for name in ("scale", "shift", "power"))
    moved = x * scale + shift
    return moved if power == 1 else np.power(moved, power)


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "FullyConnected": _fully_connected,
    "PowerStatic": _power_static,
    "LeakyRelu": lambda at, x: np.where(x < 0, x * np.asarray(at["negative_slope"], x.dtype), x),
    "SwishCPU": lambda at, x: x / (1 + np.exp(-x * np.asarray(at["alpha"], x.dtype))),
}


# --- the file --------------------------------------------------------------------------------------------------------


def make_readable(path: Path) -> None:
    """Rewrite a serialised model so that it can be read: Constants of no type, and conditions that are u8."""
    root = xml.parse(path)
    for layer in root.iter("layer"):
        data = layer.find("data")
        if layer.get("type") == "Const" and data is not None and data.get("element_type") == "dynamic":
            data.set("element_type", "u8")
    for graph in root.iter("net", "body", "then_body", "else_body"):
        for layer in graph.findall("layers/layer"):
            if (index := {"Loop": 1, "If": 0}.get(layer.get("type", ""))) is not None:
                _convert_to_boolean(graph, layer, index)
            body = layer.find("body")
            for entry in layer.iterfind("port_map/output[@purpose='execution_condition']"):
                result = None if body is None else body.find(layer_path(int(entry.get("internal_layer_id", "-1"))))
                if layer.get("type") == "Loop" and body is not None and result is not None:
                    _convert_to_boolean(body, result, 0)
    path.write_bytes(etree.tostring(root))


def _convert_to_boolean(graph: Element, layer: Element, index: int) -> None:
    """Put a Convert before an input of a layer."""
    ends = layer.get("id"), next((port.get("id") for port in layer.findall("input/port")[index:]), None)
    edge = next((e for e in graph.iterfind("edges/edge") if (e.get("to-layer"), e.get("to-port")) == ends), None)
    if edge is None:
        return
    convert = new_layer(graph, "Convert", "condition", inputs=1, outputs=1, destination_type="boolean")
    for port in holder(graph, convert).iter("port"):
        port.set("precision", "BOOL")
        port.remove(port[0])  # of any shape
    new_edge(graph, convert, 1, int(edge.get("to-layer", "")), int(edge.get("to-port", "")))
    edge.set("to-layer", str(convert))
    edge.set("to-port", "0")


# ---------------------------------------------------------------------------------------------------------------------


class PassEffect(StrEnum):
    """Effect of a pass on the model."""

    SAME_FILE = "unchanged"
    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_RUN = "cannot be run"


class PassReport(Record):
    """Describe one pass: its number and name as the runtime has them, the verdict, and a remark.

    `largest_difference` is the largest difference of an output from the output of the model before any pass.
    """

    number: int
    name: str
    verdict: PassEffect
    details: tuple[str, ...] = ()
    largest_difference: float = 0.0


class PassRun(Struct):
    """Results of one run of the model: outputs by name; loops' iterations and their outputs by path."""

    outputs: dict[str, Array]
    iterations: dict[str, int]
    loop_values: dict[tuple[str, str], Array] = field(default_factory=dict)


def pass_reports(passes: Iterable[TracedPass], judge: PassJudge) -> Iterator[PassReport]:
    """Yield a report for each pass over the model, in order, while OpenVINO compiles it in another process."""
    content, report = list[bytes](), PassReport(0, "", PassEffect.EQUAL)
    for traced in passes:
        seen = _hashes(traced.path)
        if seen == content:
            same = report.verdict if report.verdict is PassEffect.NOT_RUN else PassEffect.SAME_FILE
            report = PassReport(traced.number, traced.name, same, report.details, report.largest_difference)
            yield report
            continue
        judged = judge.report(traced)
        if judged is None:
            continue  # a pass over a body, or over a piece of the model
        content, report = seen, judged
        yield report


class PassJudge:
    """Runs the model after a pass, and says how the pass changed its results.

    `inputs` are arrays in the order of the model's Parameters, `states` what variables begin with. Raises what running
    the model before any pass raises.
    """

    def __init__(
        self,
        model: Model,
        inputs: Sequence[Array],
        rules: Rules = Rules.SPEC,
        tolerance: Tolerance | None = None,
        max_iterations: int | None = None,
        states: Mapping[str, Any] | None = None,
    ) -> None:
        self._inputs, self._states, self._interface = inputs, states, _interface(model)
        self._tolerance, self._rules = tolerance or OTHER_KERNELS["f32"], rules
        self._baseline = _run(model, inputs, rules, max_iterations, states)
        # A pass may have lost what ends a loop.
        enough = 1000 + 10 * max(self._baseline.iterations.values(), default=0)
        self._most = enough if max_iterations is None else max_iterations

    def beside_runtime(self, outputs: Sequence[Array]) -> tuple[str, ...]:
        """Return in which outputs the runtime's own run of the whole model differs from ours, in words."""
        theirs = PassRun(dict(zip(self._baseline.outputs, outputs, strict=True)), {})
        return tuple(differences(self._baseline, theirs, self._tolerance)[0])

    def report(self, traced: TracedPass) -> PassReport | None:
        """Return the effect of a pass; None where it is over another model."""
        path, largest = traced.path, 0.0
        try:
            make_readable(path)
            model = read(path)
            if _interface(model) != self._interface:
                return None
            inputs, states = _retyped(model, self._inputs), _retyped_states(model, self._states)
            found = _run(model, inputs, self._rules, self._most, states)
        except LimitReached as error:
            verdict, details = PassEffect.DIFFERENT, [f"it continues where the model had ended: {error}"]
        except StepperError as error:
            verdict, details = PassEffect.NOT_RUN, [str(error).removeprefix(f"{path}:")]
        else:
            details, largest = differences(self._baseline, found, self._tolerance)
            verdict = PassEffect.DIFFERENT if details else PassEffect.EQUAL
        return PassReport(traced.number, traced.name, verdict, tuple(details), largest)


def _interface(model: Model) -> tuple[list[str], int]:
    """Return what tells the model from a body of it: the names of its inputs, the number of its outputs."""
    return [parameter.name for parameter in model.graph.parameters], len(model.graph.results)


def _retyped(model: Model, inputs: Sequence[Array]) -> Sequence[Array]:
    """Return the inputs in the element types that a pass gave the Parameters; values that it loses are its doing."""
    found = []
    for parameter, array in zip(model.graph.parameters, inputs, strict=True):
        element_type = parameter_type(parameter)
        found.append(array if element_type is None else np.asarray(array).astype(element_type.dtype))
    return found


def _retyped_states(model: Model, states: Mapping[str, Any] | None) -> dict[str, Array]:
    """Return the variables that a pass left in the model, in the element types that it gave them."""
    types = {variable.name: variable.element_type for variable in variables_of(model)}
    values = variables_alone(model, states)
    return {
        name: value if (kind := types[name]) is None else value.astype(kind.dtype) for name, value in values.items()
    }


def _run(
    model: Model, inputs: Sequence[Array], rules: Rules, most: int | None, states: Mapping[str, Any] | None
) -> PassRun:
    compiled = compile_model(model, rules, PluginOperations())
    machine = Machine(
        compiled,
        bind_inputs(model, dict(enumerate(inputs))),
        states=bind_states(compiled, states),
        max_iterations=most,
        keep_values=False,
    )
    log, ran = LoopLog(), PassRun({}, {})

    def ended(stack: Frames, activation: Activation) -> None:
        log.loop_left(stack, activation)
        ran.loop_values.update(_loop_values(stack[-1], activation))

    machine.observers = (LoopEndObserver(ended),)
    machine.advance(Every.END)
    assert machine.outputs is not None, "the machine has finished"
    ran.outputs = dict(zip(output_names(model), machine.outputs, strict=True))
    ran.iterations = {summary.path: summary.iterations for summary in log.summaries}
    return ran


def _loop_values(outer: Frame, activation: Activation) -> dict[tuple[str, str], Array]:
    """Return the outputs of a loop's last execution, by the loop's path and the Results of the body."""
    plan, operation = activation.plan, activation.operation
    assert isinstance(plan, LoopPlan), "only loops are reported"
    program = plan.program
    path = f"{outer.program.name} > {operation.layer.type} '{operation.layer.name}'"
    found = {}
    for entry, kind in [(e, "last") for e in plan.last_values] + [(e, "all") for e in plan.concatenated]:
        if entry.output is not None:
            result = program.graph.results[program.results.index(entry.result)]
            value = outer.values[operation.outputs[entry.output]]
            found[path, f"{kind} of '{result.name}'"] = np.asarray(value)
    return found


def differences(before: PassRun, after: PassRun, tolerance: Tolerance) -> tuple[list[str], float]:
    """Return in which outputs, loops and iterations two runs differ, and the largest difference of an output."""
    found, largest = [], 0.0
    for path, count in before.iterations.items():
        if path in after.iterations and after.iterations[path] != count:
            found.append(f"{path.removeprefix('model > ')}: {after.iterations[path]} iterations instead of {count}")
    for (path, what), value in before.loop_values.items():
        if (path, what) in after.loop_values:
            text, _distance = _difference(value, after.loop_values[path, what], tolerance)
            found += [f"{path.removeprefix('model > ')}, {what}: {text}"] if text else []
    pairs = zip(before.outputs.items(), after.outputs.values(), strict=False)
    for (name, value), other in pairs:
        text, distance = _difference(value, other, tolerance)
        largest = max(largest, distance)
        found += [f"output '{name}': {text}"] if text else []
    if len(before.outputs) != len(after.outputs):
        found.append(f"{len(after.outputs)} outputs instead of {len(before.outputs)}")
    return found, largest


def _difference(before: Array, after: Array, tolerance: Tolerance) -> tuple[str, float]:
    """Return what is wrong with `after` and the largest difference. A scalar and one of shape [1] are alike."""
    if before.shape != after.shape and (before.size != 1 or after.size != 1):
        return f"shape {shape_text(after.shape)} instead of {shape_text(before.shape)}", 0.0
    found = measure(after.reshape(before.shape), before, tolerance if is_floating(before.dtype) else EXACT)
    if found is None or found.problem:
        return "" if found is None else found.problem, 0.0
    distance = found.absolute if math.isfinite(found.absolute) else 0.0
    if not found.differs:
        return "", distance
    worst = f"{number_text(found.ours, 7)} instead of {number_text(found.theirs, 7)}"
    where = f", the worst at {list(found.index)}" if found.size > 1 else ""
    return f"{found.outside} of {found.size} elements differ{where}: {worst}", distance


def _hashes(path: Path) -> list[bytes]:
    """Return the hashes of the files of a model."""
    found = []
    for file in (path, path.with_suffix(".bin")):
        if file.is_file():
            with file.open("rb") as content:
                found.append(hashlib.file_digest(content, "blake2b").digest())
    return found


# --- Search over the passes of a compilation: few of them are run, those that tell where results begin to differ -----
#
# Passes come in windows, as many as may lie on the disk. Where the model after the last of a window still computes the
# same, no pass of it is run; else halving finds the first that differs, the first with a large error, and the first
# after which the model cannot be run. A change that a later pass of the same window takes back is so not seen.


_MOST_BYTES = 2**30
"""Largest size of the models that lie on the disk at once."""

_LARGE = 10.0
"""How many times a difference must grow for a second pass to be named."""


class PassSearch(Struct):
    """Passes that were run, out of `total`, in their order; and which of them count.

    `first` is the first pass after which results differ. `large` is the pass after which most of the difference is
    there, if that is another pass. `refused` is the first pass after which the model cannot be run.
    """

    total: int = 0
    reports: list[PassReport] = field(default_factory=list)
    first: PassReport | None = None
    large: PassReport | None = None
    refused: PassReport | None = None


def search(passes: Iterable[TracedPass], judge: PassJudge, told: Callable[[TracedPass], None]) -> PassSearch:
    """Return where results begin to differ; `told` hears of each pass as it comes."""
    found = PassSearch()
    with tempfile.TemporaryDirectory(prefix="stepper-passes-") as folder:
        for kept in _windows(passes, Path(folder), told):
            found.total += len(kept)
            _Window(kept, judge, found).look()
    found.reports.sort(key=lambda report: report.number)
    return found


def _grew(before: PassReport, largest: float) -> bool:
    """Return whether a difference is many times as large as after an earlier pass."""
    return before.largest_difference < largest >= _LARGE * before.largest_difference


def growth(reports: Iterable[PassReport]) -> PassReport | None:
    """Return the report of many after which most of the difference is there; None where it is the first."""
    different = [report for report in reports if report.verdict is PassEffect.DIFFERENT]
    largest = max((report.largest_difference for report in different), default=0.0)
    if not different or not _grew(different[0], largest):
        return None
    return next(report for report in different if report.largest_difference >= largest / 2)


def _windows(
    passes: Iterable[TracedPass], folder: Path, told: Callable[[TracedPass], None]
) -> Iterator[list[TracedPass]]:
    """Yield passes, whose files are kept until the next are taken, as many as may be."""
    kept: list[TracedPass] = []
    size = 0
    for traced in passes:
        told(traced)
        path = folder / f"{traced.number}.xml"
        for suffix in (".bin", ".xml"):
            with contextlib.suppress(FileNotFoundError):
                size += traced.path.with_suffix(suffix).stat().st_size
                traced.path.with_suffix(suffix).replace(path.with_suffix(suffix))
        kept.append(traced._replace(path=path))
        if size > _MOST_BYTES:
            yield kept
            for file in folder.iterdir():
                file.unlink()
            kept, size = [], 0
    if kept:
        yield kept


class _Window:
    """The passes of one window; each is run once at most, and those over other models are left out."""

    def __init__(self, passes: list[TracedPass], judge: PassJudge, found: PassSearch) -> None:
        self._passes, self._judge, self._found = passes, judge, found
        self._known: dict[int, PassReport | None] = {}

    def look(self) -> None:
        """Look at the last pass after which the model can be run; where results differ, at those before."""
        end = self._last_runnable()
        if end < 0:
            return
        last = self._report(end)
        if last.verdict is not PassEffect.DIFFERENT:
            return
        found = self._found
        if found.first is None:
            found.first = self._report(self._first(0, end, lambda report: report.verdict is PassEffect.DIFFERENT))
        before = found.large or found.first
        if _grew(before, last.largest_difference):
            found.large = self._report(
                self._first(0, end, lambda report: report.largest_difference >= last.largest_difference / 2)
            )

    def _last_runnable(self) -> int:
        """Return the index of the last pass after which the model can be run; -1 for none."""
        end = self._existing(len(self._passes) - 1)
        if end < 0 or self._report(end).verdict is not PassEffect.NOT_RUN:
            return end
        begin = next(index for index in range(len(self._passes)) if self._reported(index) is not None)
        is_refused = self._report(begin).verdict is PassEffect.NOT_RUN  # as after all passes of a later window
        refused = begin if is_refused else self._first(0, end, lambda report: report.verdict is PassEffect.NOT_RUN)
        self._found.refused = self._found.refused or self._report(refused)
        return self._existing(refused - 1)

    def _first(self, low: int, high: int, holds: Callable[[PassReport], bool]) -> int:
        """Return the first index from which on something holds, which it does at `high`."""
        while low < high:
            middle = self._existing((low + high) // 2)
            if middle < low:
                low = (low + high) // 2 + 1
            elif holds(self._report(middle)):
                high = middle
            else:
                low = middle + 1
        return self._existing(high)

    def _existing(self, index: int) -> int:
        """Return the index, or the nearest before it, of a pass over the model itself; -1 for none."""
        while index >= 0 and self._reported(index) is None:
            index -= 1
        return index

    def _report(self, index: int) -> PassReport:
        report = self._reported(index)
        assert report is not None, "it is over the model itself"
        return report

    def _reported(self, index: int) -> PassReport | None:
        if index not in self._known:
            self._known[index] = found = self._judge.report(self._passes[index])
            if found is not None:
                self._found.reports.append(found)
        return self._known[index]
