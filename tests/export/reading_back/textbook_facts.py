"""What the textbook's figure of a run says, lane by lane, iteration by iteration, held against what it really did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from tests.export.reading_back.drawing import SVG, Drawing, Words
from tests.export.reading_back.model_file import Layer
from tests.export.reading_back.run_facts import RunFigure, ended
from tests.export.reading_back.static_facts import names, same_numbers

_UNDER = 4.6
"""Units from the values above a line to the words at its beginning."""
_LIFTED = 1.0
"""Shapes stand so much higher, because brackets reach below the line of letters."""


def faults(run: RunFigure) -> Iterator[str]:
    """A sentence for each fault."""
    yield from _Textbook(run).faults()


class _Textbook:
    def __init__(self, run: RunFigure) -> None:
        self.run, self.drawing = run, run.drawing
        self.words = list(self.drawing.free)
        heading = next((one for one in self.words if one.text == "iteration"), None)
        row = [] if heading is None else self._row(heading.y, "number")
        self.places = {int(one.text): one.x for one in row if one.text.isdigit()}
        ordered = [self.places[number] for number in sorted(self.places)]
        self.backward = len(ordered) > 1 and ordered[0] > ordered[1]
        if len(ordered) == 1:
            self.backward = any(one.text == "read" for one in self.words)

    def _row(self, y: float, *styles: str) -> list[Words]:
        """The words on a base line, in the order of time."""
        found = [one for one in self.words if abs(one.y - y) < 0.6 and one.style in styles]
        return sorted(found, key=lambda one: one.x)

    def faults(self) -> Iterator[str]:
        if not self.places:
            if self.run.count:
                yield "no iteration is drawn"
            return
        numbers = sorted(self.places)
        ordered = [self.places[number] * (-1 if self.backward else 1) for number in numbers]
        if ordered != sorted(ordered) or numbers[0] != 0 or numbers[-1] != self.run.count - 1:
            yield f"the iterations {numbers} of {self.run.count} are drawn"
            return
        yield from self._left_out(numbers)
        for words in self.words:
            if words.style == "of-carried":
                yield from self._carried(words)
            elif words.text == "read" and words.style == "of-input":
                cuts = [entry.cut for entry in self.run.body.inputs if entry.cut is not None]
                if not self.backward or not all(cut.stride < 0 for cut in cuts):
                    yield "slices are said to be read from the last one on"
            elif words.style in ("of-input", "of-output") and not words.text.startswith("the same in"):
                yield from self._strip(words)
        yield from self._condition()
        yield from self._headline()

    def _left_out(self, numbers: list[int]) -> Iterator[str]:
        missing = sorted(set(range(self.run.count)) - set(numbers))
        heading = next(one for one in self.words if one.text == "iteration")
        said = [one for one in self._row(heading.y, "aside") if one is not heading]
        wanted = "" if not missing else str(missing[0]) if len(missing) == 1 else f"{missing[0]} to {missing[-1]}"
        if [one.text for one in said] != [wanted] * bool(missing):
            yield f"the iterations {missing} are left out: {[one.text for one in said]}"

    def _before(self, words: Words, found: list[Words]) -> int:
        """The iteration that a value between cells enters."""
        sign = -1 if self.backward else 1
        after = [number for number, x in self.places.items() if (x - words.x) * sign > 0]
        if not after:
            return self.run.count
        number = min(after)
        earlier = [k for k in self.places if k < number]
        rivals = [one for one in found if min((k for k, x in self.places.items() if (x - one.x) * sign > 0),
                                              default=-1) == number]  # fmt: skip
        nearest = min(rivals, key=lambda one: (self.places[number] - one.x) * sign)
        return number if nearest is words or not earlier else max(earlier) + 1

    def _carried(self, label: Words) -> Iterator[str]:
        name = label.text.strip("|")
        parameters = [
            one for one in self.run.body.graph.of("Parameter")
            if self.run.layer.carried_from(one.id) is not None and names(name, one, self.run.body.graph)
        ]  # fmt: skip
        row = self._row(label.y - _UNDER, "plain", "broken")
        if any(map(self._is_growing, parameters)):
            row = [*row, *self._row(label.y - _UNDER - _LIFTED, "plain", "broken")]
        for words in row:
            number = self._before(words, row)
            values = [self.run.truth.values[number][one.id, 0] for one in parameters if number < self.run.count]
            shapes = {f"[{','.join(map(str, value.shape))}]" for value in values}
            if words.text in shapes and any(map(self._is_growing, parameters)):
                continue
            if not any(tells(words.text, value, is_piece=False) for value in values):
                yield f"iteration {number}: {label.text} is {[value.tolist() for value in values]}, not {words.text}"
        entered = {self._before(words, row) for words in row}
        if not set(self.places) <= entered and not any(map(self._is_in_an_output, parameters)):
            yield f"{label.text} has values of {sorted(entered)} alone"

    def _is_in_an_output(self, parameter: Layer) -> bool:
        """Whether the legend names an output whose pieces a carried value is, one iteration later."""
        lines = ("".join(one.itertext()) for one in self.drawing.root.iter(f"{SVG}text"))
        told = " ".join(line for line in lines if line.startswith("carried: what is in output"))
        values = self.run.truth.values
        for entry in self.run.body.outputs:
            if entry.cut is None or not re.search(rf"\boutput {entry.port}\b", told):
                continue
            pieces = [self.run.value_of(entry.inner, one) for one in values[:-1]]
            carried = [one[parameter.id, 0] for one in values[1:]]
            if all(np.array_equal(a, b, equal_nan=True) for a, b in zip(pieces, carried, strict=True) if a is not None):
                return True
        return False

    def _condition(self) -> Iterator[str]:
        label = next((one for one in self.words if one.text == "goes on"), None)
        row = [] if label is None else self._row(label.y - _UNDER, "plain")
        for words in row:
            number = self._before(words, row)
            starts = self.run.source_value(1) if number == 0 else None
            verdict = self.run.verdict(number - 1) if number else starts is None or bool(np.all(starts))
            if words.text != str(verdict).lower():
                yield f"the condition before iteration {number} is {verdict}, not {words.text}"
        if len(row) and {self._before(words, row) for words in row} < {*self.places, self.run.count} - {0}:
            yield "conditions are missing"

    def _strip(self, label: Words) -> Iterator[str]:
        """The cells of a tensor: one for each iteration, of the last value one alone."""
        cells = [one for one in self.words if one.style in ("plain", "broken", "number")
                 and label.y - 2 < one.y < label.y + 14]  # fmt: skip
        found = {number: one for number, x in self.places.items() for one in cells if abs(one.x - x) < 0.6}
        results = self._results(label)
        if not results:
            yield f"{label.text!r} is neither a slice nor an output"
            return
        line = next((one for one in self._row(label.y, "plain", "broken") if one.x > label.x), None)
        if line is not None:  # a last value alone, in words
            number, _, form = line.text.removesuffix(", the last value").partition(" (")
            last = [value for values in results if set(values) == {self.run.count - 1} for value in values.values()]
            if not any(tells(number, value, is_piece=True) for value in last):
                yield f"{label.text} ends as {[value.tolist() for value in last]}, not {line.text}"
            shapes = {f"[{','.join(map(str, value.shape))}]" for value in last}
            if form and not any(form.removesuffix(")").endswith(shape) for shape in shapes):
                yield f"{label.text} has the shape {shapes}, not {form}"
            return
        for number, words in found.items():
            values = [value for values in results if (value := values.get(number)) is not None]
            if not any(tells(words.text, value, is_piece=True) for value in values):
                yield f"iteration {number}: {label.text} is {[value.tolist() for value in values]}, not {words.text}"
        wanted = [{*values} & {*self.places} for values in results]
        if set(found) not in wanted:
            yield f"{label.text} has cells of {sorted(found)}"

    def _results(self, label: Words) -> list[dict[int, np.ndarray]]:
        """The values by iteration of what a strip may be: slices for a Parameter of that name, or an output."""
        run, body = self.run, self.run.body
        made = []
        if label.style == "of-input":
            return [
                {k: values[entry.inner, 0] for k, values in enumerate(run.truth.values)}
                for entry in body.inputs
                if entry.cut is not None and names(label.text, body.graph.layers[entry.inner], body.graph)
            ]
        for parameter in body.graph.of("Parameter"):  # what grows and does not leave the loop
            result = run.layer.carried_from(parameter.id)
            if result is not None and self._grows(result) and names(label.text, parameter, body.graph):
                pieces = {k: self._piece(result, values) for k, values in enumerate(run.truth.values)}
                made.append({k: value for k, value in pieces.items() if value is not None})
        for entry in body.outputs:
            if label.text.split(" ")[:2] != ["output", str(entry.port)]:
                continue
            pieces = {k: self._piece(entry.inner, values) for k, values in enumerate(run.truth.values)}
            known = {k: value for k, value in pieces.items() if value is not None}
            if entry.cut is None and not self._grows(entry.inner):
                known = {run.count - 1: known[run.count - 1]}
            made.append(known)
        return made

    def _grows(self, result: int) -> bool:
        """Whether a Result is a Concat of what is carried for it with one piece."""
        graph = self.run.body.graph
        source = graph.source(result)
        place = None if source is None or source.type != "Concat" else self._carried_into(source.id, result)
        if source is None or place is None:
            return False
        carried = source.sources[place]
        return len(source.sources) == 2 and sum(one == carried for one in source.sources) == 1

    def _is_growing(self, parameter: Layer) -> bool:
        result = self.run.layer.carried_from(parameter.id)
        return result is not None and self._grows(result)

    def _carried_into(self, concat: int, result: int) -> int | None:
        """The place of the input of a Concat that is the Parameter of the Result's back edge."""
        for place, source in enumerate(self.run.body.graph.layers[concat].sources):
            if source is not None and self.run.layer.carried_from(source[0]) == result:
                return place
        return None

    def _piece(self, result: int, values: dict[tuple[int, int], np.ndarray]) -> np.ndarray | None:
        if not self._grows(result):
            return self.run.value_of(result, values)
        source = self.run.body.graph.source(result)
        assert source is not None
        mine = self._carried_into(source.id, result)
        others = [one for place, one in enumerate(source.sources) if place != mine and one is not None]
        return values.get(others[0])

    def _headline(self) -> Iterator[str]:
        text = next((one.text for one in self.words if one.style == "strong" and one.text != "goes on"), "")
        if not re.search(rf"\b{self.run.count:,} iteration", text):
            yield f"the run made {self.run.count} iterations: {text!r}"
        reasons = {"trip count reached": "trip count"}
        wanted = reasons.get(ended(self.run), ended(self.run))
        if ended(self.run).startswith("condition"):
            if ":" in text and "…" not in text and not self._decides(text.partition(": ")[2]):
                yield f"its condition ended it: {text!r}"
        elif ":" in text and "…" not in text and wanted not in text:
            yield f"it ended: {wanted}: {text!r}"

    def _decides(self, text: str) -> bool:
        """Whether an operation computed false from the values told: `tok' = 12, so NotEqual(tok', 12) is false`.

        Narrow pages leave the operation out.
        """
        told, _, operation = text.partition(", so ")
        numbers = [part.rpartition(" = ")[2] for part in told.split(", ") if " = " in part]
        values = self.run.truth.values[self.run.count - 1] if self.run.count else {}
        if operation and _is_true(dict(part.split(" = ") for part in told.split(", ") if " = " in part), operation):
            return False
        for layer in self.run.body.graph.layers.values():
            result = values.get((layer.id, 0))
            if result is None or result.dtype.kind != "b" or result.size != 1 or result.reshape(-1)[0]:
                continue
            read = [values.get(one) for one in layer.sources if one is not None]
            known = all(any(value is not None and same_numbers(one, value) for value in read) for one in numbers)
            if known and (not operation or any(operation.startswith(f"{kind}(") for kind in _types(layer))):
                return True
        return not self.run.count


_COMPARISON: Final = re.compile(r"(\w+)\((.+), (.+)\) is false")
_COMPARE: Final = {
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
}


def _is_true(numbers: dict[str, str], operation: str) -> bool:
    """Whether `NotEqual(tok, 12) is false` does not hold for the numbers that are told."""
    found = _COMPARISON.match(operation)
    if found is None or found[1] not in _COMPARE:
        return False
    try:
        first, second = (float(numbers.get(name, name)) for name in found.groups()[1:])
    except ValueError:
        return False
    return bool(_COMPARE[found[1]](first, second))


def _types(layer: Layer) -> Iterator[str]:
    """The type of an operation, and those in the sides of an If, which gives on what they give."""
    yield layer.type
    for body in layer.bodies:
        for inner in body.graph.layers.values():
            yield from _types(inner)


def tells(text: str, value: np.ndarray, *, is_piece: bool) -> bool:
    """Whether a word is a value: a scalar itself, of a carried tensor the L2 norm, of a piece the largest element."""
    if value.dtype.kind == "b" and value.size > 1:
        count = int(value.sum())
        return text == ("all true" if count == value.size else f"{count} true")
    if value.dtype.kind not in "fiu":
        return value.dtype.kind != "b" or same_numbers(text, value)
    floats = value.astype(np.float64).reshape(-1)
    broken = int((~np.isfinite(floats)).sum())
    if broken or "NaN" in text or "Inf" in text:
        word = "NaN" if np.isnan(floats).any() else "Inf"
        return bool(broken) and text == (word if floats.size == 1 else f"{broken} {word}")
    if not floats.size:
        return text == "empty"
    number, _, place = text.partition(" at ")
    if place:
        at = int(place)
        return is_piece and at < floats.size and floats[at] == floats.max() and near(number, floats.max())
    return near(number, floats[0] if floats.size == 1 else float(np.linalg.norm(floats)))


def near(text: str, number: float) -> bool:
    """Whether a number is a rounded one, by the digits that are written."""
    text = text.replace("−", "-")
    try:
        said = float(text)
    except ValueError:
        return False
    if "e" in text:
        return bool(np.isclose(said, float(f"{number:.{len(text.partition('e')[0].partition('.')[2])}e}"), rtol=1e-9))
    decimals = len(text.partition(".")[2])
    return abs(said - number) <= 0.5001 * 10**-decimals


def figure_faults(drawing: Drawing) -> Iterator[str]:
    """Words that overlap, are cut by the page, or too small to be read."""
    smallest = 6.9 * drawing.page.width / float(str(drawing.root.get("width")).removesuffix("px") or 1) / 96 * 72
    for words in drawing.words:
        if not words.area.within(drawing.page):
            yield f"the words {words.text!r} leave the page"
        if words.size < min(smallest, 6.9):
            yield f"the words {words.text!r} are {words.size} high"
    shown = list(drawing.words)
    for index, one in enumerate(shown):
        for other in shown[index + 1 :]:
            across, down = one.area.overlap(other.area)
            if across > 0.5 and down > 1.5:
                yield f"the words {one.text!r} and {other.text!r} overlap"
