"""All faults of a file in one go: what is wrong is left out, each fault has its line and the rule it breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepper.errors import ModelError
from stepper.ir.reader import read, read_all_faults
from tests.debug.debugged import SAMPLES
from tests.tables import each_row


def test_every_fault_of_a_file_is_kept_with_its_line_and_rule(tmp_path: Path) -> None:
    text = (SAMPLES / "for_loop" / "model.xml").read_text()
    faults = [
        ('type="Result" version="opset1"', 'type="Resultat" version="opset1"', "unknown-operation"),
        ("<back_edges>", '<back_edges><edge from-layer="77" to-layer="1"/>', "back-edge-from-no-result"),
        ("<port_map>", '<port_map><input external_port_id="99" internal_layer_id="1"/>', "unknown-outer-port"),
        ("<port_map>", '<port_map><input external_port_id="x" internal_layer_id="1"/>', "malformed-element"),
        ("<edges>", '<edges><edge from-layer="0" from-port="9" to-layer="1" to-port="0"/>', "malformed-edge"),
    ]
    for right, wrong, _rule in faults:
        assert right in text
        text = text.replace(right, wrong, 1)
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "model.bin").write_bytes((SAMPLES / "for_loop" / "model.bin").read_bytes())
    model, found = read_all_faults(tmp_path / "model.xml")
    assert {rule for *_, rule in faults} <= {fault.rule for fault in found}
    lines = text.splitlines()
    for fault in found:
        assert fault.place is not None and 1 <= fault.place.line <= len(lines)
        if fault.rule == "back-edge-from-no-result":
            assert 'from-layer="77"' in lines[fault.place.line - 1]
    assert [fault.place.line for fault in found if fault.place] == sorted(f.place.line for f in found if f.place)
    assert any(layer.is_loop and layer.bodies[0].back_edges for layer in model.graph.layers), "the rest is read"
    with pytest.raises(ModelError) as first:
        read(tmp_path / "model.xml")
    assert str(first.value) in {str(fault) for fault in found}


@each_row("path", sorted(SAMPLES.glob("*/model.xml")), ids=lambda path: path.parent.name)
def test_a_sound_file_has_none_and_is_the_same_model(path: Path) -> None:
    model, faults = read_all_faults(path)
    assert not faults and model.graph == read(path).graph
