"""`check --as`: what fewer bits do to a run, and what has to stay in f32."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lxml import etree

from stepper.debug.debugger import Debugger
from stepper.diagnosis.check.subject import finding_of
from stepper.diagnosis.findings import Finding
from stepper.diagnosis.precision.narrowing import LOSSES, Narrowing, Trials
from stepper.diagnosis.precision.rules import NarrowRun
from stepper.diagnosis.registry import rule_finders
from stepper.diagnosis.rule import SubjectKind
from stepper.errors import UsageError
from stepper.files.kinds import IR, IR_SUFFIX, IR_WEIGHTS, WEIGHTS_SUFFIX
from stepper.files.output import OutputFile, ProtectedFiles, writing_all
from stepper.ir.model import LayerSite, Model
from stepper.ir.xml import line_of, parse
from stepper.records import Record

# --- A model with marks for OpenVINO: operations that it leaves in f32 when it computes in fewer bits ----------------
#
# The mark is the attribute `precise` of a layer's rt_info, as OpenVINO writes it for its `DisableFP16Compression`; seen
# to be heeded by the CPU of 2026.4 with INFERENCE_PRECISION_HINT f16 and bf16, in bodies of loops, too.


_MARK: Final = "precise"
_CHUNK: Final = 2**24


def marked(path: Path, kept: Iterable[LayerSite]) -> bytes:
    """Return the XML of a model with these layers marked; one that is marked already stays as it is. ModelError."""
    net = parse(path)
    wanted = {(layer.line, str(layer.id)) for layer in kept}
    for layer in list(net.iter("layer")):
        if (line_of(layer), layer.get("id")) in wanted:
            found = layer.find("rt_info")
            info = etree.Element("rt_info") if found is None else found
            if found is None:
                layer.insert(0, info)
            if all(one.get("name") != _MARK for one in info.iter("attribute")):
                etree.SubElement(info, "attribute", name=_MARK, version="0")
    return etree.tostring(net, xml_declaration=True, encoding="utf-8")


def marked_files(target: str, protected: ProtectedFiles, option: str) -> tuple[OutputFile, OutputFile]:
    """Return the two files that a model is written to. OutputError where that cannot be."""
    path = Path(target)
    if path.suffix.lower() != IR_SUFFIX:
        raise UsageError(f"{option} {target}: the name of a model ends in {IR_SUFFIX}")
    files = (
        OutputFile(path, IR, protected, option),
        OutputFile(path.with_suffix(WEIGHTS_SUFFIX), IR_WEIGHTS, protected, option),
    )
    for one in files:
        one.check()
    return files


def write_marked(model: Model, kept: Iterable[LayerSite], files: tuple[OutputFile, OutputFile]) -> None:
    """Write a model with these layers marked, and its weights. UsageError for one that is not an IR; OutputError."""
    if model.path.suffix.lower() != IR_SUFFIX:
        raise UsageError(f"{model.path} is not an IR, so that nothing can be marked in it; convert it first")
    content = marked(model.path, kept)
    with writing_all(files) as (graph, weights):
        graph.write(content)
        if model.weights is not None:
            with model.weights.path.open("rb") as source:
                while chunk := source.read(_CHUNK):
                    weights.write(chunk)


# ---------------------------------------------------------------------------------------------------------------------


class CheckedPrecision(Record):
    """Findings, the layers to leave in f32 (none where it holds, or no set of them mends it), and how often it was run.

    `mends`: with these in f32 it holds.
    """

    findings: tuple[Finding, ...]
    keep_in_f32: tuple[LayerSite, ...]
    mends: bool
    runs: int


def check_precision(
    debugger: Debugger, narrowing: Narrowing, *, allowed: float | None = None, seconds: float = 60.0
) -> CheckedPrecision:
    """Run the model plainly and in fewer bits, and search what has to stay in f32, within so many seconds.

    `allowed` is how far an output may be off, relative to its norm (see `LOSSES`). The debugger stays where it is.
    """
    run = NarrowRun(Trials(debugger, narrowing, seconds), LOSSES[narrowing] if allowed is None else allowed)
    file = str(debugger.model.path)
    found = [finding_of(one.rule, file, hit) for one in rule_finders(SubjectKind.NARROW_RUN) for hit in one.find(run)]
    sites = run.sites() if run.is_broken else ()
    return CheckedPrecision(tuple(found), sites, not run.is_broken or bool(sites), run.trials.runs)
