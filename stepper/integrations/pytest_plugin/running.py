"""The fixture `stepper_run`: a run, watched for what must never be, what must always hold, and how often loops run."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
import pytest

from stepper.commands.command_session import stop_lines
from stepper.compare.comparison import RunComparison, compare_models, compare_with, text_lines
from stepper.compare.references.reference_opening import open_reference
from stepper.debug.breakpoints.data_breakpoints import specification
from stepper.debug.causes.cause import Became
from stepper.debug.causes.cause_texts import sentences
from stepper.debug.debugger import Debugger
from stepper.debug.scopes import Names
from stepper.debug.stop import Reason
from stepper.debug.stop_scope import StopScope
from stepper.diagnosis.check.checking import check_run, ranked
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.rule import GRAVITY, Finding, Severity, chosen_rules
from stepper.diagnosis.texts import report_lines
from stepper.element_types import Array
from stepper.engine.array_files import read_archive
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_inputs, by_position
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog, LoopSummary, Outputs, collect
from stepper.errors import StepperError, UsageError
from stepper.files.file_kinds import ARRAYS, CASE_INPUTS, CASE_STATES, RECORDING, is_model_path
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.ir.model import Model
from stepper.ir.reader import ModelSource, opened
from stepper.ops.operands import form_text
from stepper.plain_values import write_arrays
from stepper.query.expressions import parse
from stepper.tensors.number_text import array_text
from stepper.tensors.statistics import statistics
from stepper.tensors.tolerances import Tolerances
from stepper.wording import counted, enumerated

_LONGEST_NAME = 100
_RECORDED = "run.sqlite"

GivenInputs: TypeAlias = Mapping[str | int, Any] | str | Path
"""Arrays by the names of inputs, or the path of an .npz with them."""

Again: TypeAlias = Callable[[], Debugger]
"""Makes the debugger of a run once more."""

P = ParamSpec("P")
T = TypeVar("T")


class KeptRun:
    """Model and inputs of a run, by the names of the model, for the command that opens it."""

    def __init__(self, source: ModelSource, inputs: GivenInputs, states: Mapping[str, Any] | None = None) -> None:
        self.model: Model = opened(source)
        self.path = Path(source) if isinstance(source, (str, Path)) else self.model.path
        self.inputs = bind_inputs(self.model, _read(self.model, inputs))
        self.states = states or {}

    @property
    def by_position(self) -> dict[str | int, Array]:
        """Return the inputs as a debugger takes them."""
        return dict(enumerate(self.inputs))


def _read(model: Model, inputs: GivenInputs) -> Mapping[str | int, Any]:
    if not isinstance(inputs, (str, Path)):
        return inputs
    return dict(by_position(model.graph.parameters, read_archive(Path(inputs)), is_archive=True).items())


class FixtureOfRuns:
    """Fixture that fails with a report: where its runs are kept, and whether they are recorded."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._folder: Path | None = None
        self._count = 0

    @property
    def is_recording(self) -> bool:
        """True where failing runs are recorded (`--stepper-trace`)."""
        return self._request.config.getoption("--stepper-trace") is not None

    @property
    def is_updating(self) -> bool:
        """True where files of golden runs are written anew (`--stepper-update`)."""
        return bool(self._request.config.getoption("--stepper-update"))

    def folder(self) -> Path:
        """Return a new folder for a run that fails: of `--stepper-trace`, else among pytest's temporary ones."""
        asked = self._request.config.getoption("--stepper-trace")
        if asked is None:
            factory: pytest.TempPathFactory = self._request.getfixturevalue("tmp_path_factory")
            return factory.mktemp("stepper")
        # A test's id has the file, the class and the parameters, so that processes of xdist never share a folder.
        name = re.sub(r"[^\w.-]+", "-", self._request.node.nodeid)[-_LONGEST_NAME:].strip("-.")
        folder: Path = (
            self._request.config.invocation_params.dir / asked / (f"{name}-{self._count}" if self._count else name)
        )
        self._count += 1
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def failed(
        self,
        run: KeptRun,
        lines: Sequence[str],
        *more: str,
        words: Sequence[str] = (),
        reference: object = None,
        again: Again | None = None,
    ) -> CheckFailed:
        """Return the test's failure message: these lines, the command that opens the run, and more.

        The inputs of the run are kept. If recording is on, the run is recorded, as `again` makes it (None: to its end).
        `words` are further options of the command for this run; `reference` is the run's comparison partner.
        """
        folder, command = self._keep(run)
        command += [*words, *([] if reference is None else ["--reference", str(reference)])]
        if self.is_recording:
            file = folder / _RECORDED
            _record(Debugger(run.model, run.by_position, states=run.states) if again is None else again(), file)
            more = (*more, f"recorded{'' if again is None else ' up to there'}: {file}")
        return CheckFailed(lines, command, *more)

    def _keep(self, run: KeptRun) -> tuple[Path, list[str]]:
        """Write the inputs of a run; return their folder, and the command that opens the run."""
        folder = self.folder()
        words = ["stepper", str(run.path)]
        protected = ProtectedFiles.of_model(run.path)
        names = [layer.name for layer in run.model.graph.parameters]
        given = dict(zip(names, run.inputs, strict=True))
        for option, file, arrays in (("--inputs", CASE_INPUTS, given), ("--states", CASE_STATES, run.states)):
            if arrays:
                with OutputFile(folder / file, ARRAYS, protected).writing() as target:
                    write_arrays(target, arrays)
                words += [option, str(folder / file)]
        return folder, words


class CheckFailed(StepperError):
    """A test fails: these lines, the command that opens what failed, and more."""

    has_lines = True

    def __init__(self, lines: Sequence[str], command: Sequence[str] = (), *more: str) -> None:
        opens = [f"open it: {shlex.join(command)}"] if command else []
        super().__init__("\n".join([*lines, *opens, *more]))


def _record(debugger: Debugger, file: Path) -> None:
    """Run again, recorded up to where it stops; the file of an earlier run of the test goes."""
    from stepper.recording import record
    from stepper.recording.recorder import continue_recorded, recorded

    file.unlink(missing_ok=True)
    recorder = record(debugger.machine, debugger.inputs, file)
    with recorded(debugger, recorder):
        try:
            continue_recorded(debugger, recorder, for_good=True)
        except StepperError:
            recorder.halt(for_good=True)  # the run fails, as it did before


def failing(check: Callable[P, T]) -> Callable[P, T]:
    """Return the call of a fixture: an error fails the test with its message alone, at the line of the test.

    How the product came to it helps nobody who wrote a test.
    """

    @wraps(check)
    def called(*arguments: P.args, **options: P.kwargs) -> T:
        __tracebackhide__ = True
        try:
            return check(*arguments, **options)
        except StepperError as error:
            message = str(error)
        pytest.fail(message)

    return called


_FEW = 4
"""Elements that are written one by one."""
_MOST_READ = 4
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
            lines = [str(error), *_place_lines(debugger)]
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
                told = (sentence for cause in stop.causes for sentence in sentences(cause))
                lines = [*told, *_place_lines(debugger), *_read_lines(debugger)]
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


def _place_lines(debugger: Debugger) -> list[str]:
    """Return the lines of a stop without its cause, which comes first: the summary of pytest has one line."""
    return [line for line in stop_lines(debugger) if line.strip() not in debugger.stop.details]


def _finding_lines(one: Finding) -> list[str]:
    """Return the lines of a finding, what is wrong before the path."""
    first, *more = report_lines(one)
    return [f"{first.removeprefix(f'{one.spot}: ')} ({one.spot})", *more]


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


class AgreementCheck(FixtureOfRuns):
    """Compares a model with another, OpenVINO, onnxruntime, a recording or an archive of values."""

    @failing
    def __call__(
        self,
        model: ModelSource,
        other: ModelSource,
        inputs: GivenInputs,
        *,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> RunComparison:
        """Return the comparison; no value is outside the tolerances.

        `other` is the argument of `stepper compare --with`, or a model. By default `rtol` and `atol` follow from the
        element types, as in that command.
        """
        run = KeptRun(model, inputs)
        found = _compared(run, other, rtol, atol)
        if found.differs:
            reference = other.path if isinstance(other, Model) else other
            raise self.failed(run, text_lines(found), reference=reference)
        return found


class GoldenCheck(FixtureOfRuns):
    """Compares a run with the recording of a good one, which --stepper-update makes."""

    @failing
    def __call__(
        self,
        file: str | Path,
        model: ModelSource,
        inputs: GivenInputs,
        *,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> RunComparison | None:
        """Return the comparison with the recording; None where it was written anew."""
        file, run = Path(file), KeptRun(model, inputs)
        if self.is_updating:
            _write(run, file)
            return None
        if not file.exists():
            raise UsageError(f"there is no {file} yet; pytest --stepper-update records it from this run")
        found = _compared(run, file, rtol, atol)
        if found.differs:
            again = "if this is right, pytest --stepper-update records it again"
            raise self.failed(run, text_lines(found), again, reference=file)
        return found


def _compared(run: KeptRun, other: ModelSource, rtol: float | None, atol: float | None) -> RunComparison:
    tolerances = None if rtol is atol is None else Tolerances(True, rtol, atol)
    if not isinstance(other, (str, Path)) or is_model_path(str(other)):
        return compare_models(run.model, other, run.by_position, tolerances=tolerances)
    compiled = compile_model(run.model)
    reference = open_reference(str(other), compiled, run.inputs, source=run.path, option="stepper_agree")
    tolerances = None if tolerances is None else Tolerances(reference.is_exact, rtol, atol)
    return compare_with(Machine(compiled, run.inputs), reference, tolerances)


def _write(run: KeptRun, file: Path) -> None:
    """Record a run; an earlier recording, and nothing else, is replaced."""
    from stepper.recording import RecordingOptions, open_recording, record

    OutputFile(file, RECORDING, ProtectedFiles.of_model(run.path), "stepper_golden").check()
    if file.exists():
        open_recording(file).close()  # refuses what is none
    # Of a process of its own: where tests run in several, some may have the same file.
    written = file.with_name(f".{file.name}.{os.getpid()}.part")
    written.unlink(missing_ok=True)
    try:
        machine = Machine(compile_model(run.model), run.inputs)
        with record(machine, run.inputs, written, RecordingOptions.parse("all")) as recorder:
            recorder.run()
        written.replace(file)
    finally:
        written.unlink(missing_ok=True)


class ModelCheck(FixtureOfRuns):
    """Asks the rules, and fails where a finding is as grave as `fail_on`."""

    @failing
    def __call__(
        self,
        model: ModelSource,
        inputs: GivenInputs | None = None,
        *,
        fail_on: str = "error",
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
    ) -> tuple[Finding, ...]:
        """Return all findings, most severe first; with inputs, the findings of a run.

        `fail_on` is error, warning or note; `select` and `ignore` are names of rules, or the beginning of their ids.
        They extend the settings of the project.
        """
        least, asked = _severity(fail_on), chosen_rules(select, ignore)
        found, run = _file_findings(model), None
        if inputs is not None and not any(one.spot.part == "file" for one in found):
            run = KeptRun(model, inputs)
            found += check_run(Debugger(run.model, run.by_position)).findings
        chosen = ranked(one for one in found if one.rule in asked)
        grave = [one for one in chosen if GRAVITY[one.severity] <= GRAVITY[least]]
        if grave:
            lines = [line for one in grave for line in _finding_lines(one)]
            raise CheckFailed(lines) if run is None else self.failed(run, lines)
        return chosen


def _file_findings(model: ModelSource) -> list[Finding]:
    is_ir = isinstance(model, (str, Path)) and str(model).endswith(".xml")
    return list(lint(str(model))) if is_ir else []


def _severity(word: str) -> Severity:
    try:
        return Severity(word)
    except ValueError:
        raise UsageError(f"fail_on='{word}': expected error, warning or note") from None
