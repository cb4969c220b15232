"""`stepper passes MODEL`: the first of OpenVINO's transformations after which the model computes something else."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence

from stepper.cli.printing import print_answer, show_progress
from stepper.cli.specs import bound_inputs, given_states, opened_model, runtime_of
from stepper.compare.compared_passes import (
    PassEffect,
    PassJudge,
    PassReport,
    PassSearch,
    growth,
    pass_reports,
    search,
)
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_states, variables_alone
from stepper.engine.rules import Rules
from stepper.errors import FINDING
from stepper.openvino.partner import traced_passes
from stepper.openvino.peer import OpenVINOPeer
from stepper.openvino.runtime import ensure_installed
from stepper.records import as_data
from stepper.tensors.number_text import in_columns
from stepper.tensors.tolerances import Tolerance


def execute(options: Namespace) -> int:
    """Compile, run after each pass, report; 1 where a pass changes the results, else 0."""
    ensure_installed("stepper passes")
    model = opened_model(options)
    inputs = bound_inputs(model, options)
    tolerance = Tolerance(options.rtol, options.atol)
    runtime, rules, most = runtime_of(options), Rules(options.rules), options.max_iterations
    runtime.check()
    states = bind_states(compile_model(model, rules), given_states(model, options))
    is_shown = sys.stderr.isatty() and not options.quiet
    show: Callable[[str], None] = show_progress if is_shown else lambda _text: None
    judge = PassJudge(model, inputs, rules, tolerance, most, states)
    passes = traced_passes(model.path, runtime.device, runtime.precision, runtime.timeout)
    if options.all:
        found = _of_all(pass_reports(passes, judge), show)
    else:
        found = search(passes, judge, lambda traced: show(f"{traced.number} {traced.name}"))
    show("")
    outputs = OpenVINOPeer(model, runtime, variables_alone(model, states)).run(inputs)
    apart = judge.beside_runtime(outputs)
    data = {
        "model": options.model,
        "total": found.total,
        "first_change": found.first,
        "large_change": found.large,
        "passes": found.reports,
        "runtime": apart,
    }
    print_answer(options, as_data(data), _lines(found, apart, everything=options.all))
    return 0 if found.first is None else FINDING


def _of_all(every: Iterable[PassReport], show: Callable[[str], None]) -> PassSearch:
    """Return what the reports of all passes say."""
    reports = []
    for report in every:
        show(f"{report.number} {report.name}")
        reports.append(report)
    first, refused = (
        next((report for report in reports if report.verdict is verdict), None)
        for verdict in (PassEffect.DIFFERENT, PassEffect.NOT_RUN)
    )
    return PassSearch(len(reports), reports, first, growth(reports), refused)


def _lines(found: PassSearch, apart: Sequence[str], *, everything: bool) -> Iterator[str]:
    reports, first, large, refused = found.reports, found.first, found.large, found.refused
    if everything:
        rows = []
        for report in reports:
            why = f"  {report.details[0]}" if report.details else ""
            distance = (
                f"  {report.largest_difference:.3g}"
                if report.verdict is PassEffect.EQUAL and report.largest_difference
                else ""
            )
            rows.append((f"{report.number:4}", report.name, f"{report.verdict}{distance}{why}"))
        yield from in_columns(rows)
        verdicts = [report.verdict for report in reports]
        number = ", ".join(f"{verdicts.count(one)} {one}" for one in PassEffect if one in verdicts)
        yield f"{found.total} passes: {number}"
    else:
        yield f"{found.total} passes, the model run after {len(reports)} of them (after each: --all)"
    if first is None:
        yield "no pass after which the model can be run changes what it computes"
    else:
        yield f"the first pass after which it differs is {first.number} {first.name}"
        yield from (f"  {detail}" for detail in first.details)
    if first is not None and large is not None:
        sizes = f"{large.largest_difference:.3g} is the largest difference of an output"
        sizes = f"{sizes}, {first.largest_difference:.3g} after the first"
        yield f"most of it comes with {large.number} {large.name}: {sizes}"
    if refused is not None and not everything:
        yield f"the first after which it cannot be run is {refused.number} {refused.name}: {refused.details[0]}"
    if apart and first is None:
        yield "the runtime itself gives something else, so it is in its kernels and not in its transformations"
        yield from (f"  {line}" for line in apart)
