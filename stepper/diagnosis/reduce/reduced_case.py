"""Write the files of a reduction: the smallest model, its inputs, and proof of the fault.

model.xml, model.bin       the smallest model (and reference.xml, reference.bin, if it differs from another model);
inputs.npz                 its inputs, by name;
expected.npz               the expected outputs, if they are too large for the script;
reproduce.py               prints expected and actual outputs; the exit code is 1 as long as the fault exists;
test_reduced.py            the check of reproduce.py for pytest;
REPORT.md                  a report that can be filed.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import platform
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from stepper.compare.compared_passes import PassEffect, PassJudge, PassReport, pass_reports
from stepper.diagnosis.reduce.draft import DraftBody, DraftGraph, DraftLayer, DraftModel, ir_files
from stepper.diagnosis.reduce.reducing import Reduction
from stepper.diagnosis.reduce.trials import FaultKind, FoundFault, RunSettings, StopsAt
from stepper.element_types import Array
from stepper.engine.array_files import read_archive
from stepper.engine.inputs import bind_inputs
from stepper.errors import StepperError
from stepper.files.file_kinds import ARRAYS, IR, IR_WEIGHTS, SCRIPT, FileKind
from stepper.files.output import OutputFile, ProtectedFiles, writing_all
from stepper.ir.reader import read
from stepper.openvino.partner import NUMPY, traced_passes
from stepper.openvino.program import is_installed
from stepper.ops.operands import form_text, shape_text
from stepper.plain_values import storable, write_arrays
from stepper.processes.starting import script_command
from stepper.wording import counted

# The scripts of a case: one that shows the fault, and one for pytest.
#
# Where OpenVINO shows it, the script needs that and numpy alone, and has inputs and expected outputs in itself.

MOST_NUMBERS = 1000
"""Elements of a tensor that stand in the script; those of a larger one are in a file."""


_HEAD = '''"""$what

It prints what is expected and what is given; the exit code is 1 as long as the fault is there.
It needs $needs.
"""

import sys
from pathlib import Path

import numpy as np
'''

_RUN = (
    _HEAD
    + """import openvino

HERE = Path(__file__).parent
INPUTS = $inputs
$expected
print("OpenVINO", openvino.__version__)
core = openvino.Core()
$extensions
try:
    model = core.read_model(HERE / "model.xml")
    compiled = core.compile_model(model, $device, {"INFERENCE_PRECISION_HINT": $precision})
    request = compiled.create_infer_request()
    request.start_async(INPUTS)  # the synchronous call would keep errors to itself
    request.wait()
except RuntimeError as error:
    print("expected: it runs; given:", error)
    sys.exit(1)
given = [np.array(tensor.data) for tensor in request.output_tensors]
"""
)

_OPENVINO = (
    _RUN
    + """differs = len(given) != len(EXPECTED)
for index, (found, (wanted, relative, absolute)) in enumerate(zip(given, EXPECTED)):
    print(f"output {index}: expected\\n{wanted}\\ngiven\\n{found}")
    if wanted.shape != found.shape:
        differs = True
    elif wanted.dtype.kind == "f":
        differs |= not np.allclose(found.astype(wanted.dtype), wanted, rtol=relative, atol=absolute, equal_nan=True)
    else:
        differs |= not np.array_equal(found.astype(wanted.dtype), wanted)
print("they differ" if differs else "they agree")
sys.exit(1 if differs else 0)
"""
)

_NOT_FINITE = (
    _RUN
    + """is_bad = False
for index, found in enumerate(given):
    print(f"output {index}: expected\\nfinite numbers\\ngiven\\n{found}")
    is_bad |= found.dtype.kind == "f" and not np.isfinite(found).all()
print("not finite" if is_bad else "all finite")
sys.exit(1 if is_bad else 0)
"""
)

_OWN = (
    _HEAD
    + """
import stepper

HERE = Path(__file__).parent
inputs = dict(np.load(HERE / "inputs.npz"))
"""
)

_TWIN = (
    _OWN
    + """settings = {"rules": $rules, "max_iterations": $max_iterations}
expected = stepper.run(HERE / "reference.xml", inputs, **settings)
given = stepper.run(HERE / "model.xml", inputs, **settings)
differs = False
for (name, wanted), found in zip(expected.items(), given.values(), strict=True):
    print(f"{name}: expected\\n{wanted}\\ngiven\\n{found}")
    differs |= wanted.shape != found.shape or not np.array_equal(wanted, found)
print("they differ" if differs else "they agree")
sys.exit(1 if differs else 0)
"""
)

_STOP = (
    _HEAD.replace("import sys\n", "import subprocess\nimport sys\n").replace("\nimport numpy as np\n", "")
    + """
HERE = Path(__file__).parent
words = ["run", HERE / "model.xml", "--inputs", HERE / "inputs.npz", "--rules", $rules, "--break", $spec]
words += ["--engine", $engine]
print("expected: the run comes to its end; given:", flush=True)
sys.exit(subprocess.run([sys.executable, "-P", "-m", "stepper", *words]).returncode)
"""
)

_ERROR = (
    _OWN
    + """print("expected: the run comes to its end")
try:
    print("given:", stepper.run(HERE / "model.xml", inputs, rules=$rules, max_iterations=$max_iterations))
except stepper.StepperError as error:
    print("given:", type(error).__name__, error)
    sys.exit(1)
"""
)

TEST = '''"""The fault, for pytest: it fails while the fault exists, and passes when it is fixed."""

import subprocess
import sys
from pathlib import Path


def test_the_reduced_model() -> None:
    script = Path(__file__).parent / "reproduce.py"
    run = subprocess.run([sys.executable, "-P", str(script)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
'''


def _script(text: str, reduction: Reduction, needs: str) -> str:
    """Return the script that shows or tests the fault of a reduction."""
    settings, what = reduction.settings, fault_text(reduction.fault).replace("\\", "/").replace('"""', "'''")
    tolerances = settings.tolerances(exact=reduction.fault.program != "OpenVINO")
    expected = []
    for index, value in enumerate(reduction.expected if text is _OPENVINO else ()):
        tolerance = tolerances.of(None, value)
        number = _text(value, "expected.npz", f"output_{index}")
        expected.append(f"({number}, {tolerance.relative!r}, {tolerance.absolute!r})")
    inputs = zip(input_keys(reduction), reduction.model.inputs, strict=True)
    return Template(text).substitute(
        what=f"{what[:1].upper()}{what[1:]}"[:400].rstrip('"'),
        needs=needs,
        inputs=_listed([_text(value, "inputs.npz", key) for key, value in inputs]),
        expected=f"EXPECTED = {_listed(expected)}" if text is _OPENVINO else "",
        extensions="\n".join(f"core.add_extension({one!r})" for one in settings.extensions),
        device=repr(settings.device),
        precision=repr(settings.precision),
        rules=repr(settings.rules),
        max_iterations=settings.max_iterations,
        engine=repr(settings.engine),
        spec=repr(_spec(reduction)),
    )


def _spec(reduction: Reduction) -> str:
    """Return the breakpoint of a run that stops; empty for another fault."""
    return reduction.condition.spec if isinstance(reduction.condition, StopsAt) else ""


def _listed(items: Sequence[str]) -> str:
    return f"[{''.join(f'{chr(10)}    {item},' for item in items)}{chr(10) if items else ''}]"


def _text(tensor: Array, file: str, key: str) -> str:
    """Return an expression that gives a tensor, which the file has, too."""
    value = storable(tensor)
    if value.size > MOST_NUMBERS:
        return f"np.load(HERE / {file!r})[{key!r}]"
    kind = "np.str_" if value.dtype.kind == "U" else f"np.{value.dtype.name}{'_' if value.dtype == bool else ''}"
    if not value.size:
        return f"np.zeros({value.shape}, {kind})"
    if value.size > 1 and value.dtype.kind != "U" and bool((value == value.reshape(-1)[0]).all()):
        return f"np.full({value.shape}, {_number(value.reshape(-1)[0])}, {kind})"
    numbers = np.array2string(
        value, separator=", ", threshold=value.size + 1, max_line_width=100, prefix=" " * 13, formatter={"all": _number}
    )
    return f"np.array({numbers}, {kind})"


def _number(number: Any) -> str:
    """Return a number as Python reads it, in the fewest digits that are it in its own type."""
    if isinstance(number, str | np.str_ | bool | np.bool_ | np.integer | int):
        return repr(number.item() if isinstance(number, np.generic) else number)
    if np.isnan(number):
        return "np.nan"
    if np.isinf(number):
        return "np.inf" if number > 0 else "-np.inf"
    return str(number)


# A draft, and a fault, as text for people.

_MOST_NUMBERS = 16
_DEFAULTS = {"element_type", "shape"}


_FAULTS = {
    FaultKind.STOP: "the run stops: {message}",
    FaultKind.ERROR: "the run ends in an error: {message}",
    FaultKind.REFUSED: "{program} refuses the model: {message}",
    FaultKind.ENDED: "{message}",
    FaultKind.SHAPES: "output {output} has another shape in {program}: {message}",
    FaultKind.VALUES: "output {output} differs from {program}: {message}",
}


def fault_text(fault: FoundFault) -> str:
    """Return a fault in one sentence."""
    return _FAULTS[fault.kind].format(message=fault.message, program=fault.program, output=fault.output)


def model_lines(draft: DraftModel) -> Iterator[str]:
    """Yield a model as text: a line for each layer, its inputs by name, bodies indented."""
    yield from _graph_lines(draft.graph, "")


def _graph_lines(graph: DraftGraph, indent: str) -> Iterator[str]:
    for layer in graph.ordered():
        yield f"{indent}{_layer_line(graph, layer)}"
        for body in layer.bodies:
            yield f"{indent}  {body.role}:"
            yield from (f"{indent}    {line}" for line in _map_lines(layer, graph, body))
            yield from _graph_lines(body.graph, f"{indent}    ")


def _layer_line(graph: DraftGraph, layer: DraftLayer) -> str:
    inputs = [_source_name(graph, layer, index) for index in range(len(layer.sources))]
    outputs = ", ".join(
        f"{'dynamic' if port.element_type is None else port.element_type.name}{shape_text(port.dims)}"
        for port in layer.outputs
    )
    arguments = f"({', '.join(inputs)})" if inputs else ""
    value = "" if layer.value is None else f" = {value_text(layer.value)}"
    hidden = _DEFAULTS if layer.type in ("Constant", "Parameter") else set()
    shown = ", ".join(f"{key}={text}" for key, text in layer.attributes.items() if key not in hidden)
    if layer.type == "Constant":
        shown = ""
    ends = "".join((f" -> {outputs}" if outputs else "", value, f"  {{{shown}}}" if shown else ""))
    return f"{layer.type} '{layer.name}'{arguments}{ends}"


def _source_name(graph: DraftGraph, layer: DraftLayer, index: int) -> str:
    source = layer.sources[index]
    if source is None:
        return "nothing"
    producer = graph.layers[source.layer]
    return producer.name if len(producer.outputs) == 1 else f"{producer.name}.{source.output}"


def _map_lines(layer: DraftLayer, graph: DraftGraph, body: DraftBody) -> Iterator[str]:
    names = {one.id: one.name for one in body.graph.layers.values()}
    for entry in body.inputs:
        sliced = "" if entry.slicing is None else f", sliced: {entry.slicing}"
        given = "nothing" if entry.input is None else _source_name(graph, layer, entry.input)
        purpose = "" if entry.purpose is None else f" ({entry.purpose})"
        yield f"input '{names[entry.parameter]}' <- {given}{sliced}{purpose}"
    for output in body.outputs:
        sliced = "" if output.slicing is None else f", joined: {output.slicing}"
        purpose = "" if output.purpose is None else f" ({output.purpose})"
        given = "nothing" if output.output is None else str(output.output)
        yield f"output {given} <- '{names[output.result]}'{sliced}{purpose}"
    for edge in body.back_edges:
        yield f"back edge '{names[edge.from_layer]}' -> '{names[edge.to_layer]}'"


def value_text(value: Array) -> str:
    """Return the numbers of a tensor where they are few."""
    if value.size > _MOST_NUMBERS:
        same = value.size and not value.dtype.names and bool((value == value.reshape(-1)[0]).all())
        return f"{value.size} elements{f', all {value.reshape(-1)[0]}' if same else ''}"
    return np.array2string(np.asarray(value), separator=", ").replace("\n", "")


_TEXT = FileKind("a report", (".md",))
MODEL = "model.xml"
_INPUTS = "inputs.npz"
FILES = (
    (MODEL, IR),
    ("model.bin", IR_WEIGHTS),
    (_INPUTS, ARRAYS),
    ("reproduce.py", SCRIPT),
    ("test_reduced.py", SCRIPT),
    ("REPORT.md", _TEXT),
)
"""The files that each case has."""
_FURTHER = (("expected.npz", ARRAYS), ("reference.xml", IR), ("reference.bin", IR_WEIGHTS))
_PASS_SECONDS = 60.0
_SCRIPT_SECONDS = 60.0
_MOST_KERNELS = 24


def case_targets(folder: Path, protected: ProtectedFiles, option: str) -> dict[str, OutputFile]:
    """Return the files of a case by name; the folder is made. OutputError where one of them may not be written."""
    targets = {name: OutputFile(folder / name, kind, protected, option) for name, kind in (*FILES, *_FURTHER)}
    for target in targets.values():
        target.check_protected()
    with contextlib.suppress(OSError):  # the check says what is wrong with it
        folder.mkdir(parents=True, exist_ok=True)
    for target in targets.values():
        target.check()
    return targets


def read_case(folder: Path) -> DraftModel:
    """Return the model of a case with its inputs. Raises what reading them raises."""
    model = read(folder / MODEL)
    inputs: Mapping[Any, Any] = read_archive(folder / _INPUTS)
    return DraftModel.of(model, bind_inputs(model, inputs))


def write_case(
    reduction: Reduction, targets: Mapping[str, OutputFile], *, title: str = "", finds_pass: bool = True
) -> tuple[str, ...]:
    """Write the files of a reduction, all or none; return their names. `title` is the model that it comes from.

    Raise OutputError. The script is one for OpenVINO where that shows the fault, too, which is tried. `finds_pass`:
    where OpenVINO is wrong, the first of its passes that changes the results is sought for the report.
    """
    contents, fault = _contents(reduction), reduction.fault
    is_of_values, is_of_openvino = fault.kind in (FaultKind.VALUES, FaultKind.SHAPES), fault.program == "OpenVINO"
    needs, template = "openvino and numpy", _template_for_openvino(reduction)
    script = _script(template, reduction, needs) if template else ""
    with tempfile.TemporaryDirectory(prefix="stepper-reduce-") as name:
        trial = {one: OutputFile(Path(name, one), target.kind) for one, target in targets.items()}
        _write({**contents, "reproduce.py": script.encode()}, trial)
        if not script or not (is_of_openvino or shows(trial["reproduce.py"].path)):
            needs = "stepper, whose engine shows it"
            of_ours = _TWIN if reduction.twin is not None and is_of_values else _STOP if _spec(reduction) else _ERROR
            script = _script(of_ours, reduction, needs)
        found = None
        if finds_pass and is_of_values and is_of_openvino:
            found = first_changing_pass(trial["model.xml"].path, reduction.model.inputs, reduction.settings)
    contents["reproduce.py"] = script.encode()
    contents["REPORT.md"] = _report(reduction, title, found, needs, tuple(contents)).encode()
    _write(contents, targets)
    return tuple(contents)


def shows(script: Path) -> bool:
    """Return True if a script shows the fault here, as its exit code says."""
    try:
        ended = subprocess.run(script_command(script), capture_output=True, timeout=_SCRIPT_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return ended.returncode == 1 and b"Traceback" not in ended.stderr


def _template_for_openvino(reduction: Reduction) -> str:
    """Return the script in which OpenVINO shows the fault, or might; empty where it cannot."""
    fault = reduction.fault
    if fault.program == "OpenVINO":
        return _OPENVINO
    if not is_installed() or reduction.settings.engine != NUMPY or fault.kind is FaultKind.ERROR:
        return ""
    if fault.kind is FaultKind.STOP:
        return _NOT_FINITE if _spec(reduction) in ("nan", "inf") else ""
    return _OPENVINO if reduction.twin is not None and reduction.expected else ""


def _write(contents: Mapping[str, bytes], targets: Mapping[str, OutputFile]) -> None:
    with writing_all([targets[name] for name in contents]) as files:
        for file, content in zip(files, contents.values(), strict=True):
            file.write(content)


def first_changing_pass(path: Path, inputs: Sequence[Array], settings: RunSettings) -> PassReport | None:
    """Return the first pass of OpenVINO after which the model of a file computes something else.

    None where no pass does: then it is a kernel of the plugin, or how it runs loops.
    """
    with contextlib.suppress(StepperError):
        judge = PassJudge(read(path), inputs, max_iterations=settings.max_iterations)
        for report in pass_reports(traced_passes(path, settings.device, settings.precision, _PASS_SECONDS), judge):
            if report.verdict is PassEffect.DIFFERENT:
                return report
    return None


def _contents(reduction: Reduction) -> dict[str, bytes]:
    files = ir_files(reduction.model)
    keys = input_keys(reduction)
    found = {
        "model.xml": files.xml,
        "model.bin": files.weights,
        "inputs.npz": _npz(dict(zip(keys, reduction.model.inputs, strict=True))),
    }
    if reduction.twin is not None:
        other = ir_files(reduction.twin)
        found |= {"reference.xml": other.xml, "reference.bin": other.weights}
    if any(value.size > MOST_NUMBERS for value in reduction.expected):
        found["expected.npz"] = _npz({f"output_{k}": value for k, value in enumerate(reduction.expected)})
    found["reproduce.py"] = b""
    found["test_reduced.py"] = TEST.encode()
    return found


def input_keys(reduction: Reduction) -> tuple[str, ...]:
    """Return the names of the inputs; their positions where two have the same."""
    names = tuple(layer.name for layer in reduction.model.graph.of_type("Parameter"))
    unusable = len(set(names)) < len(names) or any("/" in name or not name for name in names)
    return tuple(map(str, range(len(names)))) if unusable else names


def _npz(arrays: Mapping[str, Array]) -> bytes:
    buffer = io.BytesIO()
    write_arrays(buffer, arrays)
    return buffer.getvalue()


def _report(reduction: Reduction, title: str, found: PassReport | None, needs: str, files: tuple[str, ...]) -> str:
    before, after = reduction.operations
    lines = [f"# {_headline(reduction)}", "", _sentence(reduction), ""]
    lines += ["## To reproduce", "", "    python reproduce.py", ""]
    lines += [f"It needs {needs}; the files are {', '.join(files)}.", ""]
    if reduction.expected:
        lines += ["| output | expected | given |", "|---|---|---|"]
        for index, expected in enumerate(reduction.expected):
            given = reduction.given[index] if index < len(reduction.given) else None
            lines.append(f"| {index} | {_shown(expected)} | {'nothing' if given is None else _shown(given)} |")
        lines.append("")
    lines += ["## The smallest model", "", "```", *model_lines(reduction.model), "```", ""]
    if reduction.twin is not None:
        lines += ["The reference is `reference.xml`:", "", "```", *model_lines(reduction.twin), "```", ""]
    lines += ["## Where", "", *_where(reduction, found), "", "## Versions", ""]
    lines += [f"* {name} {version}" for name, version in _versions().items()]
    lines += ["", "## What was tried", ""]
    whole = f" of `{title}`" if title else ""
    end = (
        "nothing more goes"
        if reduction.is_smallest
        else "it was interrupted"
        if reduction.is_interrupted
        else "time was up"
    )
    lines.append(
        f"From {counted(before, 'operation')}{whole} to {after}, in {counted(reduction.trials, 'trial')}; {end}."
    )
    lines += ["", "| change | tried | kept |", "|---|---:|---:|"]
    lines += [f"| {what} | {count} | {reduction.kept.get(what, 0)} |" for what, count in reduction.tried.items()]
    return "\n".join([*lines, ""])


def _sentence(reduction: Reduction) -> str:
    """Return what the headline does not say."""
    fault = reduction.fault
    if fault.kind is not FaultKind.STOP or not isinstance(reduction.condition, StopsAt):
        text = fault_text(fault)
        return f"{text[:1].upper()}{text[1:]}."
    rest = fault.message.partition(": ")[2]
    end = f", at {rest}" if rest else ""
    return f"The run comes to the breakpoint `{reduction.condition.spec}`{end}."


def _headline(reduction: Reduction) -> str:
    if reduction.fault.kind is FaultKind.STOP:
        return reduction.fault.message.partition(": ")[0]
    kinds = dict.fromkeys(layer.type for _address, layer in reduction.model.operations())
    what = {
        FaultKind.ERROR: "The run ends in an error",
        FaultKind.REFUSED: f"{reduction.fault.program} refuses a model",
        FaultKind.ENDED: f"{reduction.fault.program} ends",
        FaultKind.VALUES: "Wrong results",
        FaultKind.SHAPES: "Wrong shapes",
    }[reduction.fault.kind]
    return f"{what}: {', '.join(kinds) or 'no operation'}"


def _shown(value: Array) -> str:
    return f"{form_text(value)} {value_text(value)}".replace("|", "\\|")


def _where(reduction: Reduction, found: PassReport | None) -> list[str]:
    if found is not None:
        return [f"The first pass that changes the results is {found.number}, {found.name}."]
    if reduction.fault.kind is FaultKind.REFUSED:
        return [f"OpenVINO refuses it in {reduction.fault.what}."]
    if reduction.fault.kind is FaultKind.ENDED:
        return [f"OpenVINO ends in this stage: {reduction.fault.what}."]
    if reduction.fault.program != "OpenVINO":
        return ["It is in the model."]
    lines = ["No pass changes the results (or none could be asked), so a kernel is wrong"]
    lines[0] += ". The compiled model runs:" if reduction.kernels else "."
    if reduction.kernels:
        lines += ["", "| node | kernel | of |", "|---|---|---|"]
        lines += [
            f"| {one.type} | {one.kernel} | {one.layers.replace('|', '/')} |"
            for one in reduction.kernels[:_MOST_KERNELS]
        ]
    return lines


def _versions() -> dict[str, Any]:
    found = {"Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for name in ("openvino", "numpy", "stepper"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
