"""Variables: the scopes of a frame, the values in them, and pages of tensors of any size.

A number stands for whatever can be opened; all are forgotten when the run moves. A page takes its elements out of the
tensor, and nothing else of that is read.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import (
    BackEdgeView,
    BranchView,
    FrameView,
    InputView,
    LoopView,
    OutputView,
    ScanView,
    frame_views,
)
from stepper.debug.stop import is_branch
from stepper.element_types import Array, Indices
from stepper.errors import UsageError
from stepper.integrations.dap.listing import ModelListing
from stepper.integrations.dap.messages import ShownScope, ShownVariable, VariableHint
from stepper.query.address_syntax import exact_name
from stepper.query.expression_values import described
from stepper.records import Record
from stepper.tensors.number_text import exact_text, numbers_text
from stepper.wording import counted

MOST: Final = 1000
"""Variables of an answer; of more there are ranges to open."""
_MOST_OPEN: Final = 500_000
_ROOM: Final = 100
_ROOM_BEHIND: Final = 80
"""Characters of a value: in a list, and behind a line."""
_LARGEST_TESTED: Final = 100_000
"""Elements of a value that is looked through for NaN and Inf."""
_LARGEST_PAGE_TESTED: Final = 1_000_000
"""Elements of all values of a page that are."""
_MOST_BYTES: Final = 2**20

Content = Callable[[int, int], Sequence[ShownVariable]]


class OpenVariables(Record, eq=False):
    """Something with variables in it: how many, and what gives those from one index up to another.

    `address` is how a tensor is written, and `index` which part of it this is; `array` is that part. `scope`: the depth
    and the name of a scope.
    """

    count: int
    content: Content
    array: Array | None = None
    address: str = ""
    index: Indices = ()
    scope: tuple[int, str] | None = None


class StopVariables:
    """All that can be opened at a stop, by number."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self._open: list[OpenVariables | None] = []
        self._old: set[int] = set()
        self._base = 1

    def forget(self) -> None:
        """Forget all numbers: the run moves. None is given twice."""
        self._base += len(self._open)
        self._open.clear()
        self._old.clear()

    def renew(self) -> None:
        """Read what is open anew when it is asked for: the run stands still, but a value of it is another now."""
        self._old = set(range(len(self._open)))

    def _again(self, one: OpenVariables) -> OpenVariables | None:
        """Return the same as it is now; None for a part of something, which is to be opened again."""
        if one.scope is not None:
            depth, name = one.scope
            return next((self.opened(new.variables_reference) for new in self.scopes(depth) if new.name == name), None)
        if one.array is None or not one.address or one.count != len(one.array):
            return None
        array = np.asarray(self._debugger.value(one.address))[one.index]
        return self.opened(self.shown("", array, one.address, one.index).variables_reference)

    def opened(self, reference: int) -> OpenVariables:
        """Return what a number stands for. Raise UsageError where it is of another stop, or none."""
        place = reference - self._base
        found = self._open[place] if 0 <= place < len(self._open) else None
        if found is not None and place in self._old:
            self._old.discard(place)
            found = self._open[place] = self._again(found)
        if found is None:
            raise UsageError(f"there are no variables {reference} at this stop; ask for its scopes first")
        return found

    def page(self, reference: int, start: int, count: int) -> list[ShownVariable]:
        """Return variables from `start` on, `count` at most (0: all; of many in ranges). UsageError."""
        found = self.opened(reference)
        begin = min(max(start, 0), found.count)
        end = min(found.count, begin + count) if count > 0 else found.count
        if end - begin <= MOST:
            return list(found.content(begin, end))
        return list(self._ranges(found, begin, end))

    def is_indexed(self, reference: int) -> bool:
        """Return True if what a number stands for has elements, not variables with names. UsageError."""
        return self.opened(reference).array is not None

    def _ranges(self, found: OpenVariables, begin: int, end: int) -> Iterator[ShownVariable]:
        """Yield ranges of as many variables each; in those of very many are ranges again."""
        each = MOST
        while (end - begin) / each > MOST:
            each *= MOST
        for start in range(begin, end, each):
            stop = min(start + each, end)
            part = OpenVariables(
                stop - start,
                lambda first, last, start=start: found.content(start + first, start + last),  # type: ignore[misc]
                found.array,
                found.address,
                found.index,
            )
            yield ShownVariable(f"[{start}..{stop - 1}]", "", self._numbered(part), presentation_hint=_VIRTUAL)

    def _numbered(self, found: OpenVariables) -> int:
        if len(self._open) >= _MOST_OPEN:
            raise UsageError(f"{_MOST_OPEN:,} variables are open at this stop; step, and open fewer")
        self._open.append(found)
        return self._base + len(self._open) - 1

    # --- scopes --------------------------------------------------------------------------------------------------

    def scopes(self, depth: int) -> list[ShownScope]:
        """Return the scopes of the frame at a depth (0: the model's own graph). UsageError where there is none."""
        stack = self._debugger.machine.stack
        if not stack and depth == 0:
            return [self._scope("Outputs", self._outputs(), "locals", 0)]
        if not 0 <= depth < len(stack):
            raise UsageError(f"the stack has {counted(len(stack), 'frame')}; there is no frame {depth + 1}")
        scopes = [self._scope("Values", self._values(depth), "locals", depth)]
        if stack[depth].loop:
            loop = self._debugger.loop(depth, differences=False)
            scopes += [
                self._scope("Carried", [partial(self._carried, edge) for edge in loop.back_edges], depth=depth),
                self._scope("Scan outputs", [partial(self._scan, scan) for scan in loop.scans], depth=depth),
                self._scope("Ports", self._ports(loop), depth=depth),
                self._scope("Condition", _condition(loop), depth=depth),
            ]
        elif is_branch(stack[depth]) and depth == len(stack) - 1 and (side := self._debugger.view().branch) is not None:
            scopes += [self._scope("Ports", self._ports(side), depth=depth)]
            scopes.append(self._scope("Condition", _side(side), depth=depth))
        return scopes

    def _scope(self, name: str, made: Sequence[ShownVariable | _Late], hint: str = "", depth: int = 0) -> ShownScope:
        def content(begin: int, end: int) -> list[ShownVariable]:
            return [one if isinstance(one, ShownVariable) else one() for one in made[begin:end]]

        reference = self._numbered(OpenVariables(len(made), content, scope=(depth, name)))
        return ShownScope(name, reference, expensive=False, named_variables=len(made), presentation_hint=hint)

    def _values(self, depth: int) -> list[_Late]:
        """Return values, each shown when it is asked for: the newest first, then Parameters, then those to come."""
        frame = frame_views(self._debugger.machine.stack)[depth]
        come = frame.last + 1
        layers = (*frame.layers[:come][::-1], *frame.graph.parameters, *frame.layers[come:])
        return [self._value_of(frame, layer, output) for layer in layers for output in range(len(layer.outputs))]

    def _value_of(self, frame: FrameView, layer: Any, output: int) -> _Late:
        def made() -> ShownVariable:
            view = frame.value(layer.id, output)
            name = f"{layer.name}:{output}" if len(layer.outputs) > 1 else layer.name
            address = frame.address_of(layer, output, self._debugger.machine.compiled)
            return _absent(name, view.absent, address) if view.array is None else self.shown(name, view.array, address)

        return made

    def line_values(self, listing: ModelListing, depth: int, lines: range) -> Iterator[tuple[int, str]]:
        """Yield lines with the values that the frames up to a depth have there now."""
        frames = {id(one.program): one for one in frame_views(self._debugger.machine.stack)[: depth + 1]}
        for line in lines:
            place = listing.place(line)
            frame = None if place is None else frames.get(id(place.program))
            if place is None or frame is None or not place.layer.outputs:
                continue
            array = frame.value(place.layer.id, 0).array
            if array is not None and array.dtype.names is None:
                words = _non_finite(array, _LARGEST_TESTED), numbers_text(array, _ROOM_BEHIND)
                yield line, " ".join(" ".join(words).split()) or described(array)

    def _outputs(self) -> list[ShownVariable]:
        machine = self._debugger.machine
        results = machine.compiled.main.graph.results
        pairs = zip(results, machine.outputs or (), strict=True)
        return [self.shown(layer.name, np.asarray(array), f"model::{exact_name(layer.name)}") for layer, array in pairs]

    def _carried(self, edge: BackEdgeView) -> ShownVariable:
        parts = [
            self._maybe(name, array)
            for name, array in (("came in", edge.came_in), ("goes out", edge.goes_out), ("comes next", edge.comes_next))
        ]
        note = "" if edge.counts else f" ({edge.why})"
        return self._group(edge.parameter.name, f"<- {edge.result.name}{note}", parts)

    def _scan(self, scan: ScanView) -> ShownVariable:
        final = "" if scan.final_shape is None else f" of {list(scan.final_shape)}"
        shape = "" if scan.shape is None else f", {list(scan.shape)}{final}"
        text = f"{counted(scan.pieces, 'piece')} along axis {scan.axis}{shape}"

        def content(begin: int, end: int) -> list[ShownVariable]:
            return [self.shown(f"[{number}]", scan.piece(number)) for number in range(begin, end)]

        reference = self._numbered(OpenVariables(scan.pieces, content)) if scan.pieces else 0
        return ShownVariable(scan.result, text, reference, indexed_variables=scan.pieces or None)

    def _ports(self, loop: LoopView | BranchView) -> list[_Late]:
        both: tuple[InputView | OutputView, ...] = (*loop.inputs, *loop.outputs)
        return [partial(self._port, one) for one in both]

    def _port(self, entry: InputView | OutputView) -> ShownVariable:
        if isinstance(entry, InputView):
            name = f"input {'-' if entry.input is None else entry.input} -> {entry.inner.name}"
        else:
            name = f"{entry.inner.name} -> output {'-' if entry.output is None else entry.output}"
        parts = [self._maybe("inside", entry.inner.array)]
        if entry.outer is not None:
            parts.append(self._maybe("outside", entry.outer.array))
        return self._group(name, f"{entry.role}: {entry.why}" if entry.why else str(entry.role), parts)

    def _group(self, name: str, text: str, parts: Sequence[ShownVariable]) -> ShownVariable:
        reference = self._numbered(OpenVariables(len(parts), lambda begin, end: parts[begin:end]))
        return ShownVariable(name, text, reference, named_variables=len(parts))

    def _maybe(self, name: str, array: Array | None) -> ShownVariable:
        return _absent(name, "nothing yet") if array is None else self.shown(name, array)

    # --- tensors -------------------------------------------------------------------------------------------------

    def shown(
        self, name: str, value: Any, address: str = "", index: Indices = (), *, most: int = _LARGEST_TESTED
    ) -> ShownVariable:
        """Return a value: a number, or a tensor that can be opened; without an address it is no variable of the run.

        One of more than `most` elements is not looked through for NaN and Inf.
        """
        if not isinstance(value, np.ndarray | np.generic):
            return ShownVariable(name, str(value), 0, evaluate_name=address)
        array = np.asarray(value)
        written = f"{address}[{','.join(map(str, index))}]" if address and index else address
        hint = None if address else _READ_ONLY
        if array.ndim == 0:
            return ShownVariable(name, exact_text(array), 0, described(array), written, presentation_hint=hint)
        reference = self._numbered(
            OpenVariables(
                len(array), lambda begin, end: self._elements(array, address, index, begin, end), array, address, index
            )
        )
        return ShownVariable(
            name,
            _text(array, most),
            reference,
            described(array),
            written,
            indexed_variables=len(array),
            memory_reference=f"tensor-{reference}",
            presentation_hint=hint,
        )

    def _elements(self, array: Array, address: str, index: Indices, begin: int, end: int) -> list[ShownVariable]:
        part = array[begin:end]
        most = _LARGEST_TESTED if part.size <= _LARGEST_PAGE_TESTED else 0
        return [
            self.shown(f"[{number}]", part[number - begin], address, (*index, number), most=most)
            for number in range(begin, end)
        ]

    def memory(self, reference: str, offset: int, count: int) -> tuple[str, int]:
        """Return bytes of a tensor in base64, and how many behind these there are not. UsageError.

        Of very many the first are returned, behind which there are more: a client goes on from there.
        """
        number = reference.removeprefix("tensor-")
        array = self.opened(int(number)).array if number.isdecimal() and len(number) < 19 else None
        if array is None:
            raise UsageError(f"there is no memory '{reference[:60]}' at this stop")
        if array.dtype.kind in "TO":
            raise UsageError("texts have no bytes to show")
        wanted = max(count, 0)
        if offset < 0:
            return "", min(wanted, -offset)
        begin = min(offset, array.nbytes)
        end = min(array.nbytes, begin + min(wanted, _MOST_BYTES))
        first, last = begin // array.itemsize, -(-end // array.itemsize)
        flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
        raw = np.asarray(flat[first:last]).tobytes()[begin - first * array.itemsize :][: end - begin]
        return base64.b64encode(raw).decode(), wanted - len(raw) if end == array.nbytes else 0

    def address(self, reference: int, name: str) -> str:
        """Return how the debugger calls a variable by its name in what is open. UsageError where it has no name."""
        found = self.opened(reference)
        if found.address:
            number = name.strip("[]")
            if (
                not number.isdecimal()
                or len(number) > 18
                or int(number) >= (0 if found.array is None else len(found.array))
            ):
                raise UsageError(f"'{name[:60]}' is no element of {found.address}")
            return f"{found.address}[{','.join(map(str, (*found.index, int(number))))}]"
        for begin in range(0, found.count, MOST):
            for one in found.content(begin, min(begin + MOST, found.count)):
                if one.name == name:
                    if one.evaluate_name:
                        return one.evaluate_name
                    raise UsageError(f"'{name[:60]}' is shown only; change it where it is a value of a frame")
        raise UsageError(f"there is no variable '{name[:60]}' here")


_Late = Callable[[], ShownVariable]
"""A variable that is made when it is shown."""

_READ_ONLY: Final = VariableHint(attributes=("readOnly",))
_VIRTUAL: Final = VariableHint(kind="virtual", attributes=("readOnly",))


def _absent(name: str, why: str, address: str = "") -> ShownVariable:
    """Return a variable without a value; with an address it can be watched, and have a breakpoint."""
    return ShownVariable(name, why, 0, evaluate_name=address, presentation_hint=_VIRTUAL)


def _text(array: Array, most: int) -> str:
    """Return type and shape, numbers as far as there is room, and how many are NaN or infinite; of `most` at most."""
    numbers = numbers_text(array, _ROOM) if array.dtype.names is None else ""
    return f"{described(array)} {numbers}".rstrip() + _non_finite(array, most)


def _non_finite(array: Array, most: int) -> str:
    """Return how many elements are NaN or infinite, of a tensor that is not too large; empty for none."""
    if array.dtype.kind != "f" or array.size > most:
        return ""
    counts = {"NaN": int(np.isnan(array).sum()), "Inf": int(np.isinf(array).sum())}
    return "".join(f"  {count} {kind}" for kind, count in counts.items() if count)


def _texts(facts: Mapping[str, Any]) -> list[ShownVariable]:
    return [ShownVariable(name, str(value), 0, presentation_hint=_READ_ONLY) for name, value in facts.items()]


def _condition(loop: LoopView) -> list[ShownVariable]:
    trip, condition = loop.trip, loop.condition
    most = "any number" if trip.maximum is None else trip.maximum
    facts: dict[str, Any] = {"iterations": trip.executed, "at most": f"{most} ({trip.origin})", "ends": trip.sentence}
    if condition is not None:
        facts |= {"condition": condition.value, "from": condition.origin, "condition says": condition.sentence}
        if condition.upcoming is not None:
            facts["condition of this iteration"] = condition.upcoming
    return _texts(facts)


def _side(branch: BranchView) -> list[ShownVariable]:
    condition = branch.condition
    return _texts({"side": branch.side, "condition": condition.value, "condition says": condition.sentence})
