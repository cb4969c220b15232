"""A recording, to be looked at: its origin, statistics, values, events; and a machine that stands where it ended.

Everything read is checked, and whatever is wrong with the file is a SessionError with its name.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from msgspec import Struct

from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.inputs import bind_inputs, bind_states, position_of
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Operation, OpKind, Partner
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog, LoopSummary
from stepper.errors import InputError, SessionError
from stepper.html_tables import html_table
from stepper.ir.model import Model
from stepper.ir.reader import read
from stepper.ops.operands import form_text
from stepper.recording import files, schema, versions
from stepper.recording.blobs import OF_RECORDING, BlobReader
from stepper.recording.options import RecordingOptions
from stepper.recording.origin import RunOrigin, check_inputs, check_states, read_states, read_tensor, read_tensors
from stepper.recording.session_rows import read_kept
from stepper.recording.snapshots import checksum, pieces_from
from stepper.recording.states import restore
from stepper.wording import excerpt

_MOST_ROWS: Final = 1_000_000
_ROWS_AT_ONCE: Final = 256
_OF_VIEW: Final = re.compile(rf"\b(from|join)\W+({'|'.join(schema.VIEWS)})\b", re.IGNORECASE)


class RestoredMachine(Struct, frozen=True):
    """A machine in the state of a snapshot, and what a recorder needs to go on from there."""

    machine: Machine
    inputs: tuple[Array, ...]
    tick: int
    numbers: tuple[int, ...]
    """Of its activations, in the file."""
    iterations: int
    activations: int
    """The last numbers that were given."""


class Recording:
    """An open recording; a context manager. The file may still be written to by the run itself."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._is_checked = False
        """True if every row has been checked, not only those that a query of a table reads."""
        self._connection = files.connect(self.path, writable=False)
        try:
            with self.reading():
                self.origin = RunOrigin.read(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def __repr__(self) -> str:
        return f"<Recording {excerpt(str(self.path))} of {excerpt(self.origin.model)}>"

    def _repr_html_(self) -> str:
        """Return a table of what the run was given and what it gave, for notebooks."""
        rows = [("model", self.origin.model, f"rules {self.origin.rules}")]
        for word, found in (("input", self.inputs()), ("output", self.outputs())):
            rows += [(word, name, form_text(value)) for name, value in found.items()]
        return html_table(rows, repr(self)[1:-1])

    # --- looking -------------------------------------------------------------------------------------------------

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT over the tables and views that schema.py describes; a million at most."""
        with self.reading():
            if not self._is_checked and _OF_VIEW.search(statement):
                versions.check_all(self._connection)
                self._is_checked = True
            return self._connection.execute(statement, parameters).fetchmany(_MOST_ROWS)

    def stream(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a SELECT one after the other, however many there are; they are never in memory together."""
        with self.reading():
            cursor = self._connection.execute(statement, parameters)
        while True:
            with self.reading():
                rows = cursor.fetchmany(_ROWS_AT_ONCE)
            if not rows:
                return
            yield from rows

    def tensor(self, blob: Any) -> Array:
        """Return the tensor of a blob."""
        with self.reading():
            return BlobReader(self._connection, OF_RECORDING).tensor(blob)

    def inputs(self) -> dict[str, Array]:
        """Return the model's inputs by the names of its Parameters."""
        with self.reading():
            return read_tensors(self._connection, "inputs")

    def bound_inputs(self, model: Model) -> tuple[Array, ...]:
        """Return the inputs in the order of a model's Parameters. Raise SessionError where they do not fit."""
        with self.reading():
            recorded = read_tensors(self._connection, "inputs")
            if len(recorded) != len(model.graph.parameters):
                raise SessionError("has other inputs than the model")
            try:
                return tuple(bind_inputs(model, dict(enumerate(recorded.values()))))
            except InputError as error:
                raise SessionError(f"is damaged: {error}") from None

    def states(self) -> dict[str, Array]:
        """Return the variables of an earlier run that this one began with, by name."""
        with self.reading():
            return read_states(self._connection)

    def whole(self, table: str, position: int) -> Array:
        """Return one of the model's inputs or outputs, by its position."""
        with self.reading():
            return read_tensor(self._connection, table, position)

    def outputs(self) -> dict[str, Array]:
        """Return the model's outputs by name; none where the run did not come to its end."""
        with self.reading():
            return read_tensors(self._connection, "outputs")

    def kept(self, kind: str) -> list[Any]:
        """Return the rows of JSON that were kept of this kind."""
        with self.reading():
            return read_kept(self._connection, kind)

    def kept_value(self, reference: Any) -> Any:
        """Return the tensor that a kept row names, as a machine has it."""
        with self.reading():
            return BlobReader(self._connection, OF_RECORDING).value(reference)

    def check_run(self, machine: Machine, inputs: Sequence[Array]) -> None:
        """Raise SessionError where a machine on these inputs does another run than this; the message says which."""
        with self.reading():
            self.origin.check_run(machine)
            recorded = read_tensors(self._connection, "inputs")
            if len(recorded) != len(inputs):
                raise SessionError("has other inputs than the model")
            check_inputs(machine.compiled.model, recorded, inputs)
            check_states(read_states(self._connection), machine.initial_states)

    # --- going on ------------------------------------------------------------------------------------------------

    def model_path(self, moved: str | Path | None = None) -> Path:
        """Return the path of the model, which is found to be the recorded one; `moved` where it is elsewhere now."""
        with self.reading():
            path = self.origin.model_path(self.path.parent) if moved is None else Path(moved)
            self.origin.check_model(path)
            return path

    def restored(
        self,
        model: str | Path | None = None,
        *,
        tick: int | None = None,
        inputs: Mapping[str | int, Any] | None = None,
        max_iterations: int | None = None,
        partner: Partner | None = None,
    ) -> RestoredMachine:
        """Return a machine in the state of the last snapshot (with `tick`: of the last one not after it).

        `model` is the path of the .xml where it is not found beside the recording. SessionError for another model, or
        other `inputs` than those of the recording.
        """
        with self.reading():
            compiled = self._compiled(model, partner)
            recorded = read_tensors(self._connection, "inputs")
            bound = self.bound_inputs(compiled.model)
            if inputs:
                parameters = compiled.model.graph.parameters
                everything: dict[str | int, Any] = dict(enumerate(recorded.values()))
                everything |= {position_of(parameters, key): value for key, value in inputs.items()}
                check_inputs(compiled.model, recorded, bind_inputs(compiled.model, everything))
            limit = self.origin.max_iterations if max_iterations is None else max_iterations
            states = bind_states(compiled, read_states(self._connection))
            keep = self.origin.keep_values
            machine = Machine(compiled, bound, max_iterations=limit, states=states, keep_values=keep)
            return self._restore(machine, tuple(bound), 2**62 if tick is None else tick)

    def model(self, path: str | Path | None = None) -> Model:
        """Return the model as it was run, over its calls, with its sequences opened. SessionError for another model."""
        with self.reading():
            return self.origin.in_form(read(self.model_path(path)))

    def _compiled(self, path: str | Path | None, partner: Partner | None) -> CompiledModel:
        compiled = compile_model(self.model(path), Rules(self.origin.rules), partner)
        self.origin.check_engine(compiled.engine)
        return compiled

    def _restore(self, machine: Machine, inputs: tuple[Array, ...], tick: int) -> RestoredMachine:
        connection = self._connection
        query = (
            "SELECT tick, iterations, activations, state, checksum FROM snapshots WHERE tick <= ? ORDER BY tick DESC"
        )
        row = connection.execute(f"{query} LIMIT 1", (tick,)).fetchone()
        if row is None:
            raise SessionError("has no snapshot to go on from")
        found, iterations, activations, state, seal = row
        if not isinstance(state, str) or seal != checksum(found, state):
            raise SessionError("its last snapshot is damaged")
        if type(iterations) is not int or type(activations) is not int:
            raise SessionError("its last snapshot is damaged")
        numbers = restore(machine, state, connection, lambda *scan: pieces_from(connection, *scan))
        return RestoredMachine(machine, inputs, machine.tick, tuple(numbers), iterations, activations)

    def options(self) -> RecordingOptions:
        """Return which values the run records."""
        with self.reading():
            return self.origin.options()

    def loop_log(self, compiled: CompiledModel, tick: int) -> LoopLog:
        """Return the iterations and ends of loops up to a tick, as counted by a run that is never interrupted."""
        log = LoopLog()
        query = (
            "SELECT level, ended, count(*), sum(iterations), min(iterations), max(iterations), min(closed) "
            "FROM activations WHERE closed <= ? AND ended IS NOT NULL GROUP BY level, ended ORDER BY min(closed)"
        )
        for level, ended, executions, total, fewest, most, _closed in self.query(query, (tick,)):
            with self.reading():
                operation = _loop_of(compiled, level)
                layer, path = operation.layer, compiled.programs[level].name
                reasons = Counter({EndReason(ended): executions})
                log.include(
                    operation,
                    LoopSummary(
                        path,
                        layer.id,
                        layer.type,
                        layer.name,
                        layer.line,
                        executions,
                        total,
                        fewest,
                        most,
                        reasons,
                        layer.iteration_word,
                    ),
                )
        return log

    # --- the file ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Turn every error in the block into a SessionError with the file's name; end the block after a minute."""
        with files.errors_named(self.path, self._connection), files.time_bound(self._connection):
            yield

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _loop_of(compiled: CompiledModel, level: Any) -> Operation:
    """Return the loop whose body is a level."""
    if type(level) is int and 0 < level < len(compiled.programs):
        for program in compiled.programs:
            for operation in program.operations:
                if operation.kind is OpKind.LOOP and operation.plans[0].program is compiled.programs[level]:
                    return operation
    raise SessionError("has an activation of a loop that is not in the model")
