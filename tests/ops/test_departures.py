"""What `inspect` says about OpenVINO's departures: only what can show in an operation as the model uses it."""

from __future__ import annotations

from stepper.operation_types import DEFINITIONS
from stepper.ops import departures
from stepper.ops.departures import Use
from tests.tables import each_row


def texts(type: str, version: int = 1, *element_types: str, **attributes: str) -> list[str]:
    return [fact.text for fact in departures.departures([Use(type, version, attributes, frozenset(element_types))])]


def test_a_fact_about_integers_is_not_told_of_floats() -> None:
    assert texts("Equal", 1, "i64", "boolean") == ["integers are computed in f32: beyond 2^24 they are not exact"]
    assert texts("Equal", 1, "f32", "boolean") == []


def test_a_fact_of_one_version_is_told_of_that_one() -> None:
    assert texts("Gather", 8, "f32") == []
    assert texts("Gather", 7, "f32") == ["negative indices give zeros"]


def test_a_fact_about_an_attribute_is_told_where_it_is_set() -> None:
    assert texts("Subtract", 1, "f32") == []
    assert len(texts("Subtract", 1, "f32", auto_broadcast="pdpd")) == 1


def test_facts_come_once_and_by_type() -> None:
    use = Use("Relu", 1, {}, frozenset({"f32"}))
    found = departures.departures([Use("Clamp", 1, {}, frozenset({"f32"})), use, use])
    assert [fact.type for fact in found] == ["Clamp", "Relu"]


@each_row("type", departures.FACTS)
def test_each_fact_is_about_an_operation_that_exists(type: str) -> None:
    assert type in DEFINITIONS
    assert departures.FACTS[type], "at least one"
    for fact in departures.FACTS[type]:
        assert set(fact.versions) <= set(DEFINITIONS[type])
        assert len(fact.text) <= 110
