"""The fixture `stepper_run`: a run, watched for what must never be, what must always hold, and how often loops run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from stepper.commands.stop_answers import stop_lines
from stepper.debug.breakpoints.data_breakpoints import specification
from stepper.debug.causes.cause import Became
from stepper.debug.debugger import Debugger
from stepper.debug.scopes import Names
from stepper.debug.stop import Reason
from stepper.debug.stop_scope import StopScope
from stepper.element_types import Array
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog, LoopSummary, Outputs, collect
from stepper.errors import StepperError, UsageError
from stepper.integrations.pytest_plugin.failing import CheckFailed, FixtureOfRuns, GivenInputs, KeptRun, failing
from stepper.ir.reader import ModelSource
from stepper.ops.operands import form_text
from stepper.query.expressions import parse
from stepper.tensors.number_text import array_text
from stepper.tensors.statistics import statistics
from stepper.wording import counted, enumerated

_FEW: Final = 4
"""Elements that are written one by one."""
_MOST_READ: Final = 4
"""Values of an expression that a report has."""


class RunCheck(FixtureOfRuns):
    """Runs models, and fails where a run breaks what was asked of it."""

    @failing
    def __call__(
        self,
        model: ModelSource,
        inputs: GivenInputs,
        *,
        never: str | Iterable[str] = ("nan", "inf"),
        always: str | Iterable[str] = (),
        iterations: int | Mapping[str, int] | None = None,
        rules: str | Rules = Rules.SPEC,
        max_iterations: int | None = None,
        states: Mapping[str, Any] | None = None,
    ) -> Outputs:
        """Return the outputs, as `stepper.run` does.

        `never` are breakpoints on values (`nan`, `inf`, `grow>1e3` or an expression); `always` are expressions, all of
        whose elements must be true in each iteration; `iterations` is how many the one loop of the model's own graph
        runs, or by the name of a loop how many it runs each time.
        """
        never, always = ([one] if isinstance(one, str) else list(one) for one in (never, always))
        watched = [*never, *(f"not all({one})" for one in always)]
        run = KeptRun(model, inputs, states)
        options = {"rules": rules, "max_iterations": max_iterations, "states": states}
        debugger, log = _debugger(run, watched, options), LoopLog()
        debugger.machine.observers = (log,)
        try:
            stop = debugger.continue_()
        except StepperError as error:
            lines = [str(error), *stop_lines(debugger)]
        else:
            if stop.reason is not Reason.BREAK:
                outputs = collect(debugger.machine, log)
                lines = [
                    _told(loop, count)
                    for loop, count in _wanted(outputs.loops, iterations)
                    if not loop.fewest == loop.most == count
                ]
                if not lines:
                    return outputs
            else:
                lines = [*stop_lines(debugger), *_read_lines(debugger)]
        raise self._failure(run, lines, watched, options, debugger)

    def _failure(
        self, run: KeptRun, lines: list[str], watched: list[str], options: Mapping[str, Any], debugger: Debugger
    ) -> CheckFailed:
        """Return how the test fails, with what to type in the debugger to come there."""
        is_stopped = debugger.stop.is_interrupted
        breaks = [f"break {specification(one.description)}" for one in debugger.breakpoints] if is_stopped else []
        more = [f"in it: {', '.join(breaks)}, continue"] if breaks else []
        rules, most = Rules(options["rules"]), options["max_iterations"]
        words = [] if rules is Rules.SPEC else ["--rules", str(rules.value)]
        words += [] if most is None else ["--max-iterations", str(most)]
        return self.failed(run, lines, *more, words=words, again=lambda: _debugger(run, watched, options))


def _debugger(run: KeptRun, watched: Iterable[str], options: Mapping[str, Any]) -> Debugger:
    debugger = Debugger(run.model, run.by_position, **options)
    for what in watched:
        debugger.break_when(what)
    return debugger


def _read_lines(debugger: Debugger) -> list[str]:
    """Return what the expression that stopped the run has read, each value with the layer that computed it."""
    cause, lines = debugger.stop.cause, list[str]()
    if not isinstance(cause, Became):
        return lines
    names = Names(debugger.machine.compiled)
    scope = StopScope(debugger.timeline, names)
    for address in parse(cause.expression).addresses[:_MOST_READ]:
        try:
            layer = names.target(address, debugger.machine.program).layer
            value = np.asarray(scope.value(address))
        except StepperError:  # of another iteration, or gone since
            continue
        lines.append(f"    {address} is {_value_text(value)}, of {layer.type} '{layer.name}' (line {layer.line})")
    return lines


def _value_text(value: Array) -> str:
    """Return a value in short: few elements as they are, of more their range, and how many are not finite."""
    if value.size <= _FEW or value.dtype.kind not in "biuf":
        return array_text(value)
    found = statistics(value)
    odd = [f"{count} {word}" for count, word in ((found.nan, "NaN"), (found.infinite, "Inf")) if count]
    ends = [] if found.min is None or found.max is None else [f"{found.min:.6g} to {found.max:.6g}"]
    return f"{form_text(value)} with {enumerated([*ends, *odd])}"


def _wanted(loops: Sequence[LoopSummary], wanted: int | Mapping[str, int] | None) -> list[tuple[LoopSummary, int]]:
    """Return loops with how often each is to run. UsageError for a loop that is not there, or not named."""
    if wanted is None:
        return []
    names = enumerated([repr(loop.name) for loop in loops]) or "none"
    if isinstance(wanted, Mapping):
        for name in wanted:
            if not any(loop.name == name for loop in loops):
                raise UsageError(f"iterations: no loop '{name}' ran; those that did: {names}")
        return [(loop, wanted[loop.name]) for loop in loops if loop.name in wanted]
    outermost = [loop for loop in loops if loop.path.count(" > ") == 1]
    if len(outermost) != 1:
        raise UsageError(
            f"iterations={wanted}: name the loop, as iterations={{NAME: {wanted}}}; those that ran: {names}"
        )
    return [(outermost[0], wanted)]


def _told(loop: LoopSummary, count: int) -> str:
    ran = (
        counted(loop.most, loop.word) if loop.fewest == loop.most else f"{loop.fewest:,} to {loop.most:,} {loop.word}s"
    )
    ended = enumerated([str(reason) for reason in loop.ended])
    return f"{loop.path} ran {ran}, not {count:,}: {ended} (line {loop.line})"
