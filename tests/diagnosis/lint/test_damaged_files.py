"""Files of which any part is missing: lint names an error wherever the reader refuses the file, and never fails."""

from __future__ import annotations

from copy import deepcopy
from itertools import cycle
from pathlib import Path

import pytest
from lxml import etree

from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.rule import Severity
from stepper.diagnosis.texts import headline
from stepper.errors import ModelError
from stepper.ir.reader import read
from tests.diagnosis.lint.rule_examples import sound, weights


def judged(tree: etree._Element, base: str, folder: Path) -> None:
    path = folder / "model.xml"
    path.write_bytes(etree.tostring(tree))
    path.with_suffix(".bin").write_bytes(weights(base))
    found = lint(path)
    assert all(headline(one) for one in found)
    try:
        read(path)
    except ModelError as error:
        assert any(one.severity is Severity.ERROR for one in found), str(error)


@pytest.mark.parametrize("base", ["choosing", "counting", "remembering"])
def test_a_file_without_one_of_its_elements(base: str, tmp_path: Path) -> None:
    whole = etree.fromstring(sound(base).encode())
    for number in range(1, len(list(whole.iter()))):
        tree = deepcopy(whole)
        element = list(tree.iter())[number]
        parent = element.getparent()
        assert parent is not None
        parent.remove(element)
        judged(tree, base, tmp_path)


@pytest.mark.parametrize("base", ["choosing", "counting", "remembering"])
def test_a_file_without_one_of_its_attributes_or_with_another_value(base: str, tmp_path: Path) -> None:
    """Each attribute in one of these ways, in turn: with all four the test takes half a minute."""
    whole = etree.fromstring(sound(base).encode())
    places = [(number, name) for number, element in enumerate(whole.iter()) for name in element.attrib]
    for (number, name), value in zip(places, cycle((None, "99", "-7", "x", None)), strict=False):
        tree = deepcopy(whole)
        element = list(tree.iter())[number]
        if value is None:
            del element.attrib[name]
        else:
            element.set(name, value)
        judged(tree, base, tmp_path)


def test_a_rule_that_fails_on_a_sound_file_is_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only of a file with errors it may be that a rule meets less than it takes for given."""
    (tmp_path / "model.xml").write_text(sound("counting"))
    (tmp_path / "model.bin").write_bytes(weights("counting"))

    def broken(*_arguments: object) -> bool:
        raise LookupError("a fault of ours")

    monkeypatch.setattr("stepper.diagnosis.lint.subjects.LoopSubject.is_read", broken)
    with pytest.raises(LookupError, match="a fault of ours"):
        lint(tmp_path / "model.xml")
    (tmp_path / "model.xml").write_text(sound("counting").replace('internal_layer_id="10"', 'internal_layer_id="11"'))
    assert any(one.rule == "condition-type" for one in lint(tmp_path / "model.xml"))
