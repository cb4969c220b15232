"""How fixtures fail: what the run got is kept, and the message has the command that opens it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import pytest

from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from stepper.engine.array_files import read_archive
from stepper.engine.inputs import bind_inputs, positions_of_keys
from stepper.errors import StepperError
from stepper.files.kinds import ARRAYS, CASE_INPUTS, CASE_STATES
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.ir.model import Model
from stepper.ir.reader import ModelSource, opened
from stepper.plain_values import write_arrays

_LONGEST_NAME: Final = 100
_RECORDED: Final = "run.sqlite"

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
    arrays = read_archive(Path(inputs))
    keys = positions_of_keys(model.graph.parameters, arrays)
    return {position: arrays[key] for position, key in keys.items()}


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
        """Return how the test fails: these lines, the command that opens the run, and more.

        What the run got is kept; where that is asked for, the run is recorded, as `again` makes it (None: to its end).
        `words` are options of the run that the command has, too; `reference` is what it was compared with.
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
