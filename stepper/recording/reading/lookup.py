"""What an address means in a recording: its moments, with the value at each, or what is known of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from stepper.errors import UsageError
from stepper.query.addresses import Address, Target, numpy_index, parse_address
from stepper.query.expression_values import ValueFailure, element
from stepper.recording.reading import moments
from stepper.recording.reading.carried import CarriedIn
from stepper.recording.reading.catalogue import Catalogue, Whole
from stepper.recording.reading.columns import Column, summary_of
from stepper.recording.reading.recording import Recording
from stepper.tensors.summaries import Summary


class Found(Struct, frozen=True, eq=False):
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
        """The statistics, of the value itself where it is there."""
        return summary_of(self.value) if self.summary is None else self.summary


class Selection:
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
        """Whether the address means one moment alone, whatever the run was."""
        asked = zip(self.target.program.path, self.target.iterations, strict=True)
        return all(isinstance(iterations, int) for layer, iterations in asked if layer.is_loop)

    def count(self) -> int:
        """How many moments it may have a value at."""
        if self._whole is not None:
            return 1
        return moments.count(self._recording, self._level, self.target.program.path, self.target.iterations)

    def walk(self, *, statistics: bool = False) -> Iterator[Found]:
        """The moments with what was recorded; those at which nothing computed the value are left out.

        With `statistics` these are read rather than values, where they are in the file. UsageError for a part that the
        value has not.
        """
        whole = self._whole
        if whole is not None:
            yield Found((), None, self._part(self._recording.whole(*whole)), None)
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
                    yield Found(moment.numbers, moment.tick, self._part(brought.value), None, brought.source)
                    continue
            yield Found(moment.numbers, moment.tick, None if value is None else self._part(value), found)

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


def select(recording: Recording, addresses: list[str]) -> list[Selection]:
    """What the addresses mean. AddressError, or ResolutionError for what is unknown or ambiguous."""
    catalogue = Catalogue(recording)
    return [
        Selection(recording, catalogue, target, parse_address(text))
        for text in addresses
        for target in catalogue.targets(text)
    ]


def nothing_there(recording: Recording, selection: Selection, address: str) -> str:
    """Why there is no moment: a sentence."""
    path = selection.target.program.path
    if not path:
        return f"'{address}': the run did not come to its end, so it has no outputs"
    ran = moments.most_iterations(recording, selection._level)
    iterations = f"{ran:,} iteration{'' if ran == 1 else 's'}"
    chosen = recording.choice().iterations
    some = "" if chosen.everything else f", of which --record-iters {chosen.text} chose some"
    return f"'{address}': nothing was recorded there; {path[-1].type} '{path[-1].name}' ran {iterations} at most{some}"
