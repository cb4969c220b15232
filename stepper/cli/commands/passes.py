"""`stepper passes MODEL`: the first of OpenVINO's transformations after which the model computes something else."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from stepper.cli.options.engine import opened_model, runtime_of
from stepper.cli.options.specs import bound_inputs, given_inputs, given_states
from stepper.cli.printing import say, show_progress
from stepper.cli.values import print_json
from stepper.compare.passes.passes import PassEffect, PassReport, counts, pass_reports, runtime_difference
from stepper.engine.compiler import compile_model
from stepper.engine.rules import Rules
from stepper.engine.variables import bind_states, variables_alone
from stepper.errors import FINDING
from stepper.openvino.peer import OpenVINOPeer
from stepper.openvino.runtime import ensure_installed
from stepper.tensors.tolerances import Tolerance


def execute(options: argparse.Namespace) -> int:
    """Compile, run after each pass, report; 1 where a pass changes the results, else 0."""
    ensure_installed("stepper passes")
    model = opened_model(options)
    inputs = bound_inputs(model, given_inputs(model, options.input, options.inputs, options.shape))
    tolerance = Tolerance(options.rtol, options.atol)
    runtime, rules, most = runtime_of(options), Rules(options.rules), options.max_iterations
    runtime.check()
    states = bind_states(compile_model(model, rules), given_states(model, options.state, options.states))
    found = pass_reports(
        model, inputs, runtime.device, runtime.precision, rules, tolerance, most, runtime.timeout, states
    )
    reports = list(_shown(found, wanted=not options.quiet))
    first = next((report for report in reports if report.verdict is PassEffect.DIFFERENT), None)
    outputs = OpenVINOPeer(model, runtime, variables_alone(model, states)).run(inputs)
    apart = runtime_difference(model, inputs, outputs, rules, tolerance, most, states)
    if options.json:
        print_json({**_json(options, reports, first), "runtime": list(apart)})
    else:
        for line in _lines(reports, first, everything=options.all):
            say(line)
        if apart and first is None:
            say("the runtime itself gives something else, so it is in its kernels and not in its transformations")
        for line in apart if first is None else ():
            say(f"  {line}")
    return 0 if first is None else FINDING


def _shown(reports: Iterator[PassReport], *, wanted: bool) -> Iterator[PassReport]:
    """Yield the reports, each on the terminal for a moment."""
    shown = wanted and sys.stderr.isatty()
    try:
        for report in reports:
            if shown:
                show_progress(f"{report.number} {report.name}")
            yield report
    finally:
        if shown:
            show_progress("")


def _json(options: argparse.Namespace, reports: list[PassReport], first: PassReport | None) -> dict[str, Any]:
    return {
        "model": options.model,
        "first_change": None if first is None else _row(first),
        "passes": [_row(report) for report in reports],
    }


def _row(report: PassReport) -> dict[str, Any]:
    return {
        "number": report.number,
        "name": report.name,
        "verdict": str(report.verdict),
        "details": list(report.details),
        "largest_difference": report.distance,
    }


def _lines(reports: list[PassReport], first: PassReport | None, *, everything: bool) -> Iterator[str]:
    if everything:
        width = max((len(report.name) for report in reports), default=0)
        for report in reports:
            why = f"  {report.details[0]}" if report.details else ""
            distance = f"  {report.distance:.3g}" if report.verdict is PassEffect.EQUAL and report.distance else ""
            yield f"{report.number:4}  {report.name:{width}}  {report.verdict}{distance}{why}"
    number = ", ".join(f"{count} {verdict}" for verdict, count in counts(reports).items() if count)
    yield f"{len(reports)} passes: {number}"
    if first is None:
        yield "no pass after which the model can be run changes what it computes"
    else:
        yield f"the first pass after which it differs is {first.number} {first.name}"
        yield from (f"  {detail}" for detail in first.details)
    refused = next((report for report in reports if report.verdict is PassEffect.NOT_RUN), None)
    if refused is not None and not everything:
        yield f"the first after which it cannot be run is {refused.number} {refused.name}: {refused.details[0]}"
