"""Rules that the reader of files finds broken; it says what is wrong in words of its own."""

from __future__ import annotations

from typing import Final

from stepper.diagnosis.findings import ERROR
from stepper.diagnosis.rule import FILE, Example, Rule, add

_STOPS: Final = "the model cannot be opened"


for _id, _name, _means, _do, _source, _example in (
    (
        "F101",
        "not-an-ir",
        _STOPS,
        "convert or save the model again",
        "semantics 5.1",
        Example("counting", '<net name="counting" version="11">', '<net name="counting" version="9">'),
    ),
    (
        "F102",
        "malformed-element",
        _STOPS,
        "write the attribute as the message says",
        "semantics 5.2",
        Example(
            "counting", 'external_port_id="3" internal_layer_id="2"', 'external_port_id="three" internal_layer_id="2"'
        ),
    ),
    (
        "F105",
        "malformed-constant",
        _STOPS,
        "give element_type, shape, offset and size that agree",
        "semantics 5.7",
        Example("counting", 'shape="" offset="24" size="4"', 'shape="" offset="24" size="2"'),
    ),
    (
        "F106",
        "malformed-parameter",
        _STOPS,
        "give element_type and shape, and no input",
        "semantics 5.6",
        Example(
            "counting",
            'name="h" type="Parameter" version="opset1">\n<data element_type="f32"',
            'name="h" type="Parameter" version="opset1">\n<data element_type="f33"',
        ),
    ),
    (
        "F107",
        "malformed-result",
        _STOPS,
        "give the Result one input and at most one output",
        "semantics 5.2",
        Example(
            "counting",
            'name="y" type="Result" version="opset1">\n<input>',
            'name="y" type="Result" version="opset1">\n<input><port id="1" precision="FP32" />',
        ),
    ),
    (
        "F111",
        "input-without-edge",
        _STOPS,
        "add the edge, or leave the port out",
        "semantics 5.3",
        Example("counting", '<edge from-layer="4" from-port="1" to-layer="9" to-port="1" />', ""),
    ),
    (
        "F113",
        "body-missing",
        _STOPS,
        "write the body into the layer",
        "semantics 6",
        Example("counting", "<body>", "<bodies>", also=(("</body>", "</bodies>"),)),
    ),
    (
        "F103",
        "malformed-port",
        _STOPS,
        "give the port an id, an element type and whole numbers as dims",
        "semantics 5.2",
        Example("counting", 'precision="FP32" names="x"', 'precision="FP31" names="x"'),
    ),
    (
        "F104",
        "malformed-edge",
        _STOPS,
        "let the edge lead from an output port to an input port that are there",
        "semantics 5.3",
        Example(
            "counting",
            '<edge from-layer="2" from-port="0" to-layer="6" to-port="0" />',
            '<edge from-layer="2" from-port="7" to-layer="6" to-port="0" />',
        ),
    ),
    (
        "F108",
        "weights-truncated",
        "the Constant has no bytes, or OpenVINO refuses the file",
        "copy the whole .bin, the one that was written with this .xml",
        "semantics 5.7",
        Example("counting", 'shape="" offset="24" size="4"', 'shape="" offset="2400" size="4"'),
    ),
    (
        "F109",
        "duplicate-layer-id",
        "the later layer takes the place of the first for whoever reads it",
        "give each layer of a graph an id of its own",
        "semantics 6",
        Example("counting", '<layer id="9" name="numbered"', '<layer id="8" name="numbered"'),
    ),
    (
        "F110",
        "unknown-operation",
        "no runtime can compute it without an extension",
        "use a type of the operation set that is named, or a newer one",
        "semantics 5.15",
        Example("counting", 'type="ReduceMax"', 'type="ReduceMaximum"'),
    ),
    (
        "F112",
        "cycle",
        "the layers have no order in which to be computed; what goes from one iteration to the next is a back edge",
        "carry the value with a back edge, or cut the edge that was meant otherwise",
        "semantics 5.3",
        Example(
            "counting",
            '<edge from-layer="2" from-port="0" to-layer="6" to-port="0" />',
            '<edge from-layer="9" from-port="2" to-layer="6" to-port="0" />',
        ),
    ),
    (
        "P101",
        "unknown-body-layer",
        "the entry connects nothing",
        "let internal_layer_id be the id of a Parameter (input) or Result (output) of the body",
        "semantics 5.4",
        Example(
            "counting", 'external_port_id="5" internal_layer_id="12"', 'external_port_id="5" internal_layer_id="99"'
        ),
    ),
    (
        "P102",
        "unknown-outer-port",
        "the entry connects nothing",
        "let external_port_id be the index of an input of the layer, from 0",
        "semantics 5.4",
        Example("counting", 'external_port_id="3" internal_layer_id="2"', 'external_port_id="7" internal_layer_id="2"'),
    ),
    (
        "P103",
        "output-without-entry",
        "the output never has a value",
        "add an <output> to the port map, or remove the port",
        "semantics 2.6",
        Example("counting", '<output external_port_id="4" internal_layer_id="11" />', ""),
    ),
    (
        "P104",
        "entry-without-output",
        "the value of the entry goes nowhere",
        "add the output port, or remove the entry",
        "semantics 2.6",
        Example("counting", '<port id="5" precision="FP32">\n<dim>-1</dim>\n<dim>2</dim>\n</port>', ""),
    ),
    (
        "P105",
        "control-input-missing",
        _STOPS,
        "connect trip count and condition (inputs 0 and 1 of a Loop), or the condition of an If",
        "specification/Loop-5, inputs",
        Example(
            "choosing",
            '<input>\n<port id="0" precision="BOOL" />\n<port id="1" precision="FP32">\n<dim>2</dim>\n</port>'
            "\n</input>",
            "",
        ),
    ),
    (
        "B101",
        "back-edge-from-no-result",
        "OpenVINO refuses the file, and the Parameter keeps its first value",
        "let from-layer be the id of a Result of the body",
        "semantics 4.3",
        Example("counting", '<edge from-layer="11" to-layer="2" />', '<edge from-layer="6" to-layer="2" />'),
    ),
):
    add(Rule(_id, _name, FILE, ERROR, "{of_layer}{fault}", _means, _do, _source, _example))
