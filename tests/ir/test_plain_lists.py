"""Ports, edges and layers are read from the bytes where they are plain: the model and the messages stay the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import stepper
from stepper.errors import ModelError
from stepper.ir.model import Graph
from stepper.ir.xml import PlainLists
from tests.ir import tiny_models
from tests.ir.first_draft import first_draft
from tests.ir.texts import write
from tests.ir.tiny_models import Texts
from tests.tables import each_row

EVERYTHING: list[Callable[[], Texts]] = [
    tiny_models.plain,
    tiny_models.loop,
    tiny_models.iterator,
    tiny_models.branch,
    lambda: tiny_models.nested(3),
    lambda: first_draft(trip_count=3, condition=True),
]
PORT = '<port id="0" precision="F32">\n<dim>3</dim>\n</port>'
EDGE = '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>'
SUM = '<layer id="2" name="sum" type="Add" version="opset1">'
DATA = '<data element_type="f32" shape="3"/>'
WHOLE = f'<layer id="7" name="w" type="Constant" version="opset1">{DATA}</layer>'
FAR_DOWN = "\n" * 70_000


def read(path: Path) -> Graph | str:
    """The whole graph, which has every line in it, or the message."""
    try:
        return stepper.read_model(path).graph
    except ModelError as error:
        return str(error)


def read_both_ways(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str | bytes, weights: bytes) -> Graph | str:
    """What is read of the text, which must be the same where every list is read from the tree."""
    path = write(folder, text, weights)
    given = read(path)
    with monkeypatch.context() as patch:
        patch.setattr(PlainLists, "take_from", lambda self, content: content)
        assert given == read(path)
    return given


def left(text: str) -> str:
    """What the parser is given of the text."""
    return PlainLists().take_from(text.encode()).decode()


@each_row("line_end", ["\n", "\r\n", "\n\n", " \n\t"])
@each_row("before", ["", FAR_DOWN])
@each_row("texts", EVERYTHING)
def test_every_model_is_the_same_both_ways(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, texts: Callable[[], Texts], before: str, line_end: str
) -> None:
    text, weights = texts()
    text = text.replace("<layers>", f"{before}<layers>", 1).replace("\n", line_end)
    assert isinstance(read_both_ways(monkeypatch, tmp_path, text, weights), Graph)


@each_row("before", ["", FAR_DOWN])
@each_row(
    "port",
    [
        PORT.replace("\n", ""),
        PORT.replace("\n", "\n\t\t"),
        PORT.replace("\n", "\r\n"),
        PORT.replace("<dim>", "\n\n\n<dim>"),
        PORT.replace("F32", "FP32"),
        PORT.replace('"F32"', '"F32" names="a,b\\,c>d"'),
    ],
)
def test_plain_ports_never_come_to_the_parser(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: str, before: str
) -> None:
    text, weights = tiny_models.plain()
    text = text.replace(PORT, port).replace("<layers>", f"{before}<layers>", 1)
    assert port in text
    assert "<port" not in left(text) and "<dim" not in left(text)
    graph = read_both_ways(monkeypatch, tmp_path, text, weights)
    assert isinstance(graph, Graph)
    (output,) = graph.by_id[0].outputs
    assert output.dims == (3,)
    assert output.names == (("a", "b,c>d") if "names" in port else ())
    assert output.line == text[: text.index("<port")].count("\n") + 1


def test_plain_scalars_without_an_end_tag_and_unknown_dimensions_are_ports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text, weights = tiny_models.plain()
    text = text.replace(PORT, '<port id="0" precision="I64" />', 1).replace("<dim>3<", "<dim>-1<")
    assert "<port" not in left(text)
    graph = read_both_ways(monkeypatch, tmp_path, text, weights)
    assert isinstance(graph, Graph)
    assert graph.by_id[0].outputs[0].dims == ()
    assert graph.by_id[2].outputs[0].dims == (-1,)


def test_an_input_has_no_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text, weights = tiny_models.plain()
    text = text.replace('precision="FP32"', 'precision="FP32" names="value"')
    assert "names" not in left(text)
    graph = read_both_ways(monkeypatch, tmp_path, text, weights)
    assert isinstance(graph, Graph)
    assert [port.names for port in (*graph.by_id[2].inputs, *graph.by_id[2].outputs)] == [(), (), ("value",)]


@each_row("before", ["", FAR_DOWN])
@each_row("data", [DATA, DATA.replace("/>", " />"), DATA.replace("/>", ' more=""/>'), f"\t{DATA}\n\n"])
def test_plain_layers_never_come_to_the_parser(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: str, before: str
) -> None:
    text, weights = tiny_models.loop()
    text = text.replace(DATA, data).replace("<layers>", f"{before}<layers>", 1)
    assert left(text).count("<layer ") == 1, "the loop alone, which has a body"
    graph = read_both_ways(monkeypatch, tmp_path, text, weights)
    assert isinstance(graph, Graph)
    (loop,) = (layer for layer in graph.layers if layer.bodies)
    for layer in (*graph.layers, *loop.bodies[0].graph.layers):
        assert f'name="{layer.name}"' in text.splitlines()[layer.line - 1]


@each_row("before", ["", FAR_DOWN])
def test_plain_edges_never_come_to_the_parser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: str) -> None:
    text, weights = tiny_models.loop()
    text = text.replace("<layers>", f"{before}<layers>", 1).replace('to-port="1"/>', 'to-port="1" />')
    assert "from-port" not in left(text)
    assert '<edge from-layer="7" to-layer="0"/>' in left(text), "a back edge is in no list of edges"
    graph = read_both_ways(monkeypatch, tmp_path, text, weights)
    assert isinstance(graph, Graph)
    first, second, *_ = graph.edges
    assert first[:4] == (0, 0, 3, 0)
    assert (first.line, second.line) == (text[: text.rindex("<edges>")].count("\n") + 2, first.line + 1)


NOT_PLAIN = [
    ("a comment between ports", PORT, f"{PORT}<!-- another -->"),
    ("text between ports", PORT, f"7{PORT}"),
    ("text that ends as a tag", f"<output>\n{PORT}", f"<output>put>{PORT}"),
    ("a port in a comment", PORT, f"<!--{PORT}-->{PORT}"),
    ("a list in a comment", f"<output>\n{PORT}\n</output>", f"<output>\n<!--<output>{PORT}</output>-->{PORT}</output>"),
    ("a list in CDATA", f"<output>\n{PORT}\n</output>", f"<output><![CDATA[<output>{PORT}</output>]]></output>"),
    ("a list in an instruction", f"<output>\n{PORT}", f"<output>\n<?x <output>{PORT}</output>?>{PORT}"),
    ("a list in a list", f"<output>\n{PORT}", f"<output>\n<output>{PORT}</output>{PORT}"),
    ("two lists", f"<output>\n{PORT}", f"<output>{PORT}</output><output>{PORT}{PORT}"),
    ("an end of another list", f"{PORT}\n</output>", f"{PORT}\n</input>"),
    ("no end of a list", f"{PORT}\n</output>", PORT),
    ("another element", PORT, PORT.replace("</port>", '<rt_info><attribute name="layout"/></rt_info></port>')),
    ("another order", PORT, PORT.replace('id="0" precision="F32"', 'precision="F32" id="0"')),
    ("another attribute", PORT, PORT.replace('id="0"', 'id="0" more="1"')),
    ("an attribute twice", PORT, PORT.replace('id="0"', 'id="0" id="0"')),
    ("other quotes", PORT, PORT.replace('"', "'")),
    ("lines in a tag", PORT, PORT.replace(" precision", "\nprecision")),
    ("an entity", PORT, PORT.replace('"F32"', '"F32" names="a&amp;b,&quot;"')),
    ("letters beyond ASCII", PORT, PORT.replace('"F32"', '"F32" names="grün"')),
    ("an open bracket in a name", PORT, PORT.replace('"F32"', '"F32" names="<input>"')),
    ("a name with a tag's end", PORT, PORT.replace('"F32"', '"F32" names="<input>"').replace("<input>", "input>")),
    ("no precision", PORT, PORT.replace(' precision="F32"', "")),
    ("an unknown precision", PORT, PORT.replace("F32", "FLOAT")),
    ("an undefined precision", PORT, PORT.replace("F32", "UNSPECIFIED")),
    ("a negative id", PORT, PORT.replace('"0"', '"-1"')),
    ("a dimension too low", PORT, PORT.replace("3", "-2", 1)),
    ("a dimension with spaces", PORT, PORT.replace("<dim>3", "<dim> 3")),
    ("a dimension beyond 64 bits", PORT, PORT.replace("<dim>3", "<dim>9999999999999999999")),
    ("a dimension that is open", PORT, PORT.replace("</dim>", "")),
    ("two numbers in a dimension", PORT, PORT.replace("<dim>3", "<dim/><dim>3 4")),
    ("text beside a dimension", PORT, PORT.replace("<dim>", "4<dim>")),
    ("no ports", PORT, ""),
    ("two edges on a line", f"\n{EDGE}\n", f"\n{EDGE} "),
    ("an empty line between edges", f"\n{EDGE}\n", f"\n{EDGE}\n\n"),
    ("a comment between edges", EDGE, f"<!--{EDGE}-->{EDGE}"),
    ("an instruction between edges", EDGE, f"<?x {EDGE}?>{EDGE}"),
    ("edges in a comment", "<edges>", f"<!--<edges>\n{EDGE}\n</edges>--><edges>"),
    ("edges in CDATA", "<edges>", f"<edges><![CDATA[<edges>\n{EDGE}\n</edges>]]>"),
    ("edges in edges", "<edges>", f"<edges>\n<edges>\n{EDGE}\n</edges>"),
    ("edges before edges", "<edges>", f"<edges>\n{EDGE}\n</edges><edges>"),
    ("edges that end as others", "</edges>", "</back_edges>"),
    ("text between edges", EDGE, f"7\n{EDGE}"),
    ("an edge twice", EDGE, f"{EDGE}\n{EDGE}"),
    ("an edge from nowhere", EDGE, EDGE.replace('from-layer="0"', 'from-layer="77"')),
    ("an edge with a sign", EDGE, EDGE.replace('"2"', '"+2"')),
    ("an edge beyond 64 bits", EDGE, EDGE.replace('"2"', '"9223372036854775808"')),
    ("an edge without an end", EDGE, EDGE.replace(' to-port="0"', "")),
    ("a mark of its own", f"<output>\n{PORT}\n</output>", "<output>\x7f0\n\n\n\n</output>"),
    ("a mark in decimal", f"<output>\n{PORT}\n</output>", "<output>&#127;0\n\n\n\n</output>"),
    ("a mark in hexadecimal", f"<output>\n{PORT}\n</output>", "<output>&#x7F;0\n\n\n\n</output>"),
    ("a mark in CDATA", f"<output>\n{PORT}\n</output>", "<output><![CDATA[\x7f0\n\n\n\n]]></output>"),
    ("a mark for edges", "<edges>", f"<edges>\x7f0\n\n\n\n</edges><edges>\n{EDGE}"),
    ("a comment before a layer", SUM, f"<!-- {WHOLE} -->{SUM}"),
    ("a comment in a layer", DATA, f"<!-- {DATA} -->{DATA}"),
    ("an instruction before a layer", SUM, f"<?x {WHOLE}?>{SUM}"),
    ("a layer in CDATA", SUM, f"<![CDATA[{WHOLE}]]>{SUM}"),
    ("text before a layer", SUM, f"7{SUM}"),
    ("a letter that no XML has before a layer", SUM, f"\x0c{SUM}"),
    ("another element before a layer", SUM, f"<more/>{SUM}"),
    ("a layer in another element", SUM, f"<more>{WHOLE}</more>{SUM}"),
    ("a layer in a layer", SUM, f"{SUM}{WHOLE}"),
    ("a layer in a dimension", "<dim>3", f"<dim>{WHOLE}3"),
    ("a layer in a list", "<input>", f"<input>{WHOLE}"),
    ("a layer among edges", "<edges>", f"<edges>{WHOLE}"),
    ("a layer beside layers", "<edges>", f"{WHOLE}<edges>"),
    ("layers twice", "</layers>", f"</layers><layers>{WHOLE}</layers>"),
    ("a mark for layers", SUM, f"\x7fL0{SUM}"),
    ("data twice", DATA, f"{DATA}{DATA}"),
    ("an attribute of data twice", DATA, DATA.replace('shape="3"', 'shape="3" shape="4"')),
    ("a name space", DATA, DATA.replace("<data", '<data xmlns="another"')),
    ("a prefix", DATA, DATA.replace("<data", '<data xmlns:a="b" a:c="d"')),
    ("a prefix that is not declared", DATA, DATA.replace("<data", '<data a:c="d"')),
    ("an entity in data", DATA, DATA.replace('"3"', '"&#51;"')),
    ("an entity that is not declared", DATA, DATA.replace('"3"', '"&three;"')),
    ("no space between attributes", DATA, DATA.replace('" ', '"')),
    ("attributes without a name", DATA, DATA.replace(" shape=", " =")),
    ("a tab in an attribute", DATA, DATA.replace('"3"', '"\t3"')),
    ("data that has something in it", DATA, DATA.replace("/>", ">7</data>")),
    ("outputs before inputs", SUM, f"{SUM}<output>\n{PORT}\n</output>"),
    ("an unknown operation", SUM, SUM.replace("Add", "Addd")),
    ("an operation of an extension", SUM, SUM.replace("opset1", "extension")),
    ("an operation set to come", SUM, SUM.replace("opset1", "opset99").replace("Add", "Addd")),
    ("an operation set without a number", SUM, SUM.replace("opset1", "opset0")),
    ("an operation that comes later", SUM, SUM.replace("Add", "Gelu")),
    ("a loop without a body", SUM, SUM.replace("Add", "Loop").replace("opset1", "opset5")),
    ("a condition without bodies", SUM, SUM.replace("Add", "if").replace("opset1", "opset8")),
    ("an id with a sign", SUM, SUM.replace('"2"', '"+2"')),
    ("an id twice", SUM, SUM.replace('"2"', '"1"')),
    ("no name", SUM, SUM.replace(' name="sum"', "")),
    ("an empty name", SUM, SUM.replace("sum", "")),
    ("a name beyond ASCII", SUM, SUM.replace("sum", "grün")),
    ("a name with a bracket", SUM, SUM.replace("sum", "a>b&lt;")),
    ("another attribute of a layer", SUM, SUM.replace("version", 'more="1" version')),
    ("no end of a layer", SUM, f"{SUM}{SUM}"),
    ("no letter of XML", "<edges>", "<edges>\0"),
    ("a lone carriage return", "<dim>", "\r<dim>"),
]


@each_row("before", ["", FAR_DOWN])
@each_row("old, new", [case[1:] for case in NOT_PLAIN], ids=[case[0] for case in NOT_PLAIN])
def test_what_is_not_plain_is_the_same_both_ways(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, old: str, new: str, before: str
) -> None:
    text, weights = tiny_models.plain()
    assert old in text
    for changed in (text.replace(old, new, 1), text.replace(old, new)):
        changed = changed.replace("<layers>", f"{before}<layers>", 1)
        read_both_ways(monkeypatch, tmp_path, changed, weights)


@each_row("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "iso-8859-1", "windows-1252", "us-ascii"])
def test_every_encoding_is_the_same_both_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, encoding: str) -> None:
    text, weights = tiny_models.plain()
    declared = "utf-16" if encoding.startswith("utf-16") else encoding.removesuffix("-sig")
    text = text.replace('"1.0"', f'"1.0" encoding="{declared}"', 1)
    if encoding != "us-ascii":
        text = text.replace('name="x"', 'name="grün"')
    assert isinstance(read_both_ways(monkeypatch, tmp_path, text.encode(encoding), weights), Graph)


def test_letters_that_look_like_ports_in_utf_16_stay_letters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text, weights = tiny_models.plain()
    letters = f"<output>{PORT}</output>".encode()
    name = (letters + b" " * (len(letters) % 2)).decode("utf-16-le")
    content = text.replace('name="x"', f'name="{name}"').encode("utf-16")
    assert letters in content
    graph = read_both_ways(monkeypatch, tmp_path, content, weights)
    assert isinstance(graph, Graph) and graph.by_id[0].name == name


@each_row("part", ["layer", "input", "output", "port", "edge"])
@each_row("texts", EVERYTHING[:4], quick=1)
def test_damaged_files_are_the_same_both_ways(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, texts: Callable[[], Texts], part: str
) -> None:
    text, weights = texts()
    chance = random.Random(part)
    lines = [number for number, line in enumerate(text.splitlines()) if part in line]
    for _ in range(25):
        changed = text.splitlines(keepends=True)
        number, other = chance.choice(lines), chance.choice(lines)
        line, at = changed[number], chance.randrange(len(changed[number]))
        kinds = [
            "",
            line * 2,
            changed[other],
            line[:at] + line[at + 1 :],
            line[:at] + chance.choice("<>/\"' 7\n-") + line[at:],
        ]
        changed[number] = chance.choice(kinds)
        read_both_ways(monkeypatch, tmp_path, "".join(changed), weights)


def test_long_lists_and_wide_gaps_take_time_by_their_length_alone() -> None:
    """None of these is a list that is taken; a pattern that tried all ways would never come to an end."""
    dims = "<dim>1</dim>" * 20_000
    edges = f"<edges>{EDGE * 9999}</edges>"
    for inside in (dims, " " * 100_000, "<dim>-1</dim>" + "\n" * 100_000, "<dim>1</dim><dim>"):
        ports = f'<port id="0" precision="F32">{inside}</port>' * 3
        text = f'<net version="11"><layers><layer><input>{ports}</input></layer></layers>{edges}</net>'
        assert left(text) == text
