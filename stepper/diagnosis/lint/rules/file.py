"""Rules that the reader of files finds broken; it says what is wrong in words of its own."""

from __future__ import annotations

from typing import Final

from stepper.diagnosis.findings import ERROR
from stepper.diagnosis.rule import FILE, add

_STOPS: Final = "the model cannot be opened"


for _id, _name, _means, _do in (
    (
        "F101",
        "not-an-ir",
        _STOPS,
        "convert or save the model again",
    ),
    (
        "F102",
        "malformed-element",
        _STOPS,
        "write the attribute as the message says",
    ),
    (
        "F105",
        "malformed-constant",
        _STOPS,
        "give element_type, shape, offset and size that agree",
    ),
    (
        "F106",
        "malformed-parameter",
        _STOPS,
        "give element_type and shape, and no input",
    ),
    (
        "F107",
        "malformed-result",
        _STOPS,
        "give the Result one input and at most one output",
    ),
    (
        "F111",
        "input-without-edge",
        _STOPS,
        "add the edge, or leave the port out",
    ),
    (
        "F113",
        "body-missing",
        _STOPS,
        "write the body into the layer",
    ),
    (
        "F103",
        "malformed-port",
        _STOPS,
        "give the port an id, an element type and whole numbers as dims",
    ),
    (
        "F104",
        "malformed-edge",
        _STOPS,
        "let the edge lead from an output port to an input port that are there",
    ),
    (
        "F108",
        "weights-truncated",
        "the Constant has no bytes, or OpenVINO refuses the file",
        "copy the whole .bin, the one that was written with this .xml",
    ),
    (
        "F109",
        "duplicate-layer-id",
        "the later layer takes the place of the first for whoever reads it",
        "give each layer of a graph an id of its own",
    ),
    (
        "F110",
        "unknown-operation",
        "no runtime can compute it without an extension",
        "use a type of the operation set that is named, or a newer one",
    ),
    (
        "F112",
        "cycle",
        "the layers have no order in which to be computed; what goes from one iteration to the next is a back edge",
        "carry the value with a back edge, or cut the edge that was meant otherwise",
    ),
    (
        "P101",
        "unknown-body-layer",
        "the entry connects nothing",
        "let internal_layer_id be the id of a Parameter (input) or Result (output) of the body",
    ),
    (
        "P102",
        "unknown-outer-port",
        "the entry connects nothing",
        "let external_port_id be the index of an input of the layer, from 0",
    ),
    (
        "P103",
        "output-without-entry",
        "the output never has a value",
        "add an <output> to the port map, or remove the port",
    ),
    (
        "P104",
        "entry-without-output",
        "the value of the entry goes nowhere",
        "add the output port, or remove the entry",
    ),
    (
        "P105",
        "control-input-missing",
        _STOPS,
        "connect trip count and condition (inputs 0 and 1 of a Loop), or the condition of an If",
    ),
    (
        "B101",
        "back-edge-from-no-result",
        "OpenVINO refuses the file, and the Parameter keeps its first value",
        "let from-layer be the id of a Result of the body",
    ),
):
    add(_id, _name, FILE, ERROR, "{of_layer}{fault}", _means, _do)
