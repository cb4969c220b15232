"""What a figure without a run says, held against the file: boxes, operands, wires, roles, what ends a loop."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.export.reading_back.drawing import Area, Drawing, Item, Wire, Words
from tests.export.reading_back.model_file import NO_LIMIT, Body, Cut, Entry, Graph, Layer, ModelFile

TYPES = {"ReLU": "Relu"}
SIGNS = {"Equal": "=", "NotEqual": "≠", "Less": "<", "LessEqual": "≤", "Greater": ">", "GreaterEqual": "≥"}
LOGICAL = {"LogicalAnd": " and ", "LogicalOr": " or ", "LogicalXor": " xor ", "LogicalNot": "not "}
_THE_SAME = ("Convert", "Reshape", "Squeeze", "Unsqueeze")
"""Operations that leave the truth of their first input."""
"""Types whose name in old files is not that of today."""
FORM = re.compile(r"^(?:[a-z]+[0-9]*|\?)\[[0-9,?.-]*\]$")


def faults(drawing: Drawing, model: ModelFile) -> Iterator[str]:
    """What is wrong in the view of a model, with the bodies that are drawn in it."""
    yield from _Level(drawing, model, model.graph, None, None, "").faults()


def rolled_faults(drawing: Drawing, model: ModelFile, path: tuple[int, ...]) -> Iterator[str]:
    """What is wrong in the view of a loop's body (of an If's sides)."""
    graph, layer = next((graph, layer) for ids, graph, layer in model.loops() if ids == path)
    frame = drawing.frames.get(f"c{layer.id}")
    if frame is None:
        yield f"there is no frame for {layer.name}"
        return
    yield from _lines_on_the_end(frame.lines, model, graph, layer)
    yield from port_faults(drawing, model, graph, layer, "")
    yield from _outside_of_body(drawing, graph, layer)
    for body in layer.bodies:
        yield from _Level(drawing, model, body.graph, layer, body, inner_prefix("", layer, body), graph).faults()


def inner_prefix(prefix: str, layer: Layer, body: Body) -> str:
    return f"{prefix}{layer.id}{body.role[0] if len(layer.bodies) > 1 else ''}."


def names(text: str, layer: Layer, graph: Graph | None = None) -> bool:
    """Whether a text that may be shortened names a layer, and perhaps Constants that it reads in its graph."""
    whole = f"{layer.type} {layer.name}"
    for source in layer.sources if graph is not None else ():
        read = None if source is None or graph is None else graph.layers[source[0]]
        whole += f" {read.name}" if read is not None and read.type == "Constant" else ""
    return all(piece.strip() in whole for piece in re.split(r"[…/ (),]", re.sub(r" #\d+$", "", text)))


class _Level:
    """One graph of the model, drawn in boxes whose ids begin with `prefix`; `layer` is the loop or If around it."""

    def __init__(
        self,
        drawing: Drawing,
        model: ModelFile,
        graph: Graph,
        layer: Layer | None,
        body: Body | None,
        prefix: str,
        outer: Graph | None = None,
    ) -> None:
        self.drawing, self.model, self.graph, self.layer, self.body = drawing, model, graph, layer, body
        self.prefix, self.outer = prefix, outer
        own = re.compile(rf"{re.escape(prefix)}n(\d+)")
        self.boxes = {int(found[1]): box for id, box in drawing.boxes.items() if (found := own.fullmatch(id))}
        opened = re.compile(rf"{re.escape(prefix)}c(\d+)")
        self.opened = {int(found[1]): frame for id, frame in drawing.frames.items() if (found := opened.fullmatch(id))}
        self.box_of = {key: frame.id for key, frame in self.opened.items()}
        for box in self.boxes.values():
            self.box_of |= dict.fromkeys(box.layers, box.id)
        self.inner = {
            key: [
                _Level(drawing, model, body.graph, inner, body, inner_prefix(prefix, inner, body), graph)
                for body in inner.bodies
            ]
            for key in self.opened
            for inner in (graph.layers[key],)
        }

    def faults(self) -> Iterator[str]:
        yield from self._completeness()
        yield from self._boxes()
        yield from self._joins()
        yield from self._back_edges()
        yield from self._ends()
        for key, frame in self.opened.items():
            inner = self.graph.layers[key]
            if inner.type not in frame.lines[0] or not frame.lines[0].strip("'").endswith(inner.name[-8:]):
                yield f"the frame of {inner.name} is called {frame.lines[0]!r}"
            yield from _lines_on_the_end(frame.lines, self.model, self.graph, inner)
            yield from port_faults(self.drawing, self.model, self.graph, inner, self.prefix)
            for level in self.inner[key]:
                yield from level.faults()

    def _completeness(self) -> Iterator[str]:
        more = sum(int(count) for box in self.boxes.values() for count in re.findall(r"; and (\d+) more", box.title))
        missing = [one for one in self.graph.layers.values() if one.id not in self.box_of and one.type != "Constant"]
        if len(missing) > more:
            yield f"not drawn: {', '.join(one.name for one in missing)}"
        for key in self.boxes:
            if key not in self.graph.layers:
                yield f"the box {self.prefix}n{key} stands for no layer"

    def _boxes(self) -> Iterator[str]:
        for key, box in self.boxes.items():
            if len(box.layers) != 1 or key not in self.graph.layers:
                continue
            layer = self.graph.layers[key]
            if layer.type in ("Parameter", "Result") and not names(box.lines[0], layer):
                yield f"the box of {layer.name} is called {box.lines[0]!r}"
            yield from self._operands(box, layer)
            yield from self._constant_result(box, layer)
            yield from self._port(box, layer)

    def _operands(self, box: Item, layer: Layer) -> Iterator[str]:
        label = box.lines[0].partition(" · ")[0]
        if layer.type == "Constant":
            value = self.model.constant(layer)
            if value is not None and not _is_operand(label, layer, value):
                yield f"the Constant {layer.name} is written {label!r}"
            return
        found = re.fullmatch(r"([\w.]+)\((.*)\)", label)
        if found is None or found[1] != layer.type or "…" in found[2]:
            return
        written = re.split(r", (?![^\[]*\])", found[2])
        sources = [None if one is None else self.graph.layers[one[0]] for one in layer.sources]
        for text, source in zip(written, sources, strict=False):
            if source is None:
                if text:
                    yield f"{layer.name}: an operand {text!r} is not connected"
            elif source.type != "Constant":
                if text != "·":
                    yield f"{layer.name}: the operand {text!r} comes from {source.name}"
            else:
                value = self.model.constant(source)
                if value is not None and not _is_operand(text, source, value):
                    yield f"{layer.name}: the operand {text!r} is the Constant {source.name}"

    def _constant_result(self, box: Item, layer: Layer) -> Iterator[str]:
        """A Result of a Constant that has no box says what that is."""
        source = self.graph.source(layer.id) if layer.type == "Result" else None
        content = None if source is None or source.type != "Constant" else self.model.constant(source)
        told = next((line.removeprefix("= ") for line in box.lines[1:] if line.startswith("= ")), None)
        if source is not None and content is not None and source.id not in self.boxes:
            if told is None or not _is_operand(told, source, content):
                yield f"{layer.name} is {content.tolist()}: {box.lines}"
        elif told is not None:
            yield f"{layer.name} is no constant: {box.lines}"

    def _port(self, box: Item, layer: Layer) -> Iterator[str]:
        """The role of a Parameter or Result, and what it is connected with outside."""
        if self.layer is None or self.body is None or not self.layer.is_loop:
            return
        lines = " | ".join(box.lines[1:])
        if layer.type == "Parameter":
            role = self.layer.role(layer.id)
            if not says_role(lines, role) and role != "not connected":
                yield f"{layer.name} is {role}: {lines!r}"
            entry = self.layer.entry_of(layer.id)
            if entry is not None and role != "current iteration":
                yield from self._outside(layer, entry, lines)
        if layer.type == "Result":
            yield from self._result(layer, lines)

    def _outside(self, layer: Layer, entry: Entry, lines: str) -> Iterator[str]:
        if entry.cut is not None and not says_cut(lines, entry.cut):
            yield f"{layer.name} is cut {entry.cut}: {lines!r}"
        assert self.layer is not None and entry.port is not None
        source = None if self.outer is None else self.outer.source(self.layer.id, entry.port)
        named = lines.rpartition("← ")[2].partition(" | ")[0]
        if source is not None and ("←" not in lines or not self._named(named, source)):
            yield f"{layer.name} comes from {source.name}: {lines!r}"

    def _named(self, text: str, source: Layer) -> bool:
        return self.outer is not None and names(text, source, self.outer)

    def _result(self, layer: Layer, lines: str) -> Iterator[str]:
        assert self.body is not None and self.layer is not None
        for entry in self.body.outputs:
            if entry.inner != layer.id:
                continue
            if entry.purpose == "execution_condition" and "condition" not in lines:
                yield f"{layer.name} is the condition: {lines!r}"
            if entry.port is None:
                continue
            line = next((one for one in lines.split(" | ") if f"→ output {entry.port}" in one), None)
            if line is None:
                yield f"{layer.name} is output {entry.port}: {lines!r}"
            if line is None or entry.purpose:
                continue
            if entry.cut is not None and not (says_cut(line, entry.cut) and "concatenated" in line):
                yield f"{layer.name} is joined {entry.cut}: {lines!r}"
            if entry.cut is None and "last value" not in line:
                yield f"{layer.name} is a last value: {lines!r}"
            reader = None if self.outer is None else self.outer.reader(self.layer.id, entry.port)
            said = line.partition(f"→ output {entry.port}")[2].strip(" '")
            if reader is not None and (said != "" and self._named(said, reader)) is not (reader.type == "Result"):
                yield f"{reader.type} {reader.name} reads output {entry.port} of {self.layer.name}: {line!r}"

    # --- wires -----------------------------------------------------------------------------------------------------

    def _joins(self) -> Iterator[str]:
        """Wires from box to box; those into and out of an opened layer go through to its Parameters and Results."""
        wanted = {
            (one, other)
            for layer in self.graph.layers.values()
            for index, source in enumerate(layer.sources)
            if source is not None
            for one in self._begins(*source)
            for other in self._enters(layer.id, index)
            if one != other
        }
        inner = [level for levels in self.inner.values() for level in levels]
        ends = {box.id: self for box in self.boxes.values()} | {
            box.id: one for one in inner for box in one.boxes.values()
        }
        got = {
            (join.source, join.target)
            for join in self.drawing.joins
            if join.kind in ("data", "port") and join.source in ends and join.target in ends
            if ends[join.source] is self or ends[join.target] is not ends[join.source]
        }
        for source, target in sorted(wanted - got):
            yield f"no wire from {source} to {target}"
        whole = all(len(box.layers) < 12 for level in (self, *inner) for box in level.boxes.values())
        for source, target in sorted(got - wanted) if whole else ():
            yield f"the wire from {source} to {target} stands for nothing"

    def _begins(self, layer: int, output: int) -> list[str]:
        """The boxes that a tensor comes from."""
        if layer not in self.opened:
            return [self.box_of[layer]] if layer in self.box_of else []
        return [
            level.box_of[entry.inner]
            for level in self.inner[layer]
            for entry in level.body.outputs
            if entry.port == output
        ]

    def _enters(self, layer: int, index: int) -> list[str]:
        """The boxes that an input of a layer leads to."""
        if layer not in self.opened:
            return [self.box_of[layer]] if layer in self.box_of else []
        return [
            level.box_of[entry.inner]
            for level in self.inner[layer]
            for entry in level.body.inputs
            if entry.port == index
        ]

    def _back_edges(self) -> Iterator[str]:
        loop = self.layer if self.layer is not None and self.layer.is_loop and self.body is not None else None
        wanted = set()
        for tail, head in [] if loop is None or self.body is None else self.body.back:
            ends = self.box_of.get(tail), self.box_of.get(head)
            if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
                has_effect = loop is not None and loop.carried_from(head) == tail
                wanted.add(("back" if has_effect else "no-effect", *ends))
        own = re.compile(rf"{re.escape(self.prefix)}n\d+")
        got = {(one.kind, one.source, one.target) for one in self.drawing.joins if one.kind in ("back", "no-effect") and
               own.fullmatch(one.source) and own.fullmatch(one.target)}  # fmt: skip
        if wanted != got:
            yield f"back edges {sorted(got)}, the file has {sorted(wanted)}"

    def _ends(self) -> Iterator[str]:
        """The condition Result that can become false leads to an end mark."""
        marks = {box.id for box in self.drawing.boxes.values() if box.id == f"{self.prefix}end"}
        if self.layer is None or not self.layer.is_loop or self.layer.type != "Loop":
            if marks:
                yield f"{self.prefix}end marks the end of no Loop"
            return
        result = self.layer.condition
        source = None if result is None else self.graph.source(result)
        expected = source is not None and source.type != "Constant"
        joined = {(one.source, one.target) for one in self.drawing.joins if one.kind == "ends"}
        if expected and result is not None:
            box = self.box_of[result]
            left = any(tail == result for tail, _ in self.body.back) if self.body is not None else False
            if not left and (box, f"{self.prefix}end") not in joined:
                yield f"no dotted wire from {box} to an end mark"
        if marks and not expected:
            yield f"{self.prefix}end marks the end of a loop that its condition never ends"


def says_role(lines: str, role: str) -> bool:
    return role in lines or (role == "merged" and "carried" in lines)


def says_cut(lines: str, cut: Cut) -> bool:
    """Whether axis, direction and all that is not usual is said; `start S, end E` in full or `S to E` in short."""
    if not re.search(rf"axis {cut.axis}\b", lines) or ("reversed" in lines and cut.stride > 0):
        return False
    if cut.stride < 0 and "reversed" not in lines and f"stride {cut.stride}" not in lines:
        return False
    usual = (0, -1) if cut.stride >= 0 else (-1, 0)
    if (cut.start, cut.end) != usual and not re.search(
        rf"{cut.start} to {cut.end}\b|start {cut.start}, end {cut.end}\b", lines
    ):
        return False
    return abs(cut.stride) == 1 or (f"stride {cut.stride}" in lines and f"part_size {cut.part}" in lines)


def _is_operand(text: str, constant: Layer, value: np.ndarray) -> bool:
    """Whether a text is the numbers of a Constant, or its type and shape after its name."""
    form = text.rpartition(" ")[2]
    if FORM.fullmatch(form):
        shape = ",".join(map(str, value.shape))
        return form == f"{constant.data['element_type']}[{shape}]"
    return same_numbers(text, value)


def same_numbers(text: str, value: np.ndarray) -> bool:
    """Whether all numbers of an array are written, each to four digits, or those before and after an ellipsis."""
    first, gap, last = (part.split() for part in text.replace("[", " ").replace("]", " ").partition("…"))
    flat = value.reshape(-1).tolist()
    if len(first) + len(last) + bool(gap) > len(flat) or (not gap and len(first) < len(flat)):
        return False
    return all(map(same_number, first, flat)) and all(map(same_number, last[::-1], flat[::-1]))


def same_number(text: str, value: object) -> bool:
    if isinstance(value, bool) or text in ("true", "false"):
        return text == str(bool(value)).lower()
    try:
        number = float(text.replace("−", "-"))
    except ValueError:
        return False
    wanted = float(value) if isinstance(value, int) else float(f"{value:.4g}")
    return number == wanted or (np.isnan(number) and np.isnan(wanted))


# --- ports on frames -----------------------------------------------------------------------------------------------


def port_faults(drawing: Drawing, model: ModelFile, graph: Graph, layer: Layer, prefix: str) -> Iterator[str]:
    """The words beside each port on a frame are those of what its wires lead to."""
    frame = drawing.frames[f"{prefix}c{layer.id}"]
    for port in drawing.ports:
        middle = port.y + port.height / 2
        if not frame.area.holds(port.x + port.width / 2, middle, 1):
            continue
        near = [(min(abs(one.area.right - port.x), abs(one.area.x - port.right)), one.text) for one in drawing.free
                if abs(one.y - middle) < 20 and _index(one.text, layer) is not None]  # fmt: skip
        gap, words = min(near, default=(99.0, ""))
        words = words if gap < 12 else ""
        if abs(middle - frame.area.y) < 1:
            yield from _input_port(drawing, model, graph, layer, port, words)
            yield from _fed_port(drawing, graph, layer, prefix, port, words)
        elif abs(middle - frame.area.bottom) < 1:
            yield from _output_port(drawing, layer, port, words)


def _input_port(
    drawing: Drawing, model: ModelFile, graph: Graph, layer: Layer, port: Area, words: str
) -> Iterator[str]:
    index = _index(words, layer)
    if index is None:
        yield f"a port of {layer.name} is called {words!r}"
        return
    source, value = graph.source(layer.id, index), words.partition(" = ")[2]
    if "'" in words and source is not None and not names(words.partition("'")[2].rstrip("'"), source, graph):
        yield f"input {index} of {layer.name} is {source.name}: {words!r}"
    content = model.constant(source) if source is not None and source.type == "Constant" else None
    if value and source is not None and content is not None and not _is_operand(value, source, content):
        yield f"input {index} of {layer.name} is {content.tolist()}: {words!r}"
    inside = [entry.inner for body in layer.bodies for entry in body.inputs if entry.port == index]
    for wire in drawing.wires:
        if wire.kind == "port" and any(port.holds(*end) and _goes_down(wire, end) for end in wire.ends):
            for tip in wire.tips:
                entered = drawing.entered(tip, wire)
                if entered in drawing.boxes and not set(drawing.boxes[entered].layers) & set(inside):
                    yield f"{words!r} of {layer.name} leads to {entered}"


def _fed_port(drawing: Drawing, graph: Graph, layer: Layer, prefix: str, port: Area, words: str) -> Iterator[str]:
    """The wire that comes from outside to an input begins at its source."""
    index = _index(words, layer)
    source = None if index is None else graph.source(layer.id, index)
    for wire in drawing.wires:
        if source is None or not any(port.holds(*end) and not _goes_down(wire, end) for end in wire.ends):
            continue
        begun = [drawing.left(*end) for end in wire.tails if not port.holds(*end)]
        for box in (drawing.boxes[id] for id in begun if id in drawing.boxes):
            number = box.id.removeprefix("in")
            own = source.id in box.layers if not number.isdigit() else graph.source(layer.id, int(number)) is source
            if not own and box.id.startswith((f"{prefix}n", "in")):
                yield f"{words!r} of {layer.name} comes from {box.id}"


def _output_port(drawing: Drawing, layer: Layer, port: Area, words: str) -> Iterator[str]:
    index = _index(words, layer)
    inside = [entry.inner for body in layer.bodies for entry in body.outputs if entry.port == index]
    if not inside:
        yield f"an output port of {layer.name} is called {words!r}"
    for wire in drawing.wires:
        if any(port.holds(*end) and not _goes_down(wire, end) for end in wire.ends):
            begun = [drawing.left(*end) for end in wire.tails]
            boxes = [drawing.boxes[id] for id in begun if id in drawing.boxes]
            for box in boxes:
                if not set(box.layers) & set(inside):
                    yield f"{words!r} of {layer.name} comes from {box.id}"


def _index(words: str, layer: Layer) -> int | None:
    if words.startswith("trip count"):
        return 0
    if words.startswith("condition"):
        return 0 if layer.type == "If" else 1
    found = re.match(r"(?:input |output )?(\d+)\b", words)
    return int(found[1]) if found else None


def _goes_down(wire: Wire, end: tuple[float, float]) -> bool:
    return any(a == c == end[0] and min(b, d) == end[1] for a, b, c, d in wire.segments)


def _outside_of_body(drawing: Drawing, graph: Graph, layer: Layer) -> Iterator[str]:
    """What stands around a body drawn alone: the sources of its inputs, the readers of its outputs, and their wires."""
    joins = {(one.source, one.target) for one in drawing.joins}
    for body in layer.bodies:
        prefix = inner_prefix("", layer, body)
        box_of = {id: box.id for box in drawing.boxes.values() if box.id.startswith(f"{prefix}n") for id in box.layers}
        for entry in body.inputs:
            outside = f"in{entry.port}"
            if outside in drawing.boxes and (outside, box_of[entry.inner]) not in joins:
                yield f"no wire from {outside} to {box_of[entry.inner]}"
        for entry in body.outputs:
            is_read = any((layer.id, entry.port) in one.sources for one in graph.layers.values())
            if is_read and (box_of[entry.inner], f"out{entry.port}") not in joins:
                yield f"no wire from {box_of[entry.inner]} to output {entry.port}"
    for id, box in drawing.boxes.items():
        if id.startswith("in") and id[2:].isdigit():
            source = graph.source(layer.id, int(id[2:]))
            if source is not None and not names(box.lines[0], source, graph):
                yield f"input {id[2:]} is {source.name}: {box.lines}"


# --- what begins and ends a loop -----------------------------------------------------------------------------------


def _lines_on_the_end(lines: list[str], model: ModelFile, graph: Graph, layer: Layer) -> Iterator[str]:
    for words in sentences(model, graph, layer):
        if not any(says(line, words) for line in lines):
            yield f"{layer.name}: none of {lines} says {words!r}"


Parts = tuple[str | re.Pattern[str], ...]


def says(line: str, parts: Parts) -> bool:
    """Whether a line has all parts of a sentence."""
    return all(part in line if isinstance(part, str) else part.search(line) for part in parts)


def sentences(model: ModelFile, graph: Graph, layer: Layer) -> list[Parts]:
    """What has to be said on the beginning and the end of a loop (of an If on its condition), each in its parts."""
    if layer.type == "If":
        return [_if_true(model, "then runs if", graph, layer.id, 0)]
    if layer.type == "TensorIterator":
        ports = dict.fromkeys(one.port for one in layer.bodies[0].inputs if one.cut is not None)
        *most, last = [str(port) for port in ports] or [""]
        several = f"inputs {', '.join(most)} and {last} have slices"
        return [(several if most else f"input {last} has slices",)] if ports else [("as its outputs say",)]
    starts, count = _truth(model, graph.source(layer.id, 1)), _value(model, graph.source(layer.id, 0))
    found: list[Parts] = []
    if starts is None:
        found.append(_if_true(model, "starts if", graph, layer.id, 1))
    else:
        found.append(("starts always",) if starts else ("never starts",))
    result = layer.condition
    goes_on = None if result is None else _truth(model, layer.bodies[0].graph.source(result))
    if result is not None and goes_on is None:
        found.append(_if_true(model, "goes on while", layer.bodies[0].graph, result, 0))
    elif result is not None:
        found.append(("no condition ends it",) if goes_on else ("ends after the first iteration",))
    if count is None:
        found.append(("as many iterations as", *_origin(graph, layer.id, 0)))
    elif count < 0 or count == NO_LIMIT:
        found.append(("no limit",))
    else:
        found.append((f"{count:,} iteration",))
    return found


def _origin(graph: Graph, layer: int, index: int) -> tuple[str, ...]:
    source = graph.source(layer, index)
    return () if source is None else (source.name[:20], f"({TYPES.get(source.type, source.type)}")


def _if_true(model: ModelFile, words: str, graph: Graph, layer: int, index: int) -> Parts:
    """The parts of a sentence on what has to be true: an expression and a name, or a name, a type and `is true`."""
    name, *type = _origin(graph, layer, index) or ("",)
    named = ".*".join(map(re.escape, (f"{words} {name}", *type, " is true")))
    source = root = graph.source(layer, index)
    while root is not None and root.type in _THE_SAME:
        root = graph.source(root.id)
    if source is None or root is None:
        return (re.compile(named),)
    beside = rf" \({re.escape(source.name[:20])}"
    if root.type in SIGNS:
        bound = graph.source(root.id, 1)
        is_whole = bound is not None and str(bound.data.get("element_type"))[0] in "iu"
        number = _value(model, bound) if is_whole else None
        right = r"\S.*" if number is None else re.escape(str(number).replace("-", "−"))
        return (re.compile(f"{named}|{words} .* {SIGNS[root.type]} {right}{beside}"),)
    if root.type in LOGICAL:
        return (re.compile(f"{named}|{words} .*{LOGICAL[root.type]}.*{beside}"),)
    return (re.compile(named),)


def _truth(model: ModelFile, source: Layer | None) -> int | None:
    """The value of a Constant that can be a condition."""
    return None if source is None or source.data.get("element_type") != "boolean" else _value(model, source)


def _value(model: ModelFile, source: Layer | None) -> int | None:
    if source is None or source.type != "Constant":
        return None
    found = model.constant(source)
    return None if found is None or found.size != 1 else int(found.reshape(-1)[0])


# --- port maps -----------------------------------------------------------------------------------------------------


def port_map_faults(drawing: Drawing, model: ModelFile, path: tuple[int, ...]) -> Iterator[str]:
    """What is wrong in the view of a port map."""
    graph, layer = next((graph, layer) for ids, graph, layer in model.loops() if ids == path)
    if layer.type == "If":
        yield from _entry_faults(drawing, graph, layer, list(_branch_entries(layer)))
        source = graph.source(layer.id, 0)
        if source is not None and not any(source.name[:20] in one.text for one in drawing.free):
            yield f"nothing says that {source.name} is the condition"
        return
    yield from _lines_on_the_end([one.text for one in drawing.free], model, graph, layer)
    body = layer.bodies[0]
    yield from _entry_faults(drawing, graph, layer, list(_entries(layer)))
    for parameter in body.graph.of("Parameter"):
        box = drawing.boxes.get(f"n{parameter.id}")
        if box is None or (layer.role(parameter.id) == "current iteration") != ("current iteration" in box.lines):
            yield f"{parameter.name} is {layer.role(parameter.id)}: {None if box is None else box.lines}"


@dataclass(frozen=True)
class _Wanted:
    """An entry of a port map: the box of its Parameter or Result, what its other end is, its role, how it cuts."""

    box: str
    inwards: bool
    other: str
    role: str
    cut: Cut | None = None


def _entries(layer: Layer) -> Iterator[_Wanted]:
    """The entries of a loop's port map."""
    body = layer.bodies[0]
    for entry in body.inputs:
        if entry.port is not None:
            role = "current iteration" if entry.purpose else layer.role(entry.inner)
            yield _Wanted(f"n{entry.inner}", True, f"input {entry.port}", role, entry.cut)
    for entry in body.outputs:
        if entry.port is not None:
            word = "condition" if entry.purpose else "concatenated" if entry.cut is not None else "last value"
            yield _Wanted(f"n{entry.inner}", False, f"output {entry.port}", word, entry.cut)
        elif entry.purpose:
            yield _Wanted(f"n{entry.inner}", False, "execution condition", "condition")
    for parameter in body.graph.of("Parameter"):
        tail = layer.carried_from(parameter.id)
        if tail is not None:
            yield _Wanted(f"n{tail}", False, f"next {parameter.id}", "back edge")
    for tail, head in layer.idle_edges():
        yield _Wanted(f"n{tail}", False, f"next {head}", "back edge: no effect")


def _branch_entries(layer: Layer) -> Iterator[_Wanted]:
    for body in layer.bodies:
        for entry in body.inputs:
            yield _Wanted(f"{body.role}.n{entry.inner}", True, f"input {entry.port}", "")
        for entry in body.outputs:
            if entry.port is not None:
                yield _Wanted(f"{body.role}.n{entry.inner}", False, f"output {entry.port}", f"if {body.role} ran")


@dataclass(frozen=True)
class _Drawn:
    """A wire of a list: the box at its one end, the words at its other end, and its title."""

    box: str
    inwards: bool
    words: tuple[str, ...]
    title: str

    def is_of(self, wanted: _Wanted, layer: Layer) -> bool:
        """Whether it is drawn from, or to, what is wanted."""
        if (self.box, self.inwards) != (wanted.box, wanted.inwards):
            return False
        if wanted.other.startswith("next "):
            said = " ".join(self.words)
            name = said.removesuffix(" in the next iteration")
            return name != said and names(name, layer.bodies[0].graph.layers[int(wanted.other[5:])])
        return any(re.match(rf"{wanted.other}\b", line) for line in self.words)


def _drawn_entries(drawing: Drawing) -> Iterator[_Drawn]:
    """The wires of all lists, each with the block of words beside it: lines right below each other."""
    lists: dict[tuple[float, bool], list[tuple[float, str, Wire]]] = {}
    for wire in drawing.wires:
        ((x0, y, x1, _),) = wire.segments
        into = [box.id for box in drawing.boxes.values() if abs(x1 - box.area.x) < 5 and box.area.holds(x1 + 5, y, 1)]
        out = [box.id for box in drawing.boxes.values() if box.area.holds(x0, y, 1)]
        lists.setdefault((x0 if into else x1, bool(into)), []).append((y, (into or out or [""])[0], wire))
    for (x, inwards), wires in lists.items():
        begin = x - 12 if inwards else x + 12
        free = [one for one in drawing.free if abs(one.x - begin) < 4 and one.anchor == ("end" if inwards else "start")]
        blocks: list[list[Words]] = []
        for one in sorted(free, key=lambda one: one.y):
            if one.style == "title":
                continue
            if blocks and one.y - blocks[-1][-1].y < 18:
                blocks[-1].append(one)
            else:
                blocks.append([one])
        for (_, box, wire), block in zip(sorted(wires, key=lambda one: one[0]), blocks, strict=False):
            yield _Drawn(box, inwards, tuple(one.text for one in block), wire.title)


def _entry_faults(drawing: Drawing, graph: Graph, layer: Layer, wanted: list[_Wanted]) -> Iterator[str]:
    drawn = list(_drawn_entries(drawing))
    if len(drawn) != len(wanted):
        yield f"there are {len(drawn)} wires with words, and {len(wanted)} entries"
    for one in wanted:
        found = next((other for other in drawn if other.is_of(one, layer)), None)
        if found is None:
            yield f"no wire is {one}: {drawn}"
            continue
        drawn.remove(found)
        said = f"{found.title} | {' '.join(found.words)}"
        if not says_role(said, one.role):
            yield f"{one} has another role: {said!r}"
        if one.cut is not None and not says_cut(said, one.cut):
            yield f"{one} is cut in another way: {said!r}"
        yield from _outside(found, graph, layer, one.other)


def _outside(drawn: _Drawn, graph: Graph, layer: Layer, other: str) -> Iterator[str]:
    """Names, types and shapes of what is outside."""
    word, _, number = other.partition(" ")
    if word == "input":
        source, given = graph.source(layer.id, int(number)), graph.layers[layer.id].sources[int(number)]
        if source is not None:
            assert given is not None
            if not names(drawn.words[0], source, graph) or _form(*source.forms[given[1]]) not in " ".join(drawn.words):
                yield f"{other} is {source.name} {_form(*source.forms[given[1]])}: {drawn.words}"
    elif word == "output":
        reader, said = graph.reader(layer.id, int(number)), drawn.words[0].partition("→ ")
        if reader is not None and not names(said[2], reader, graph):
            yield f"{other} goes to {reader.name}: {drawn.words}"
        if _form(*layer.forms[int(number)]) not in " ".join(drawn.words):
            yield f"{other} is {_form(*layer.forms[int(number)])}: {drawn.words}"


def _form(element_type: str, dims: tuple[int, ...]) -> str:
    return f"{element_type}[{','.join('?' if size < 0 else str(size) for size in dims)}]"
