"""Every kind of bad file: one ModelError that says where and what, on one line and of bounded length."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import stepper
from stepper.errors import ModelError
from tests.ir import tiny_models
from tests.ir.texts import write
from tests.ir.tiny_models import Texts
from tests.tables import each_row

LONGEST_MESSAGE = 1200


def complaint(folder: Path, text: str | bytes, weights: bytes | None = b"") -> str:
    """What reading and compiling says of the file, without the folder's name; checked for form."""
    path = write(folder, text, weights)
    with pytest.raises(ModelError) as caught:
        stepper.compile_model(stepper.read_model(path))
    message = str(caught.value)
    assert re.match(rf"{re.escape(str(path))}(:[1-9][0-9]*)?: ", message), message
    assert "\n" not in message
    assert message.isprintable()
    assert len(message) < LONGEST_MESSAGE + len(str(path))
    return message.removeprefix(str(folder) + "/")


PLAIN, LOOP, ITERATOR, BRANCH = tiny_models.plain, tiny_models.loop, tiny_models.iterator, tiny_models.branch
FIRST_EDGE = '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>'
CONSTANT = '<data element_type="f32" shape="3" offset="0" size="12"/>'
PARAMETER = '<data element_type="f32" shape="3"/>'
ROW = '<input external_port_id="0" internal_layer_id="0" axis="0" start="0" end="-1" stride="1" part_size="1"/>'
ONE_INPUT = '<input><port id="8" precision="FP32"/></input>'
TWO_OUTPUTS = '<output><port id="8" precision="FP32"/><port id="9" precision="FP32"/></output>'
ITERATION = '<data element_type="i64" shape=""/>\n<output>\n<port id="0" precision="I64">\n</port>\n</output>\n'
CONDITION = '<output external_port_id="-1" internal_layer_id="8" purpose="execution_condition"/>'
STATE = '<input external_port_id="2" internal_layer_id="0"/>'

CHANGES: list[tuple[str, Callable[[], Texts], str, str, str]] = [
    # well-formedness and root
    ("an open element", PLAIN, "</edges>", "", "is not well-formed XML"),
    ("an unknown entity", PLAIN, 'name="tiny"', 'name="&name;"', "is not well-formed XML"),
    ("an attribute given twice", PLAIN, 'id="0" name="x"', 'id="0" id="0" name="x"', "is not well-formed XML"),
    ("no version", PLAIN, ' version="11"', "", "<net> has no attribute 'version'"),
    ("a version of letters", PLAIN, 'version="11"', 'version="new"', "'version' of <net> is 'new', expected a 64-bit"),
    ("an old version", PLAIN, 'version="11"', 'version="7"', "the net's version is 7, expected 10 or 11"),
    # layers
    ("a layer without id", PLAIN, 'id="0" name="x"', 'name="x"', "<layer> has no attribute 'id'"),
    ("a layer without name", PLAIN, 'name="x" ', "", "<layer> has no attribute 'name'"),
    ("a layer without type", PLAIN, ' type="Add"', "", "<layer> has no attribute 'type'"),
    ("a layer without version", PLAIN, 'type="Add" version="opset1"', 'type="Add"', "has no attribute 'version'"),
    ("an id of letters", PLAIN, 'id="2" name="sum"', 'id="two" name="sum"', "'id' of <layer> is 'two'"),
    ("an id beyond 64 bits", PLAIN, 'id="2" name="sum"', 'id="9223372036854775808" name="sum"', "'id' of <layer> is"),
    ("an id that is taken", PLAIN, 'id="1" name="three"', 'id="0" name="three"', "the id 0 is taken already by layer"),
    ("an unknown type", PLAIN, 'type="Add"', 'type="Ad"', "has an operation of type 'Ad'; did you mean"),
    ("a type like no other", PLAIN, 'type="Add"', 'type="Xyzzy"', "no operation set has an operation of type 'Xyzzy'"),
    ("an opset too early", BRANCH, "opset8", "opset7", "opset7 has no If; it begins with opset8"),
    # ports
    ("a port without id", PLAIN, '<port id="2" precision="FP32">', '<port precision="FP32">', "no attribute 'id'"),
    ("a negative port id", PLAIN, '<port id="2"', '<port id="-2"', "expected a small non-negative integer"),
    ("a huge port id", PLAIN, '<port id="2"', '<port id="99999999999999999999"', "'id' of <port> is"),
    ("an output without precision", PLAIN, '"2" precision="FP32"', '"2"', "no attribute 'precision'"),
    ("an unknown precision", PLAIN, 'precision="F32"', 'precision="FLOAT"', "'FLOAT' is not an element type"),
    ("a dimension of letters", PLAIN, "<dim>3</dim>", "<dim>many</dim>", "is no integer"),
    ("a dimension beyond 64 bits", PLAIN, "<dim>3</dim>", "<dim>9223372036854775808</dim>", "is out of range"),
    ("a dimension of -2", PLAIN, "<dim>3</dim>", "<dim>-2</dim>", "is out of range"),
    ("an empty dimension", PLAIN, "<dim>3</dim>", "<dim></dim>", "is empty"),
    # edges
    ("an edge from nowhere", PLAIN, 'from-layer="0"', 'from-layer="77"', "this graph has no layer 77"),
    ("an edge to nowhere", PLAIN, 'to-layer="3"', 'to-layer="77"', "this graph has no layer 77"),
    ("an edge from an unknown port", PLAIN, 'from-port="2"', 'from-port="5"', "has no output port 5, only 2"),
    ("an edge into an unknown port", PLAIN, 'to-port="1"', 'to-port="5"', "has no input port 5, only 0, 1"),
    ("an edge without an end", PLAIN, ' to-port="1"', "", "<edge> has no attribute 'to-port'"),
    ("an edge of letters", PLAIN, 'to-port="1"', 'to-port="one"', "'to-port' of <edge> is 'one'"),
    ("the same edge twice", PLAIN, FIRST_EDGE, FIRST_EDGE * 2, "a second edge into input port 0 of layer 2 'sum'"),
    ("two edges into one port", PLAIN, 'to-layer="2" to-port="1"', 'to-layer="2" to-port="0"', "a second edge into"),
    ("a missing edge", PLAIN, FIRST_EDGE, "", "no edge reaches its input port 0"),
    ("a cycle", PLAIN, 'from-layer="0" from-port="0"', 'from-layer="2" from-port="2"', "itself: 2 'sum' -> 2 'sum'"),
    ("a Result of two inputs", PLAIN, '<port id="0" precision="FP32">\n<dim>3</dim>\n</port>\n</input>\n</layer>\n</la',
     '<port id="0"/><port id="1"/>\n</input>\n</layer>\n</la', "has 2 input ports, expected one"),
    ("a Result of two outputs", PLAIN, '<layer id="3" name="out" type="Result" version="opset1">\n',
     f'<layer id="3" name="out" type="Result" version="opset1">\n{TWO_OUTPUTS}', "has 2 output ports, expected one"),
    # constants
    ("a Constant with an input", PLAIN, CONSTANT, f"{CONSTANT}{ONE_INPUT}", "has 1 input ports, expected none"),
    ("no offset", PLAIN, ' offset="0"', "", "<data> has no attribute 'offset'"),
    ("no size", PLAIN, ' size="12"', "", "<data> has no attribute 'size'"),
    ("a constant beyond the file", PLAIN, 'offset="0"', 'offset="1"', "bytes 1 to 13 lie outside model.bin"),
    ("a negative offset", PLAIN, 'offset="0"', 'offset="-1"', "'offset' is '-1', expected a number of bytes"),
    ("an offset of 2**63", PLAIN, 'offset="0"', 'offset="9223372036854775808"', "expected a number of bytes"),
    ("an offset that overflows", PLAIN, 'offset="0"', 'offset="9223372036854775807"', "lie outside model.bin"),
    ("a fractional size", PLAIN, 'size="12"', 'size="12.0"', "'size' is '12.0', expected a number of bytes"),
    ("a size too small", PLAIN, 'size="12"', 'size="11"', "11 bytes are too few for f32[3], which needs 12"),
    ("a huge size", PLAIN, 'size="12"', 'size="9223372036854775807"', "lie outside model.bin"),
    ("a shape too large", PLAIN, CONSTANT, CONSTANT.replace('"3"', '"3000"'), "12 bytes are too few for f32[3000]"),
    ("a shape beyond memory", PLAIN, CONSTANT, CONSTANT.replace('"3"', '"4294967296,4294967296"'), "larger than any"),
    ("a shape of 100 dimensions", PLAIN, CONSTANT, CONSTANT.replace('"3"', f'"3{",1" * 99}"'), "100 dimensions"),
    ("a negative shape", PLAIN, CONSTANT, CONSTANT.replace('"3"', '"-3"'), "is not a list of non-negative integers"),
    ("an open shape", PLAIN, CONSTANT, CONSTANT.replace('"3"', '"1..3"'), "is not a list of non-negative integers"),
    ("a shape of letters", PLAIN, CONSTANT, CONSTANT.replace('"3"', '"three"'), "the shape 'three' is not a list"),
    ("a type of a constant", PLAIN, CONSTANT, CONSTANT.replace("f32", "float"), "the element type 'float' does"),
    ("the unknown type of a constant", PLAIN, CONSTANT, CONSTANT.replace("f32", "dynamic"), "'dynamic' does not exist"),
    # parameters
    ("a Parameter without shape", PLAIN, PARAMETER, '<data element_type="f32"/>', "<data> has no attribute 'shape'"),
    ("a Parameter without type", PLAIN, PARAMETER, '<data shape="3"/>', "<data> has no attribute 'element_type'"),
    ("a Parameter without data", PLAIN, PARAMETER, "", "<data> has no attribute 'element_type'"),
    ("a type of a Parameter", PLAIN, PARAMETER, PARAMETER.replace("f32", "FP32"), "the element type 'FP32' does not"),
    ("a shape of a Parameter", PLAIN, PARAMETER, PARAMETER.replace('"3"', '"3,x"'), "the shape '3,x' cannot be read"),
    ("bounds the wrong way round", PLAIN, PARAMETER, PARAMETER.replace('"3"', '"8..2"'), "'8..2' cannot be read"),
    ("a Parameter of 65 dimensions", PLAIN, PARAMETER, PARAMETER.replace('"3"', f'"3{",1" * 64}"'), "has 65 dim"),
    ("a Parameter with an input", LOOP, ITERATION, ONE_INPUT + ITERATION, "has 1 input ports, expected none"),
    # attributes
    ("an attribute that cannot be", LOOP, 'destination_type="f32"', 'destination_type="real"', "destination_type"),
    # bodies and port maps
    ("an input of no input", ITERATOR, ROW, ROW.replace('id="0" int', 'id="9" int'), "9, from which 'row' is fed"),
    ("an input of nothing", LOOP, STATE, STATE.replace(' external_port_id="2"', ""), "no attribute 'external_port_id'"),
    ("an input into nothing", LOOP, STATE, STATE.replace('layer_id="0"', 'layer_id="77"'), "the body has no layer 77"),
    ("an input into no Parameter", LOOP, STATE, STATE.replace('layer_id="0"', 'layer_id="5"'), "expected a Parameter"),
    ("an output from no Result", LOOP, CONDITION, CONDITION.replace('"8"', '"5"'), "expected a Result"),
    ("an output from nothing", LOOP, CONDITION, CONDITION.replace('"8"', '"77"'), "the body has no layer 77"),
    ("one output too few", ITERATOR, '<output external_port_id="2" internal_layer_id="3"/>', "", "nothing to output"),
    ("one output too many", LOOP, CONDITION, CONDITION + CONDITION.replace("-1", "7"), "has 3 outputs, the layer 2"),
    ("no condition", LOOP, CONDITION, "", 'has purpose="execution_condition", which Loop demands'),
    ("an axis of letters", ITERATOR, 'axis="0"', 'axis="first"', "'axis' of <input> is 'first'"),
    ("a fractional stride", ITERATOR, 'stride="1"', 'stride="1.0"', "'stride' of <input> is '1.0'"),
    ("a stride of 0", ITERATOR, 'stride="1"', 'stride="0"', "stride is 0, so the loop would never advance"),
    ("a part_size of 0", ITERATOR, 'part_size="1"', 'part_size="0"', "part_size is 0, but the stride is 1"),
    ("a back edge from nowhere", LOOP, 'edge from-layer="7"', 'edge from-layer="77"', "the body has no layer 77"),
    ("a back edge from no Result", LOOP, 'edge from-layer="7"', 'edge from-layer="5"', "begins at a Result"),
    ("a back edge without end", LOOP, '<edge from-layer="7" to-layer="0"/>', '<edge from-layer="7"/>', "'to-layer'"),
    ("an iteration number of f32", LOOP, ITERATION, ITERATION.replace("i64", "f32"), "must be i64 or i32, a scalar or"),
    ("an iteration number of rank 2", LOOP, ITERATION, ITERATION.replace('=""', '="1,1"'), "a scalar or of shape [1]"),
    ("a Parameter of an If that nothing feeds", BRANCH, '<input external_port_id="1" internal_layer_id="0"/>', "",
     "is fed by nothing"),
    ("a Loop of one input", LOOP, '<input>\n<port id="0" precision="I64">\n</port>\n<port id="1" precision="BOOL">\n'
     '</port>\n<port id="2" precision="FP32">\n<dim>1</dim>\n</port>\n</input>\n<output>\n<port id="3"',
     '<input>\n<port id="0"/>\n</input>\n<output>\n<port id="3"', "2, from which 'state' is fed, is not an input"),
    ("an operation of no inputs", PLAIN, '<layer id="2" name="sum"', '<layer id="9" name="none" type="Add" version='
     '"opset1"><output><port id="2" precision="FP32"/></output></layer><layer id="2" name="sum"', "has no input ports"),
    ("an operation of too many inputs", PLAIN, '<port id="1" precision="FP32">\n<dim>3</dim>\n</port>\n</input>\n<out',
     '<port id="1"/></input>\n<input><port id="0"/><port id="1"/><port id="8"/></input>\n<out', "port 8"),
]  # fmt: skip


@each_row(("model", "old", "new", "fragment"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_a_bad_file_is_refused_with_its_place(
    tmp_path: Path, model: Callable[[], Texts], old: str, new: str, fragment: str
) -> None:
    text, weights = model()
    assert old in text
    assert fragment in complaint(tmp_path, text.replace(old, new, 1), weights)


RENAMED: list[tuple[str, Callable[[], Texts], str, str, str]] = [
    ("the root", PLAIN, "net", "model", "the root element is <model>, expected <net>"),
    ("the layers", PLAIN, "layers", "nothing", "edge 0:0 -> 2:0: this graph has no layer 0"),
    ("each layer", PLAIN, "layer", "thing", "this graph has no layer 0"),
    ("the edges", PLAIN, "edges", "lines", "no edge reaches its input port 0"),
    ("a body", LOOP, "body", "rump", "has no <body>"),
    ("one side of an If", BRANCH, "else_body", "other", "has no <else_body>"),
    ("the layers of a body", BRANCH, "layers", "nothing", "this graph has no layer"),
    ("the port map of an If", BRANCH, "then_port_map", "map", "the port map of its <then_body> gives nothing"),
    ("the port map of a Loop", LOOP, "port_map", "map", "gives nothing to output port 3, 4"),
    ("the inputs", PLAIN, "input", "in", "has no input port 0, only none"),
    ("the outputs", PLAIN, "output", "out", "has 0 output ports, expected one"),
]


@each_row(("model", "tag", "other", "fragment"), [r[1:] for r in RENAMED], ids=[r[0] for r in RENAMED])
def test_a_file_without_an_element_is_refused(
    tmp_path: Path, model: Callable[[], Texts], tag: str, other: str, fragment: str
) -> None:
    text, weights = model()
    changed = re.sub(rf"(</?){tag}\b", rf"\1{other}", text)
    assert changed != text
    assert fragment in complaint(tmp_path, changed, weights)


def test_a_net_without_layers_is_refused(tmp_path: Path) -> None:
    assert "the net has no layers" in complaint(tmp_path, '<net version="11"/>')


@each_row("text", [b"", b" \n", b"\0" * 100, b"{}", b"<net", bytes(range(256))])
def test_what_is_no_xml_is_refused(tmp_path: Path, text: bytes) -> None:
    assert "is not well-formed XML" in complaint(tmp_path, text)


@each_row(
    ("text", "what"),
    [(b"PK\x03\x04", "is an archive"), (b"\x93NUMPY", "is an array"), (b"SQLite format 3\0", "is a database")],
)
def test_what_is_easily_taken_for_a_model_is_called_by_its_name(tmp_path: Path, text: bytes, what: str) -> None:
    assert f"model.xml: is not a model, it {what}" in complaint(tmp_path, text)


DOCTYPE = '<?xml version="1.0"?>\n\n<!DOCTYPE net [<!ENTITY a "b">]>\n<net name="&a;" version="11"/>'


@each_row("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_document_type_is_refused_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    assert complaint(tmp_path, DOCTYPE.encode(encoding)).startswith("model.xml:3: holds a document type")


@each_row("encoding", ["utf-7", "cp037", "cp1026", "iso2022-kr"])
def test_an_encoding_that_could_hide_a_document_type_is_refused(tmp_path: Path, encoding: str) -> None:
    text = DOCTYPE.replace('"1.0"', f'"1.0" encoding="{encoding}"', 1)
    declaration, rest = text.split("\n", 1)
    hidden = rest.replace("<", "+ADw-").encode() if encoding == "utf-7" else rest.encode(encoding)
    declared = declaration.encode(encoding) if encoding.startswith("cp") else declaration.encode()
    message = complaint(tmp_path, declared + b"\n" + hidden)
    assert "expected UTF-8" in message or "does not begin with '<'" in message


def test_no_file_outside_is_read_through_an_entity(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    text = '<!DOCTYPE net [<!ENTITY s SYSTEM "secret">]><net version="11"><layers>&s;</layers></net>'
    assert "document type" in complaint(tmp_path, text)


def test_elements_nested_100000_deep_are_refused(tmp_path: Path) -> None:
    text = '<net version="11">' + "<a>" * 100_000 + "</a>" * 100_000 + "</net>"
    assert "Excessive depth" in complaint(tmp_path, text)


@each_row("name", ["a" * 10_000_000, "line&#10;break", "&#x9b;31mred", "a\u2028b"])
def test_a_name_of_any_length_and_letters_leaves_the_message_short_and_on_one_line(tmp_path: Path, name: str) -> None:
    text, weights = tiny_models.plain()
    assert "no edge reaches" in complaint(tmp_path, text.replace('"sum"', f'"{name}"').replace(FIRST_EDGE, ""), weights)


@each_row(
    "old",
    ['"Add"', '"f32"', 'shape="3"', 'offset="0"', 'size="12"', '"FP32"', '<dim>3', 'from-layer="0"',
     'to-port="1"', 'version="11"', '<port id="0"', '<edge', "<net"],
)  # fmt: skip
def test_a_value_of_a_megabyte_leaves_the_message_short(tmp_path: Path, old: str) -> None:
    text, weights = tiny_models.plain()
    head, sep = old[: old.rindex('"') if old.endswith('"') else len(old)], '"' * old.endswith('"')
    complaint(tmp_path, text.replace(old, head + "9" * 1_000_000 + sep), weights)


def test_a_layer_inside_loops_600_deep_is_named_in_a_short_message(tmp_path: Path) -> None:
    text, weights = tiny_models.nested(600)
    changed = text.replace('type="Add"', 'type="Gather" version="opset8"', 1)
    changed = changed.replace('"opset8" version="opset1"', '"opset8"')
    assert "has 2 inputs, expected 3" in complaint(tmp_path, changed, weights)


def test_bodies_nested_2000_deep_are_refused(tmp_path: Path) -> None:
    assert "Excessive depth" in complaint(tmp_path, *tiny_models.nested(2000))


@each_row("path", ["missing.xml", "", "a\0b", "model.bin"])
def test_what_cannot_be_opened_is_refused_by_name(tmp_path: Path, path: str) -> None:
    write(tmp_path, *tiny_models.plain())
    with pytest.raises(ModelError) as caught:
        stepper.read_model(tmp_path / path)
    assert "\n" not in str(caught.value)
    assert path[:1] in str(caught.value)


def test_weights_that_are_a_directory_are_refused(tmp_path: Path) -> None:
    text, _ = tiny_models.plain()
    (tmp_path / "model.bin").mkdir()
    path = write(tmp_path, text, None)
    with pytest.raises(ModelError, match=r"model\.bin: cannot be mapped into memory"):
        stepper.read_model(path)
