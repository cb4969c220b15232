"""The files of a reduction: the smallest model, its inputs, and what shows, tests and reports the fault.

model.xml, model.bin       the smallest model (and reference.xml, reference.bin, where it differs from another model)
inputs.npz                 its inputs, by name
expected.npz               the outputs as they should be, where they are too large for the script
reproduce.py               prints expected and given; exit code 1 as long as the fault is there
test_reduced.py            the same for pytest
REPORT.md                  a report that can be filed
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import platform
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.compare.passes import PassEffect, pass_reports
from stepper.diagnosis.reduce import scripts
from stepper.diagnosis.reduce.conditions import FaultKind, StopsAt
from stepper.diagnosis.reduce.draft import DraftModel
from stepper.diagnosis.reduce.listing import fault_text, model_lines, type_text, value_text
from stepper.diagnosis.reduce.reducing import Reduction
from stepper.diagnosis.reduce.trial_acts import RunSettings
from stepper.diagnosis.reduce.writing import ir_files
from stepper.element_types import STRING_DTYPE, Array, is_floating
from stepper.engine.inputs.array_files import read_archive
from stepper.engine.inputs.binding import bind_inputs
from stepper.errors import StepperError
from stepper.files.kinds import ARRAYS, IR, IR_WEIGHTS, FileKind
from stepper.files.output import OutputFile, ProtectedFiles, writing_all
from stepper.ir.reader import read
from stepper.openvino.partner import NUMPY
from stepper.openvino.program import is_installed
from stepper.processes.children import script_command
from stepper.wording import counted

_SCRIPT: Final = FileKind("a script", (".py",))
_TEXT: Final = FileKind("a report", (".md",))
MODEL: Final = "model.xml"
_INPUTS: Final = "inputs.npz"
FILES: Final = (
    (MODEL, IR),
    ("model.bin", IR_WEIGHTS),
    (_INPUTS, ARRAYS),
    ("reproduce.py", _SCRIPT),
    ("test_reduced.py", _SCRIPT),
    ("REPORT.md", _TEXT),
)
"""The files that each case has."""
_FURTHER: Final = (("expected.npz", ARRAYS), ("reference.xml", IR), ("reference.bin", IR_WEIGHTS))
_PASS_SECONDS: Final = 60.0
_SCRIPT_SECONDS: Final = 60.0
_MOST_KERNELS: Final = 24


class ResponsiblePass(Struct, frozen=True):
    """The first pass of OpenVINO after which a model computes something else, by its number and name."""

    number: int
    name: str


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
    contents, facts = _contents(reduction), _script_facts(reduction)
    is_of_values = reduction.fault.kind in (FaultKind.VALUES, FaultKind.SHAPES)
    needs = "openvino and numpy"
    script = _script_for_openvino(reduction, facts)
    with tempfile.TemporaryDirectory(prefix="stepper-reduce-") as name:
        trial = {one: OutputFile(Path(name, one), target.kind) for one, target in targets.items()}
        _write({**contents, "reproduce.py": script.encode()}, trial)
        if not script or (reduction.fault.program != "OpenVINO" and not shows(trial["reproduce.py"].path)):
            script, needs = (
                scripts.with_own_engine(facts, has_twin=reduction.twin is not None and is_of_values),
                "stepper, whose engine shows it",
            )
        found = responsible_pass(reduction, trial["model.xml"].path) if finds_pass else None
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


def _script_for_openvino(reduction: Reduction, facts: scripts.ScriptFacts) -> str:
    """Return the script in which OpenVINO shows the fault, or might; empty where it cannot."""
    fault = reduction.fault
    if fault.program == "OpenVINO":
        return scripts.with_openvino(facts)
    if not is_installed() or reduction.settings.engine != NUMPY or fault.kind is FaultKind.ERROR:
        return ""
    if fault.kind is FaultKind.STOP:
        return scripts.with_openvino(facts, wants_finite=True) if facts.spec in ("nan", "inf") else ""
    return scripts.with_openvino(facts) if reduction.twin is not None and facts.outputs else ""


def _write(contents: Mapping[str, bytes], targets: Mapping[str, OutputFile]) -> None:
    with writing_all([targets[name] for name in contents]) as files:
        for file, content in zip(files, contents.values(), strict=True):
            file.write(content)


def responsible_pass(reduction: Reduction, path: Path) -> ResponsiblePass | None:
    """Return the first pass after which a reduced model, which stands in this file, computes something else.

    None where no pass does (then it is a kernel of the plugin, or how it runs loops), or where it is not OpenVINO's.
    """
    if reduction.fault.kind not in (FaultKind.VALUES, FaultKind.SHAPES) or reduction.fault.program != "OpenVINO":
        return None
    return first_changing_pass(path, reduction.model.inputs, reduction.settings)


def first_changing_pass(path: Path, inputs: Sequence[Array], settings: RunSettings) -> ResponsiblePass | None:
    """Return the first pass of OpenVINO after which the model of a file computes something else; None for none."""
    try:
        for report in pass_reports(
            read(path),
            inputs,
            settings.device,
            settings.precision,
            max_iterations=settings.max_iterations,
            timeout=_PASS_SECONDS,
        ):
            if report.verdict is PassEffect.DIFFERENT:
                return ResponsiblePass(report.number, report.name)
    except StepperError:
        return None
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
    if any(value.size > scripts.MOST_NUMBERS for value in reduction.expected):
        found["expected.npz"] = _npz({f"output_{k}": value for k, value in enumerate(reduction.expected)})
    found["reproduce.py"] = b""
    found["test_reduced.py"] = scripts.TEST.encode()
    return found


def _script_facts(reduction: Reduction) -> scripts.ScriptFacts:
    settings = reduction.settings
    tolerances = settings.tolerances(exact=reduction.fault.program != "OpenVINO")
    return scripts.ScriptFacts(
        what=fault_text(reduction.fault),
        inputs=tuple(
            scripts.ScriptTensor(_storable(value), "inputs.npz", key)
            for key, value in zip(input_keys(reduction), reduction.model.inputs, strict=True)
        ),
        outputs=tuple(
            scripts.ScriptOutput(
                scripts.ScriptTensor(_storable(value), "expected.npz", f"output_{k}"), tolerances.of(None, value.dtype)
            )
            for k, value in enumerate(reduction.expected)
        ),
        device=settings.device,
        precision=settings.precision,
        extensions=settings.extensions,
        rules=settings.rules,
        max_iterations=settings.max_iterations,
        engine=settings.engine,
        spec=reduction.condition.spec if isinstance(reduction.condition, StopsAt) else "",
    )


def input_keys(reduction: Reduction) -> tuple[str, ...]:
    """Return the names of the inputs; their positions where two have the same."""
    names = tuple(layer.name for layer in reduction.model.graph.of_type("Parameter"))
    unusable = len(set(names)) < len(names) or any("/" in name or not name for name in names)
    return tuple(map(str, range(len(names)))) if unusable else names


def _npz(arrays: Mapping[str, Array]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, value in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, np.asanyarray(_storable(value)))
            # The time of now would make each file another one.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), entry.getvalue())
    return buffer.getvalue()


def _storable(value: Array) -> Array:
    """Return a tensor in a type that numpy alone knows."""
    if value.dtype == STRING_DTYPE:
        return value.astype(np.str_)
    if value.dtype.names:
        return value.view(np.uint8)
    if value.dtype.kind in "biufc":
        return value
    return value.astype(np.float32 if is_floating(value.dtype) else np.int32)


def _report(reduction: Reduction, title: str, found: ResponsiblePass | None, needs: str, files: tuple[str, ...]) -> str:
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
        lines += ["It is held against `reference.xml`:", "", "```", *model_lines(reduction.twin), "```", ""]
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
    return f"{type_text(value)} {value_text(value)}".replace("|", "\\|")


def _where(reduction: Reduction, found: ResponsiblePass | None) -> list[str]:
    if found is not None:
        return [f"The first pass after which the model computes something else is {found.number}, {found.name}."]
    if reduction.fault.kind is FaultKind.REFUSED:
        return [f"It is refused in {reduction.fault.what}."]
    if reduction.fault.kind is FaultKind.ENDED:
        return [f"OpenVINO ends in this stage: {reduction.fault.what}."]
    if reduction.fault.program != "OpenVINO":
        return ["It is in the model."]
    lines = ["No pass changes what the model computes (or none could be asked), so that it is in a kernel"]
    lines[0] += ". What the compiled model runs:" if reduction.kernels else "."
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
