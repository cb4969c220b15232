"""`stepper find TRACE PREDICATE`: the moments of a recorded run at which something holds; code 1 if there are any."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from stepper.cli.printing import print_json
from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.inspection.text import by_text
from stepper.debug.inspection.views import Found, Which
from stepper.errors import FINDING
from stepper.recording import open_recording
from stepper.recording.queries import NonFiniteValues, find_non_finite, find_recorded
from stepper.records import as_data
from stepper.terminal import say


def execute(options: Namespace) -> int:
    """Look for the predicate; 1 where it holds anywhere, else 0."""
    which, predicate = Which(options.which), options.predicate.strip()
    with open_recording(options.trace) as recording:
        if predicate in (NonFiniteKind.NAN, NonFiniteKind.INF):
            findings = find_non_finite(recording, NonFiniteKind(predicate), which, options.limit)
            _report_values(findings, predicate, options)
            return FINDING if findings.found else 0
        found = find_recorded(recording, predicate, which, options.limit)
        _report_moments(found, options)
        return FINDING if found.moments else 0


def _report_moments(found: Found, options: Namespace) -> None:
    if options.json:
        print_json(_report(options) | as_data(found))
        return
    for moment in found.moments:
        tick = f"tick {moment.tick}  " if moment.tick else ""
        say(f"{tick}{moment.place}")
    _more(more=found.more)
    if not found.moments:
        say(f"stepper: nowhere, in {found.asked:,} places", file=sys.stderr)
    if found.failures:
        reason = " ".join(found.failure.splitlines()[0].split())
        say(f"stepper: not known at {found.failures:,} of {found.asked:,} places: {reason}", file=sys.stderr)


def _report_values(findings: NonFiniteValues, word: str, options: Namespace) -> None:
    more = findings.total > len(findings.found) and options.which == Which.ALL
    if options.json:
        found = [as_data(finding) for finding in findings.found]
        print_json(_report(options) | {"found": found, "total": findings.total, "more": more})
        return
    name = {"nan": "NaN", "inf": "Inf"}[word]
    for finding in findings.found:
        tick = "" if finding.tick is None else f"tick {finding.tick}  "
        amount = f"{finding.count:,} {name} of {finding.size:,}{by_text(finding.computed_by)}"
        say(f"{tick}{finding.place}  {finding.address}: {amount}")
    _more(more=more)
    if not findings.found:
        say(f"stepper: no {name} in anything that was recorded", file=sys.stderr)


def _more(*, more: bool) -> None:
    if more:
        sys.stdout.flush()
        say("stepper: there are more; --limit N shows more of them", file=sys.stderr)


def _report(options: Namespace) -> dict[str, Any]:
    return {"trace": options.trace, "predicate": options.predicate.strip()}
