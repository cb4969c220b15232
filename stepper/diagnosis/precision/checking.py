"""`check --as`: what fewer bits do to a run, and what has to stay in f32."""

from __future__ import annotations

from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.diagnosis.check.subject import finding_of
from stepper.diagnosis.findings import Finding
from stepper.diagnosis.precision.narrowing import LOSSES, Narrowing
from stepper.diagnosis.precision.rules import NarrowRun
from stepper.diagnosis.precision.trials import Trials
from stepper.diagnosis.registry import rule_finders
from stepper.diagnosis.rule import SubjectKind
from stepper.ir.model import LayerSite


class CheckedPrecision(Struct, frozen=True):
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
