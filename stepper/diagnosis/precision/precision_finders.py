"""`check --as`: what fewer bits do to a run, the rules of that, and what has to stay in f32."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from lxml import etree

from stepper.debug.debugger import Debugger
from stepper.diagnosis.check.subject import RunFinding, RunFindings, RunPlace, finding_of, shown
from stepper.diagnosis.findings import Finding
from stepper.diagnosis.precision.narrowing import (
    LOSSES,
    Harm,
    LayerKey,
    Loss,
    Narrowing,
    Outcome,
    Parting,
    SideBySide,
    Trials,
    layer_key,
    smallest,
    walk,
)
from stepper.diagnosis.rule import FINDERS, SubjectKind, found_by
from stepper.element_types import limits
from stepper.errors import UsageError
from stepper.files.file_kinds import IR, IR_SUFFIX, IR_WEIGHTS, WEIGHTS_SUFFIX
from stepper.files.output import OutputFile, ProtectedFiles, writing_all
from stepper.ir.model import LayerSite, Model, layer_site
from stepper.ir.xml import line_of, parse
from stepper.records import Record

# Rules of a run in fewer bits.


class NarrowRun(Trials):
    """A model in fewer bits: what becomes of its outputs, and what has to stay in f32 for them to be as they were."""

    @cached_property
    def outcome(self) -> Outcome:
        """Result with everything in fewer bits."""
        return self.run(())

    @property
    def is_broken(self) -> bool:
        """True if the plain run has outputs, and some are off by more than is allowed."""
        return self.plain is not None and self.outcome.error > self.allowed

    @cached_property
    def lockstep(self) -> SideBySide:
        """Both runs side by side."""
        return walk(self.machine(), self.narrowed(()), self.allowed, lambda: self.in_time)

    @cached_property
    def is_mended(self) -> bool:
        """True if it is not broken with all that can stay in f32 in f32: OpenVINO converts the ports of bodies."""
        return self.run(self.candidates).error <= self.allowed

    @cached_property
    def port(self) -> Parting | None:
        """The first value that comes into a body and is harmed by that alone."""
        narrow = self.narrowed(frozenset(self.candidates))
        found = walk(self.machine(), narrow, self.allowed, lambda: self.in_time, self.narrowing.dtype)
        ports = [one for one in found.partings if one.layer.type == "Parameter"]
        grave = [one for one in ports if one.harm in (Harm.OVERFLOW, Harm.LOSS)]
        return next(iter(grave or ports or found.partings), None)

    @cached_property
    def kept(self) -> tuple[tuple[LayerKey, ...], bool]:
        """The smallest set to leave in f32, in the order of the file, and True if each of its members is needed.

        It is empty where no set mends it.
        """
        if not self.is_mended:
            return (), True
        return smallest(
            tuple(self.candidates),
            lambda some: self.run(some).error <= self.allowed,
            lambda: self.in_time,
        )

    @cached_property
    def culprit(self) -> Parting | None:
        """The first result among those to leave in f32 that fewer bits harm."""
        found = []
        for key in self.kept[0]:
            reader = layer_key(self.readers(key))
            harms = [self.lockstep.first(reader, harm) for harm in (Harm.OVERFLOW, Harm.LOSS, Harm.OTHER)]
            if not any(harms):
                harms.append(self.lockstep.first(reader, Harm.UNDERFLOW))
            found += [one for one in harms if one is not None]
        return min(found, key=lambda one: (one.place.tick, list(Harm).index(one.harm)), default=None)

    def sites(self) -> tuple[LayerSite, ...]:
        """Return the layers to leave in f32."""
        file = str(self.compiled.model.path)
        return tuple(layer_site(self.candidates[key], file) for key in self.kept[0])


def _parted(run: NarrowRun, one: Parting, **details: Any) -> RunFinding:
    return shown(
        one.place,
        **details,
        precision=str(run.narrowing),
        index=one.element,
        plain=one.plain,
        narrow=one.narrow,
        error=one.error,
        **_worst(run.outcome),
    )


def _worst(outcome: Outcome) -> dict[str, Any]:
    """Return the output that is off the most; that of a run that fails is none."""
    worst = max(outcome.losses or (Loss("", math.inf),), key=lambda one: one.error)
    return {"output": worst.output, "loss": worst.error}


def _of_culprit(run: NarrowRun, *harms: Harm) -> Iterator[Parting]:
    if run.is_broken and run.is_mended and run.culprit is not None and run.culprit.harm in harms:
        yield run.culprit


@found_by
def leaves_range(run: NarrowRun) -> RunFindings:
    """The first number that is needed and too large."""
    for one in _of_culprit(run, Harm.OVERFLOW):
        dtype = run.narrowing.dtype
        largest = math.inf if dtype is None else limits(dtype).largest
        yield _parted(run, one, largest=largest)


@found_by
def becomes_zero(run: NarrowRun) -> RunFindings:
    """The first number that is needed and too small."""
    for one in _of_culprit(run, Harm.UNDERFLOW, Harm.LOSS):
        dtype = run.narrowing.dtype
        if one.narrow == 0 and one.plain != 0 and dtype is not None:
            yield _parted(run, one, least=limits(dtype).least)


@found_by
def loses_digits(run: NarrowRun) -> RunFindings:
    """The first result that is needed and further off than is allowed, or another whole number."""
    for one in _of_culprit(run, Harm.LOSS, Harm.OTHER):
        if run.narrowing.dtype is None or not (one.narrow == 0 and one.plain != 0):
            yield _parted(run, one)


@found_by
def goes_another_way(run: NarrowRun) -> RunFindings:
    """A loop of another number of iterations, or another side of an If."""
    other = run.lockstep.other_way if run.is_broken else None
    if other is not None:
        yield shown(other, precision=str(run.narrowing), loop=other.layer, **_worst(run.outcome))


@found_by
def keep_in_f32(run: NarrowRun) -> RunFindings:
    """The smallest set of operations, or of weights, that mends it."""
    if run.is_broken and run.is_mended:
        members, is_least = run.kept
        yield shown(
            RunPlace(None),
            precision=str(run.narrowing),
            count=len(members),
            total=len(run.candidates),
            things="operations" if run.narrowing.dtype is not None else "weights",
            most=run.run(members).error,
            layers=run.sites(),
            doubt="; without any one of them it does not hold" if is_least else ", and a smaller set may do",
        )


@found_by
def no_set_in_f32_mends_it(run: NarrowRun) -> RunFindings:
    """A value that goes into a body, or round a back edge, and is not what it was."""
    if run.is_broken and not run.is_mended and run.port is not None:
        yield _parted(run, run.port)


@found_by
def holds_in_fewer_bits(run: NarrowRun) -> RunFindings:
    """Nothing is lost."""
    if run.plain is not None and not run.is_broken:
        yield shown(RunPlace(None), precision=str(run.narrowing), most=run.outcome.error)


# `check --as`: what fewer bits do to a run, and what has to stay in f32.


# --- A model with marks for OpenVINO: operations that it leaves in f32 when it computes in fewer bits ----------------
#
# The mark is the attribute `precise` of a layer's rt_info, as OpenVINO writes it for its `DisableFP16Compression`; seen
# to be heeded by the CPU of 2026.4 with INFERENCE_PRECISION_HINT f16 and bf16, in bodies of loops, too.


_MARK: Final = "precise"


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
                shutil.copyfileobj(source, weights)


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
    run = NarrowRun(debugger, narrowing, seconds, LOSSES[narrowing] if allowed is None else allowed)
    file = str(debugger.model.path)
    found = [finding_of(one.rule, file, hit) for one in FINDERS[SubjectKind.NARROW_RUN] for hit in one.find(run)]
    sites = run.sites() if run.is_broken else ()
    return CheckedPrecision(tuple(found), sites, not run.is_broken or bool(sites), run.runs)
