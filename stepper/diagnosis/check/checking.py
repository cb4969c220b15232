"""`check`: what is wrong with a model on given inputs: the rules of its file, and those of one run of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from time import thread_time

import numpy as np
from msgspec.structs import replace

from stepper.compare.comparison import RunComparison
from stepper.compare.observations import SideFailure
from stepper.compare.verdict import ComparisonVerdict
from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import Birth, Overview, RunState
from stepper.diagnosis.check.probe import Deadline, probe_run
from stepper.diagnosis.check.subject import RunSubject, beginning, finding_of, moment_address
from stepper.diagnosis.lint.linting import rule_finders
from stepper.diagnosis.rule import GRAVITY, FilePart, Finding, Severity, SubjectKind, rules
from stepper.diagnosis.texts import findings_html
from stepper.engine.rules import Rules
from stepper.engine.run import use_of
from stepper.errors import StepperError
from stepper.ir.model import layer_site
from stepper.openvino.ignored import ignored_parts
from stepper.openvino.onnx_file import read_onnx
from stepper.openvino.partner import OPENVINO
from stepper.ops.departures import departures
from stepper.records import Record

SECONDS = 60.0
"""Seconds that the run of a check may take, unless another number is asked for."""
_ENDLESS = 2.0
"""Seconds where nothing can end a loop."""
_MORE_RUNS = 1.5
"""Extra cost of a check as a share of the run's time, and the minimum in seconds."""
_LEAST_SECONDS = 0.25
_FOR_BIRTHS = 0.6
_AFTER_A_PROBE = 0.05
"""Share of that time for finding the first NaN and Inf.

_AFTER_A_PROBE applies if a probe found none: it is the time for those that carried values show later.
"""
_MEMORY = 2**29
DIFFERS = "differs-from-reference"
_REFUSED = "reference-stops"


class CheckedRun(Record):
    """Findings of a run, its facts, and in words what was looked for."""

    findings: tuple[Finding, ...]
    overview: Overview
    checked: tuple[str, ...]

    def _repr_html_(self) -> str:
        """Return a table of the findings, for notebooks."""
        nothing = "" if self.findings else "nothing is wrong; "
        return findings_html(self.findings, f"{nothing}checked: {', '.join(self.checked)}")


def check_run(debugger: Debugger, *, seconds: float = SECONDS) -> CheckedRun:
    """Run the model within time and memory limits; return the findings, most severe first.

    A failure of the run is one of the findings. The debugger moves to the end of the part that has run.
    """
    endless = min(_ENDLESS, seconds)
    begun = thread_time()
    overview = debugger.run_overview(seconds=seconds, endless_seconds=endless, memory=_MEMORY, births=False)
    cost = thread_time() - begun
    share = min(seconds, max(_MORE_RUNS * cost, _LEAST_SECONDS))
    deadline = Deadline(share)
    probe, births = None, list[Birth]()
    if overview.state is RunState.FINISHED:
        probe = probe_run(beginning(debugger), overview.loops, deadline, births=births)
    is_clean = probe is not None and probe.is_whole and not births
    if not is_clean and not overview.looked_through:
        is_cut_off = probe is not None and not probe.is_whole and not births
        most = _AFTER_A_PROBE if is_cut_off else _FOR_BIRTHS
        overview = debugger.look_through(seconds=share * most)
    if overview.state is RunState.FINISHED:
        debugger.continue_()  # so that values of the end can be asked about
    return _checked(
        RunSubject(debugger.model, overview, debugger, deadline=deadline, cost=cost, probe=probe, moves=True)
    )


def check_overview(debugger: Debugger, overview: Overview, seconds: float) -> CheckedRun:
    """Return what the rules of runs find in a run that is over; the debugger stays where it is.

    A machine of its own repeats the run for at most `seconds`, unless the user edited values: of an edited run the
    facts alone are checked.
    """
    probe, begun, deadline = None, thread_time(), Deadline(seconds)
    if overview.state is RunState.FINISHED and not overview.births and not debugger.timeline.edits:
        probe = probe_run(beginning(debugger), overview.loops, deadline)
    cost = thread_time() - begun
    return _checked(
        RunSubject(debugger.model, overview, debugger, deadline=deadline, cost=cost, probe=probe, moves=False)
    )


def _checked(subject: RunSubject) -> CheckedRun:
    file, overview, probe = str(subject.model.path), subject.overview, subject.probe
    with np.errstate(all="ignore"):
        found = ranked(
            finding_of(one.rule, file, hit) for one in rule_finders(SubjectKind.RUN) for hit in one.find(subject)
        )
    is_over = overview.state is RunState.FINISHED
    checked = (
        *(("NaN", "Inf") if overview.births_complete or (is_over and probe is not None and probe.is_whole) else ()),
        *(("shapes", "recurrence") if is_over else ()),
        *(("integer overflow", "indices", "saturation", "rounding") if probe is not None and probe.is_whole else ()),
        *(("effect of inputs",) if subject.elsewhere is not None else ()),
    )
    return CheckedRun(found, overview, checked)


def ranked(findings: Iterable[Finding], *, last: str = "") -> tuple[Finding, ...]:
    """Return findings by gravity, then by when they show; those of the file, which always show, come last.

    `last` is a rule whose findings come behind errors and warnings of the run: these are its causes.
    """

    def key(one: Finding) -> tuple[bool, int, bool, int, int, str]:
        is_behind = one.rule == last or (bool(last) and one.severity is Severity.NOTE)
        return is_behind, GRAVITY[one.severity], not one.tick, one.tick, one.spot.line, one.rule

    return tuple(sorted(findings, key=key))


# --- against another run --------------------------------------------------------------------------------------------


def compared_finding(
    compare: Callable[[Rules | None], RunComparison], reference: str, *, was_asked: bool
) -> Finding | None:
    """Return where a run diverges from the named reference; None if it does not.

    `compare` runs both, under a rule book (None: the user's rules). A difference that disappears under OpenVINO's rules
    is a departure of OpenVINO. If the user did not ask for the reference (`was_asked`), an error of the reference is a
    note and a failed comparison gives None; otherwise the errors of `compare` are raised.
    """
    try:
        compared = compare(None)
    except StepperError:
        if was_asked:
            raise
        return None
    found = comparison_finding(compared, reference)
    if found is None:
        return None
    if found.rule == _REFUSED:
        return found if was_asked else replace(found, severity=Severity.NOTE)
    if reference == OPENVINO:
        with suppress(StepperError):  # of a model that may not run so
            if not compare(Rules.OPENVINO).differs:
                departs = rules()["runtime-departs"]
                return replace(found, rule=departs.name, severity=departs.severity)
    return found


def conversion_findings(model: Path) -> tuple[Finding, ...]:
    """Return what OpenVINO's converter ignores of a model; nothing for one that is not ONNX."""
    file = read_onnx(model) if model.suffix.lower() == ".onnx" else None
    rule = rules()["converter-ignores"]
    found = () if file is None else ignored_parts(file)
    return tuple(
        Finding(rule.name, rule.severity, FilePart(str(model), 0, "run"), {"part": one.part, "node": one.node}, tick=1)
        for one in found
    )


def unchanged_findings(model: str, unchanged: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Yield what an application did not give back from call to call: outputs, with inputs that never changed."""
    rule = rules()["state-not-given-back"]
    for output, input in unchanged:
        yield Finding(rule.name, rule.severity, FilePart(model, 0, "run"), {"output": output, "input": input})


def comparison_finding(compared: RunComparison, reference: str) -> Finding | None:
    """Return where a run diverges from the reference of this name; None if it does not."""
    found = compared.verdict
    if found is None:
        return None
    stopped = next((one for one in compared.observations.findings if isinstance(one, SideFailure)), None)
    name, reason = DIFFERS, found.reason
    if stopped is not None and not stopped.ours:
        name, reason = _REFUSED, stopped.message
    command = shlex.join(["stepper", "compare", compared.file, "--with", reference])
    departs = departures([use_of(found.layer)]) if reference == OPENVINO and found.layer is not None else ()
    known = "; ".join(one.text for one in departs)
    details = {"reference": reference, "reason": reason, "command": command, "known": known}
    rule = rules()[name]
    if name == _REFUSED:  # no place of ours is to blame
        return Finding(rule.name, rule.severity, FilePart(compared.file, 0, "run"), dict(details))
    path = tuple(layer_site(step.layer, compared.file) for step in found.path)
    iterations = tuple(step.iteration for step in found.path if step.iteration is not None)
    layer = None if found.layer is None else layer_site(found.layer, compared.file)
    loop = None if found.loop is None else layer_site(found.loop, compared.file)
    spot = FilePart(compared.file, found.line, "run", path, layer, loop)
    told = found.explanation
    is_asked_for = told is not None and told.agrees and not told.is_fault  # a loss of precision, not a fault
    severity = Severity.NOTE if is_asked_for else rule.severity
    return Finding(rule.name, severity, spot, dict(details), iterations, _address(found))


def _address(found: ComparisonVerdict) -> str:
    """Return where values differ first, as the debugger knows it."""
    shown = found.shows_at or found.layer
    if shown is None or shown.type == "Result":
        return ""
    if not found.path:
        return moment_address(shown.name, ())
    around = found.path[-1].layer
    if found.iteration is None or not any(shown in body.graph.layers for body in around.bodies):
        return moment_address(around.name, ())
    return moment_address(shown.name, (found.iteration,))
