"""A model with marks for OpenVINO: operations that it leaves in f32 when it computes in fewer bits.

The mark is the attribute `precise` of a layer's rt_info, as OpenVINO writes it for its `DisableFP16Compression`; seen
to be heeded by the CPU of 2026.4 with INFERENCE_PRECISION_HINT f16 and bf16, in bodies of loops, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lxml import etree

from stepper.errors import UsageError
from stepper.files.kinds import IR, IR_SUFFIX, IR_WEIGHTS, WEIGHTS_SUFFIX
from stepper.files.output import OutputFile, ProtectedFiles, writing_all
from stepper.ir.model import LayerSite, Model
from stepper.ir.xml import line_of, parse

_MARK: Final = "precise"
_CHUNK: Final = 2**24


def marked(path: Path, kept: Iterable[LayerSite]) -> bytes:
    """Return the XML of a model with these layers marked; one that is marked already stays as it is. ModelError."""
    net = parse(path)
    wanted = {(layer.line, str(layer.id)) for layer in kept}
    for layer in list(net.iter("layer")):
        if (line_of(layer), layer.get("id")) in wanted:
            found = layer.find("rt_info")
            info = etree.Element("rt_info") if found is None else found
            if found is None:
                layer.insert(0, info)
            if all(one.get("name") != _MARK for one in info.iter("attribute")):
                etree.SubElement(info, "attribute", name=_MARK, version="0")
    return etree.tostring(net, xml_declaration=True, encoding="utf-8")


def marked_files(target: str, protected: ProtectedFiles, option: str) -> tuple[OutputFile, OutputFile]:
    """Return the two files that a model is written to. OutputError where that cannot be."""
    path = Path(target)
    if path.suffix.lower() != IR_SUFFIX:
        raise UsageError(f"{option} {target}: the name of a model ends in {IR_SUFFIX}")
    files = (
        OutputFile(path, IR, protected, option),
        OutputFile(path.with_suffix(WEIGHTS_SUFFIX), IR_WEIGHTS, protected, option),
    )
    for one in files:
        one.check()
    return files


def write_marked(model: Model, kept: Iterable[LayerSite], files: tuple[OutputFile, OutputFile]) -> None:
    """Write a model with these layers marked, and its weights. UsageError for one that is not an IR; OutputError."""
    if model.path.suffix.lower() != IR_SUFFIX:
        raise UsageError(f"{model.path} is not an IR, so that nothing can be marked in it; convert it first")
    content = marked(model.path, kept)
    with writing_all(files) as (graph, weights):
        graph.write(content)
        if model.weights is not None:
            with model.weights.path.open("rb") as source:
                while chunk := source.read(_CHUNK):
                    weights.write(chunk)
