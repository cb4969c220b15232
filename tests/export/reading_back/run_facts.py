"""What the unrolled figure of a run says, and its JSON, held against the file and what the run really did."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.export.reading_back.drawing import Drawing, Item
from tests.export.reading_back.model_file import NO_LIMIT, Cut, Entry, Layer, ModelFile
from tests.export.reading_back.static_facts import names, same_number, same_numbers, says, sentences
from tests.export.reading_back.truth import Activation

TYPES = {"float16": "f16", "float32": "f32", "float64": "f64", "bool": "boolean", "bfloat16": "bf16"}
STAGE = re.compile(r"i(\d+)")
GAP = re.compile(r"e(\d+)")


@dataclass
class RunFigure:
    """An unrolled figure beside the truth: `path` are the ids of the loop. `failed`: the run ended in an error."""

    drawing: Drawing
    model: ModelFile
    path: tuple[int, ...]
    truth: Activation
    failed: bool = False

    def __post_init__(self) -> None:
        self.graph, self.layer = next((graph, layer) for ids, graph, layer in self.model.loops() if ids == self.path)
        self.body = self.layer.bodies[0]
        self.count = self.truth.count
        self.shown = sorted(int(found[1]) for id in self.drawing.frames if (found := STAGE.fullmatch(id)))
        self.gaps = self._gaps()
        self.joins = {(one.source, one.target) for one in self.drawing.joins}

    def _gaps(self) -> dict[str, tuple[int, int]]:
        """The elements that stand for iterations left out: their ranges as they ought to be."""
        ends = [-1, *self.shown, self.count]
        return {f"e{a + 1}": (a + 1, b) for a, b in itertools.pairwise(ends) if b > a + 1}

    @property
    def stages(self) -> list[str]:
        """The ids of the elements of the stack, in order."""
        found = {f"i{number}": number for number in self.shown} | {id: begin for id, (begin, _) in self.gaps.items()}
        return sorted(found, key=found.__getitem__)

    def faults(self) -> Iterator[str]:
        yield from self._stack()
        for number in self.shown:
            if number < self.count:
                yield from self._iteration(number)
                yield from self._sides(number)
        if self.count:
            yield from self._inputs()
            yield from self._carried()
            yield from self._outputs()
        else:
            yield from self._straight_through()
        yield from self._end()

    def _straight_through(self) -> Iterator[str]:
        """Without an iteration the first value of what is carried is the last one, and every output is drawn."""
        for parameter in self.body.graph.of("Parameter"):
            box = self.drawing.boxes.get(f"n{parameter.id}")
            is_carried = self.layer.carried_from(parameter.id) is not None
            if box is None or is_carried != ("first value = last value" in box.lines):
                yield f"{parameter.name} is carried: {is_carried}"
        for entry in self.body.outputs:
            if entry.port is not None and not any(
                one.text.startswith(f"output {entry.port}") for one in self.drawing.free
            ):
                yield f"output {entry.port} is not drawn"

    def _stack(self) -> Iterator[str]:
        if any(number >= self.count for number in self.shown):
            yield f"iterations {self.shown} are drawn, the run made {self.count}"
        gaps = {box.id: box.lines[0] for box in self.drawing.boxes.values() if "ellipsis" in box.classes}
        if set(gaps) != set(self.gaps):
            yield f"iterations are left out in {sorted(gaps)}, they are missing in {sorted(self.gaps)}"
        for id, (begin, end) in self.gaps.items():
            words = gaps.get(id, "")
            numbers = [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", words)]
            if numbers != [end - begin, begin, *([end - 1] if end > begin + 1 else [])]:
                yield f"iterations {begin} to {end - 1} are left out: {words!r}"
        tops = [self._place(id) for id in self.stages]
        if None not in tops and tops != sorted(tops):  # type: ignore[type-var]
            yield "the iterations are not in order"
        for number in self.shown:
            title = self.drawing.frames[f"i{number}"].lines[0]
            if title != f"iteration {number}":
                yield f"iteration {number} is called {title!r}"

    def _place(self, id: str) -> float | None:
        item = self.drawing.frames.get(id) or self.drawing.boxes.get(id)
        return None if item is None else item.area.y

    # --- boxes of an iteration -------------------------------------------------------------------------------------

    def _iteration(self, number: int) -> Iterator[str]:
        own = re.compile(rf"i{number}\.n(\d+)")
        boxes = {int(found[1]): box for id, box in self.drawing.boxes.items() if (found := own.fullmatch(id))}
        seen = {layer for box in boxes.values() for layer in box.layers}
        more = sum(int(count) for box in boxes.values() for count in re.findall(r"; and (\d+) more", box.title))
        drawn = {int(found[1]) for id in self.drawing.frames if (found := re.fullmatch(rf"i{number}\.c(\d+)", id))}
        missing = [one.name for one in self.body.graph.layers.values()
                   if one.id not in seen | drawn and one.type != "Constant"]  # fmt: skip
        if len(missing) > more:
            yield f"iteration {number}: not drawn: {', '.join(missing)}"
        values = self.truth.values[number]
        for key, box in boxes.items():
            where = f"iteration {number}, {self.body.graph.layers[key].name}"
            found = [*self._box(number, self.body.graph.layers[key], box, values)]
            yield from (f"{where}: {fault}" for fault in found)
        yield from self._wires(number, boxes, drawn)

    def _box(self, number: int, layer: Layer, box: Item, values: Mapping[tuple[int, int], np.ndarray]) -> Iterator[str]:
        lines = box.lines[1:]
        if layer.type == "Parameter":
            yield from self._parameter(number, layer, lines)
        if layer.type == "Result":
            yield from self._result(number, layer, lines)
        if len(box.layers) == 1:
            yield from self._value(layer, lines, values)
            yield from self._inner(number, layer, lines)
            if layer.type in ("Parameter", "Result") and not names(box.lines[0], layer):
                yield f"it is called {box.lines[0]!r}"
        if layer.type != "Result":
            yield from self._marks(number, box, values)

    def _parameter(self, number: int, layer: Layer, lines: list[str]) -> Iterator[str]:
        role, entry = self.layer.role(layer.id), self.layer.entry_of(layer.id)
        wanted = {
            "current iteration": f"current iteration: {number}",
            "invariant": "invariant",
            "merged": "initial value" if number == 0 else f"from iteration {number - 1}",
        }.get(role)
        if role == "sliced" and entry is not None and entry.cut is not None:
            extent = self.extent(entry)
            begin, end = entry.cut.range(number, extent)
            wanted = f"[{begin}:{end}] of {extent}, axis {entry.cut.axis % max(1, self._rank(entry))}"
        if wanted is not None and wanted not in lines:
            yield f"it is {role}, {wanted!r}: {lines}"

    def source_value(self, index: int) -> np.ndarray | None:
        """The value that an input of the loop had."""
        source = self.graph.layers[self.layer.id].sources[index]
        if source is None:
            return None
        value = self.truth.outer.get(source)
        layer = self.graph.layers[source[0]]
        return self.model.constant(layer) if value is None and layer.type == "Constant" else value

    def _rank(self, entry: Entry) -> int:
        source = self.source_value(entry.port) if entry.port is not None else None
        return 1 if source is None else source.ndim

    def extent(self, entry: Entry) -> int:
        assert entry.port is not None and entry.cut is not None
        source = self.source_value(entry.port)
        return -1 if source is None else source.shape[entry.cut.axis]

    def _result(self, number: int, layer: Layer, lines: list[str]) -> Iterator[str]:
        for entry in self.body.outputs:
            if entry.inner != layer.id:
                continue
            if entry.port is not None and entry.cut is not None and f"S[{number}] → output {entry.port}" not in lines:
                yield f"its value is piece {number} of output {entry.port}: {lines}"
            if entry.purpose == "execution_condition":
                verdict = self.verdict(number)
                if verdict is not None and f"condition: {str(verdict).lower()}" not in lines:
                    yield f"the condition is {verdict}: {lines}"

    def verdict(self, number: int) -> bool | None:
        result = self.layer.condition
        value = None if result is None else self.value_of(result, self.truth.values[number])
        return None if value is None else bool(np.all(value))

    def value_of(self, result: int, values: Mapping[tuple[int, int], np.ndarray]) -> np.ndarray | None:
        source = self.body.graph.layers[result].sources[0]
        if source is None:
            return None
        layer = self.body.graph.layers[source[0]]
        found = values.get(source)
        return self.model.constant(layer) if found is None and layer.type == "Constant" else found

    def _value(self, layer: Layer, lines: list[str], values: Mapping[tuple[int, int], np.ndarray]) -> Iterator[str]:
        value = self.value_of(layer.id, values) if layer.type == "Result" else values.get((layer.id, 0))
        if value is None:
            return
        form = f"{TYPES.get(value.dtype.name, value.dtype.name[0] + re.sub('[^0-9]', '', value.dtype.name))}"
        form += f"[{','.join(map(str, value.shape))}]"
        at = next((index for index, line in enumerate(lines) if line.split(" ")[0] == form), None)
        if at is None or value.dtype.kind not in "fiub":
            if at is None and any(re.match(r"(?:[fiu]\d+|boolean|bf16)\[[\d,]*\]", line) for line in lines):
                yield f"its value is {form}: {lines}"
            return
        rest = lines[at].partition(" ")[2]
        following = [line for line in lines[at + 1 :] if not line.startswith("! ")]
        said = rest or (following[0] if following else "")
        if said and not _tells(said, value):
            yield f"its value is {excerpt(value)}: {said!r}"

    def _inner(self, number: int, layer: Layer, lines: list[str]) -> Iterator[str]:
        if layer.is_loop:
            counts = self.truth.inner[number].get((layer.id,), [])
            wanted = f"{counts[-1]:,} iteration" if counts else ""
            if counts and not any(line.startswith(wanted) for line in lines):
                yield f"it ran {wanted}s: {lines}"
        if layer.type == "If":
            source = layer.sources[0]
            value = None if source is None else self.truth.values[number].get(source)
            if value is not None:
                side = "then" if bool(np.all(value)) else "else"
                if f"{side} ran" not in lines:
                    yield f"{side} ran: {lines}"

    def _sides(self, number: int) -> Iterator[str]:
        """What frames of sides of Ifs say of whether they ran."""
        for layer in self.body.graph.of("If"):
            value = self.truth.values[number].get(layer.sources[0] or (-1, 0))
            for side in ("then", "else"):
                frame = self.drawing.frames.get(f"i{number}.c{layer.id}.{side}")
                if frame is None or value is None:
                    continue
                wanted = f"{side} {'ran' if bool(np.all(value)) == (side == 'then') else 'did not run'}"
                if frame.lines[0] != wanted:
                    yield f"iteration {number}, {layer.name}: {wanted}: {frame.lines}"

    def _marks(self, number: int, box: Item, values: Mapping[tuple[int, int], np.ndarray]) -> Iterator[str]:
        said = [words.text for words in box.words if words.style == "mark"]
        before = self.truth.values[number - 1] if number else {}
        nan = inf = changed = 0
        for key, value in values.items():
            if key[0] in box.layers and value.dtype.kind == "f":
                nan, inf = nan + int(np.isnan(value).sum()), inf + int(np.isinf(value).sum())
            changed += key[0] in box.layers and key in before and before[key].shape != value.shape
        text = " ".join(said)
        if len(box.layers) == 1 and " in " not in text:
            for count, word in ((nan, "NaN"), (inf, "Inf")):
                if (f"{count} {word}" in text) != bool(count):
                    yield f"it has {nan} NaN and {inf} Inf: {said}"
        elif bool(nan or inf) != bool(re.search("NaN|Inf", text)):
            yield f"it has {nan} NaN and {inf} Inf: {said}"
        if bool(changed) != ("shape" in text):
            yield f"its shape {'changed' if changed else 'is the same'}: {said}"

    # --- wires -----------------------------------------------------------------------------------------------------

    def _wires(self, number: int, boxes: Mapping[int, Item], drawn: set[int]) -> Iterator[str]:
        box_of = {layer: box.id for box in boxes.values() for layer in box.layers}
        box_of |= {layer: f"i{number}.c{layer}" for layer in drawn}
        wanted = set()
        for layer in self.body.graph.layers.values():
            for source in layer.sources:
                if source is not None and source[0] in box_of and layer.id in box_of:
                    wanted.add((box_of[source[0]], box_of[layer.id]))
        got = {(a, b) for a, b in ((self._item(one), self._item(other)) for one, other in self.joins)
               if a and b and a.startswith(f"i{number}.") and b.startswith(f"i{number}.")}  # fmt: skip
        whole = all(len(box.layers) < 12 for box in boxes.values())
        for a, b in sorted({(a, b) for a, b in wanted if a != b} - got):
            yield f"no wire from {a} to {b}"
        ends = {f"i{number}.end"}
        for a, b in sorted({(a, b) for a, b in got if a != b and b not in ends} - wanted) if whole else ():
            yield f"the wire from {a} to {b} stands for nothing"

    def _item(self, id: str) -> str:
        """The box or the outermost frame in an iteration in which an end of a wire stands."""
        found = re.match(r"(i\d+)\.c?(\d+)[te]?\.", id)
        return f"{found[1]}.c{found[2]}" if found else id

    def _at(self, stage: str, layer: int) -> str:
        """Where a wire of a body's layer ends in an element of the stack."""
        return stage if stage in self.gaps else f"{stage}.n{self._box_of(stage, layer)}"

    def _box_of(self, stage: str, layer: int) -> int:
        for id, box in self.drawing.boxes.items():
            if id.startswith(f"{stage}.n") and layer in box.layers:
                return int(id.rpartition("n")[2])
        return layer

    def _needs(self, source: str, target: str, why: str) -> Iterator[str]:
        if (source, target) not in self.joins:
            yield f"no wire from {source} to {target}: {why}"

    def _inputs(self) -> Iterator[str]:
        if not self.stages:
            return
        for parameter in self.body.graph.of("Parameter"):
            role, entry = self.layer.role(parameter.id), self.layer.entry_of(parameter.id)
            if entry is None or role == "current iteration":
                continue
            for stage in self.stages if role == "sliced" else self.stages[:1]:
                yield from self._needs(f"in{entry.port}", self._at(stage, parameter.id), f"{parameter.name} is {role}")
        for id, box in self.drawing.boxes.items():
            if id.startswith("in") and id[2:].isdigit():
                source = self.graph.source(self.layer.id, int(id[2:]))
                if source is not None and not names(box.lines[0], source, self.graph):
                    yield f"input {id[2:]} is {source.name}: {box.lines}"
                yield from self._control(int(id[2:]), box)

    def _control(self, index: int, box: Item) -> Iterator[str]:
        """Trip count and initial condition say what they were."""
        value = self.source_value(index)
        for place, words in ((0, "trip count"), (1, "initial condition")):
            said = next((line for line in box.lines if line.startswith(words)), None)
            if said is None or index != place or value is None:
                continue
            single = value.reshape(-1)[0].item()
            number = said.removeprefix(words).strip(": ").partition(":")[0]
            if not same_number(number, single) and not (single == NO_LIMIT and "no limit" in said):
                yield f"the {words} is {single}: {said!r}"

    def _carried(self) -> Iterator[str]:
        wanted = set()
        for before, after in zip(self.stages, self.stages[1:], strict=False):
            for parameter in self.body.graph.of("Parameter"):
                tail = self.layer.carried_from(parameter.id)
                if tail is not None:
                    wanted.add((self._at(before, tail), self._at(after, parameter.id)))
        got = {(one.source, one.target) for one in self.drawing.joins if one.kind == "carried"}
        for source, target in sorted(wanted - got):
            yield f"no back edge from {source} to {target}"
        for source, target in sorted(got - wanted):
            yield f"the back edge from {source} to {target} stands for nothing"

    def _outputs(self) -> Iterator[str]:
        for entry in self.body.outputs:
            if entry.port is None or (self.failed and entry.cut is None) or not self.count:
                continue
            box = self.drawing.boxes.get(f"out{entry.port}")
            if box is None:
                yield f"output {entry.port} is not drawn"
                continue
            if f"output {entry.port}" not in box.lines[0]:
                yield f"output {entry.port} is called {box.lines[0]!r}"
            reader = self.graph.reader(self.layer.id, entry.port)
            named = box.lines[0].partition("→ ")[2]
            if reader is not None and not names(named, reader, self.graph):
                yield f"output {entry.port} goes to {reader.name}: {box.lines[0]!r}"
            stages = self.stages if entry.cut is not None else self.stages[-1:]
            for stage in stages:
                yield from self._needs(self._at(stage, entry.inner), box.id, "it is an output")
            if entry.cut is not None:
                yield from self._joined(entry.inner, entry.cut, box)

    def _joined(self, result: int, cut: Cut, box: Item) -> Iterator[str]:
        text = " ".join(box.lines[1:])
        if re.search(rf"axis {cut.axis}\b", text) is None:
            yield f"{box.id} is joined along axis {cut.axis}: {text!r}"
        order = [int(number) for number in re.findall(r"S\[(\d+)\]", text)]
        first, last = (self.count - 1, 0) if cut.stride < 0 else (0, self.count - 1)
        if order and (order[0], order[-1]) != (first, last):
            yield f"the pieces go from S[{first}] to S[{last}]: {text!r}"
        pieces = [self.value_of(result, values) for values in self.truth.values]
        known = [piece for piece in pieces if piece is not None]
        shape = re.search(r" \[([\d,]*)\]$", text)
        if shape is not None and len(known) == self.count and known[0].ndim:
            whole = list(known[0].shape)
            whole[cut.axis] = sum(piece.shape[cut.axis] for piece in known)
            if shape[1] != ",".join(map(str, whole)):
                yield f"the whole is {whole}: {text!r}"

    def _end(self) -> Iterator[str]:
        box = self.drawing.boxes.get("end")
        lines = [one.text for one in self.drawing.free] if box is None else box.lines
        if not self.count:
            if not any(line.endswith("not run") for line in lines):
                yield f"the run made no iteration: {lines}"
        elif box is None:
            yield "there is no end mark"
        elif not box.lines[0].startswith(f"after {self.count:,} iteration") and not box.lines[0].startswith(
            f"after {self.count} iteration"
        ):
            yield f"the run made {self.count} iterations: {box.lines}"
        if not self.failed:
            wanted = ended(self)
            if not any(wanted in line for line in lines):
                yield f"it ended: {wanted}: {lines}"
        for words in sentences(self.model, self.graph, self.layer):
            if not any(says(one.text, words) for one in self.drawing.free):
                yield f"nothing below says {words!r}"

    # --- JSON ------------------------------------------------------------------------------------------------------

    def json_faults(self, text: str) -> Iterator[str]:
        """What is wrong in the JSON of the same export."""
        data = json.loads(text)
        if data["iterations"] != self.count or data["loop"]["name"] != self.layer.name:
            yield f"{data['iterations']} iterations of {data['loop']['name']}"
        numbers = [step["iteration"] for step in data["trace"]]
        if numbers != self.shown:
            yield f"JSON has iterations {numbers}, the figure {self.shown}"
        if [tuple(pair) for pair in data["left_out"]] != [(begin, end - 1) for begin, end in self.gaps.values()]:
            yield f"JSON leaves out {data['left_out']}, the figure {self.gaps}"
        edges = {(edge["from"], edge["to"]) for edge in data["back_edges"]}
        carried = {(self.layer.carried_from(one.id), one.id) for one in self.body.graph.of("Parameter")}
        if edges != {(tail, head) for tail, head in carried if tail is not None}:
            yield f"JSON has the back edges {sorted(edges)}"
        for step in data["trace"]:
            if step["iteration"] < self.count:
                yield from (f"JSON, iteration {step['iteration']}: {fault}" for fault in self._step(step))

    def _step(self, step: Mapping[str, Any]) -> Iterator[str]:
        number = step["iteration"]
        if step["condition"] is not None and step["condition"] != self.verdict(number):
            yield f"the condition is {self.verdict(number)}, not {step['condition']}"
        slices = {(one["parameter"], one["begin"], one["end"], one["extent"]) for one in step["slices"]}
        wanted = set()
        for parameter in self.body.graph.of("Parameter"):
            entry = self.layer.entry_of(parameter.id)
            if entry is not None and entry.cut is not None and self.layer.role(parameter.id) == "sliced":
                extent = self.extent(entry)
                wanted.add((parameter.id, *entry.cut.range(number, extent), extent))
        if slices != wanted:
            yield f"the slices are {sorted(wanted)}, not {sorted(slices)}"
        values = dict(self.truth.values[number])
        for one in step["values"]:
            key = (one["layer"]["id"], one["output"])
            value = values.pop(key, None)
            if value is None:
                yield f"there is no value {key}"
            elif not _is_measured(one, value):
                yield f"{one['layer']['name']} is {excerpt(value)}, not {one}"
        left = [key for key in values if self.body.graph.layers[key[0]].type not in ("Constant", "Result")]
        if left:
            yield f"the values {left} are missing"


def ended(figure: RunFigure) -> str:
    """Why a run ended, as the file and its values say."""
    layer, count = figure.layer, figure.count
    if layer.type == "TensorIterator":
        return "every slice was used"
    limit, starts = figure.source_value(0), figure.source_value(1)
    if limit is not None and limit.reshape(-1)[0] == 0:
        return "trip count is 0"
    if starts is not None and not bool(np.all(starts)):
        return "condition was false at the start"
    if limit is not None and limit.reshape(-1)[0] == count:
        return "trip count reached"
    return "condition became false"


def excerpt(value: np.ndarray) -> str:
    return f"{value.dtype}{list(value.shape)} {value.reshape(-1)[:6].tolist()}"


def _tells(text: str, value: np.ndarray) -> bool:
    """Whether a line is a value: all its numbers, or what there is to say of many."""
    floats = value.astype(np.float64)
    finite = floats[np.isfinite(floats)]
    if text == "empty":
        return value.size == 0
    if text == "no finite element":
        return value.size > 0 and finite.size == 0
    single = re.fullmatch(r"all (\S+)", text)
    if single is not None:
        return finite.size > 0 and _close(single[1], finite.min()) and _close(single[1], finite.max())
    several = re.fullmatch(r"(\S+) to (\S+), mean (\S+)", text)
    if several is not None:
        wanted = (finite.min(), finite.max(), finite.mean())
        return all(_close(text, number) for text, number in zip(several.groups(), wanted, strict=True))
    return same_numbers(text, value)


def _close(text: str, number: float) -> bool:
    if text in ("true", "false"):
        return (text == "true") == bool(number)
    return bool(np.isclose(float(text), number, rtol=6e-4, atol=1e-30))


def _is_measured(one: Mapping[str, Any], value: np.ndarray) -> bool:
    if one["shape"] != list(value.shape):
        return False
    if value.dtype.kind not in "fiub":
        return True
    floats = value.astype(np.float64)
    finite = floats[np.isfinite(floats)]
    nan, inf = int(np.isnan(floats).sum()), int(np.isinf(floats).sum())
    if (one["nan"], one["inf"]) != (nan, inf):
        return False
    if one["numbers"] is not None and not same_numbers(one["numbers"], value):
        return False
    if not finite.size:
        return bool(one["min"] is None)
    wanted = {"min": finite.min(), "max": finite.max(), "mean": finite.mean(), "std": finite.std()}
    return all(
        one[key] is not None and np.isclose(float(one[key]), number, rtol=1e-5, atol=1e-6 * max(1, abs(finite).max()))
        for key, number in wanted.items()
    )
