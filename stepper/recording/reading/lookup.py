"""Values of a recording by address: the moments of each, with the value, or its statistics.

A Parameter that a back edge feeds is in iteration i what the Result was in iteration i - 1, in iteration 0 what the
loop was entered with. Which Result feeds it only the model says; without the model its values are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.engine.loops import roles_of
from stepper.errors import SessionError, StepperError, UsageError
from stepper.ir.constants import constant_value
from stepper.ir.model import Graph, Layer, Model
from stepper.query.address_resolution import Target
from stepper.query.address_syntax import Address, numpy_index, parse_address
from stepper.query.expression_values import ValueFailure, element
from stepper.recording.reading import moments
from stepper.recording.reading.catalogue import Catalogue, Whole
from stepper.recording.reading.columns import Column, summary_of
from stepper.recording.reading.moments import RecordedMoment
from stepper.recording.reading.recording import Recording
from stepper.tensors.summaries import Summary
from stepper.wording import counted


class RecordedValue(Struct, frozen=True, eq=False):
    """A value at one moment. `value` is None where only statistics were recorded.

    `numbers` are the iterations of the loops on the way, `tick` is when the innermost was closed; of the model's own
    inputs and outputs there are none. `source` says where the value was recorded, if that is elsewhere: of a Parameter
    what the back edge carried, `h_next@6`.
    """

    numbers: tuple[int | None, ...]
    tick: int | None
    value: Any
    summary: Summary | None
    source: str = ""

    @property
    def at(self) -> str:
        """The iterations as an address has them: `@7`, `@3 @0`."""
        return " ".join(f"@{number}" for number in self.numbers if number is not None)

    def statistics(self) -> Summary:
        """Return the statistics, of the value itself where it is there."""
        return summary_of(self.value) if self.summary is None else self.summary


class ValueSelection:
    """One value of a recording at the moments that an address names. Each walk reads them anew, one after the other."""

    def __init__(self, recording: Recording, catalogue: Catalogue, target: Target, address: Address) -> None:
        self._recording, self._catalogue = recording, catalogue
        self.target = target
        self.index = numpy_index(address.index)
        part = "" if not address.index else str(Address(index=address.index))
        self.name = f"{catalogue.address(target)}{part}"
        """The full address, without iterations."""

    @property
    def loops(self) -> tuple[str, ...]:
        """The names of the loops around it."""
        return tuple(layer.name for layer in self.target.program.path if layer.is_loop)

    @property
    def computed_by(self) -> str:
        """The partner that computed it, in words; empty for numpy."""
        return "" if self._whole is not None else self._catalogue.computed_by.get(self.target.slot, "")

    @property
    def is_single(self) -> bool:
        """True if the address means one moment alone, whatever the run was."""
        asked = zip(self.target.program.path, self.target.iterations, strict=True)
        return all(isinstance(iterations, int) for layer, iterations in asked if layer.is_loop)

    def count(self) -> int:
        """Return how many moments it may have a value at."""
        if self._whole is not None:
            return 1
        return moments.count(self._recording, self._level, self.target.program.path, self.target.iterations)

    def walk(self, *, statistics: bool = False) -> Iterator[RecordedValue]:
        """Yield the moments with what was recorded; those at which nothing computed the value are left out.

        With `statistics` these are read rather than values, where they are in the file. UsageError for a part that the
        value has not.
        """
        whole = self._whole
        if whole is not None:
            yield RecordedValue((), None, self._part(self._recording.whole(*whole)), None)
            return
        column = Column(self._recording, self.target.slot)
        path, asked = self.target.program.path, self.target.iterations
        wanted = statistics and not self.index
        carried: CarriedIn | None = None
        for moment in moments.moments(self._recording, self._level, path, asked):
            found = column.summary(moment.id) if wanted else None
            value = None if found is not None else column.value(moment.id)
            if value is None and found is None:
                found = column.summary(moment.id)
                if found is None:
                    continue
                carried = carried or CarriedIn(self._recording, self._catalogue, self.target)
                brought = carried.value(moment, found)
                if brought is not None:
                    yield RecordedValue(moment.numbers, moment.tick, self._part(brought.value), None, brought.source)
                    continue
            yield RecordedValue(moment.numbers, moment.tick, None if value is None else self._part(value), found)

    def _part(self, value: Any) -> Any:
        try:
            return np.asarray(element(value, self.index) if self.index else value)
        except ValueFailure as error:
            raise UsageError(f"{self.name}: {error}") from None

    @property
    def _whole(self) -> Whole | None:
        return self._catalogue.whole(self.target)

    @property
    def _level(self) -> int:
        return self._catalogue.level(self.target.program)


def select(recording: Recording, addresses: list[str]) -> list[ValueSelection]:
    """Return the values that the addresses mean. AddressError; ResolutionError for a name unknown or ambiguous."""
    catalogue = Catalogue(recording)
    return [
        ValueSelection(recording, catalogue, target, parse_address(text))
        for text in addresses
        for target in catalogue.targets(text)
    ]


def nothing_there(recording: Recording, selection: ValueSelection, address: str) -> str:
    """Return why there is no moment: a sentence."""
    path = selection.target.program.path
    if not path:
        return f"'{address}': the run did not come to its end, so it has no outputs"
    ran = moments.most_iterations(recording, selection._level)
    iterations = counted(ran, "iteration")
    chosen = recording.options().iterations
    some = "" if chosen.everything else f", of which --record-iters {chosen.text} chose some"
    return f"'{address}': nothing was recorded there; {path[-1].type} '{path[-1].name}' ran {iterations} at most{some}"


class CarriedValue(NamedTuple):
    """A value with where it was recorded, in words."""

    value: Any
    source: str


class CarriedIn:
    """The values of one Parameter as those of the Result that a back edge carries. Moments are asked for in order."""

    def __init__(self, recording: Recording, catalogue: Catalogue, target: Target) -> None:
        self._recording = recording
        self._result = ""
        self._column: Column | None = None
        self._initial: CarriedValue | None = None
        if target.layer.type == "Parameter" and target.program.path and target.program.path[-1].is_loop:
            try:
                model = recording.model()
            except StepperError:  # it is not there any more, or another one
                return
            with recording.reading():
                self._find(model, catalogue, target)

    def _find(self, model: Model, catalogue: Catalogue, target: Target) -> None:
        ids = [layer.id for layer in target.program.path]
        found = [(path, graph) for path, graph in model.graphs() if [layer.id for layer in path] == ids]
        if not found:
            raise SessionError("has a loop that is not in its model")
        path, body = found[0]
        outer = next(graph for around, graph in model.graphs() if around == path[:-1] and path[-1] in graph.layers)
        roles = roles_of(path[-1])
        result = roles.merged_from.get(target.layer.id)
        if result is None:
            return
        source = body.sources[result][0]
        port = None if source is None else target.program.slots.get((source.layer, source.output))
        if source is not None and port is not None:
            self._column, self._result = Column(self._recording, port), body.by_id[result].name
        entry = next(entry for entry in roles.merged if entry.parameter == target.layer.id)
        if len(path) == 1 and entry.input is not None:
            self._initial = self._entered_with(model, catalogue, outer, path[-1], entry.input)

    def _entered_with(
        self, model: Model, catalogue: Catalogue, outer: Graph, loop: Layer, index: int
    ) -> CarriedValue | None:
        source = outer.sources[loop.id][index]
        layer = None if source is None else outer.by_id[source.layer]
        if layer is None:
            return None
        if layer.type == "Constant":
            return CarriedValue(constant_value(model, layer), f"Constant '{layer.name}'")
        if layer.type != "Parameter":
            return None
        position = outer.parameters.index(layer)
        return CarriedValue(self._recording.whole("inputs", position), f"input '{layer.name}'")

    def value(self, moment: RecordedMoment, known: Summary) -> CarriedValue | None:
        """Return the Parameter's value at a moment whose statistics are known; None where it was not recorded."""
        activation, iteration = moment.innermost
        if activation is None:
            return None
        if iteration == 0:
            found = self._initial
        else:
            before = self._moment(activation, iteration - 1)
            value = None if before is None or self._column is None else self._column.value(before)
            found = None if value is None else CarriedValue(value, f"{self._result}@{iteration - 1}")
        if found is None:
            return None
        value = np.asarray(found.value).astype(known.dtype)
        return CarriedValue(value, found.source) if _is_that(value, known) else None

    def _moment(self, activation: int, iteration: int) -> int | None:
        """Return the id of an iteration of a run of the body; None where it was not recorded."""
        query = "SELECT id, iteration, count FROM runs WHERE activation = ? AND iteration <= ? ORDER BY iteration DESC"
        for first, begin, count in self._recording.query(f"{query} LIMIT 1", (activation, iteration)):
            if iteration < begin + count:
                return int(first + iteration - begin)
        return None


def _is_that(value: Any, known: Summary) -> bool:
    """Return True if a value has the statistics that were recorded."""
    found = summary_of(value)
    same = (found.dtype, found.shape) == (known.dtype, known.shape)
    return same and all(found.numbers[name] == known.numbers[name] for name in ("min", "max", "nan", "inf"))
