"""`stepper why`: text, JSON by its schema, the way forward, what differs from a reference, wrong questions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stepper.debug.provenance import answer
from tests.cli.conftest import ROOT, Call
from tests.compare.twins import X, recurrence
from tests.json_answers import checked
from tests.models import Graph, carried, joined, last
from tests.tables import each_row


def given(name: str) -> tuple[Path, str, Path]:
    folder = ROOT / "sample_models" / name
    return folder / "model.xml", "--inputs", folder / "inputs.npz"


def test_an_element_is_followed_to_its_inputs_as_text_and_as_json(call: Call) -> None:
    model, option, inputs = given("for_loop")
    code, out, err = call("why", model, "balance_by_year[2,1]", option, inputs, "-q")
    lines = out.splitlines()
    assert (code, err) == (0, "") and lines[0] == "why balance_by_year[2,1] = 1158"
    assert " input rate f32[3]: 1 of 3 elements: [1] = 0.05" in lines
    assert any(
        line.startswith(" @2 Add 'balance_next'[1] = 1158   sum of balance[1] = 1102 (95.2 %)") for line in lines
    )
    code, out, err = call("why", model, option, inputs, "balance_by_year[2,1]", "--json", "-q")
    data = checked("why", out)
    assert [(one["name"], one["index"]) for one in data["sources"] if one["kind"] == "input"] == [
        ("principal", [1]),
        ("rate", [1]),
    ]
    assert data["chain"][0]["address"] == "years:1[2,1]" and data["chain"][-1]["address"] == "principal[1]"
    assert data["trials"]["tried"] == 2 and data["complete"]


def test_a_script_is_told_where_not_every_source_is_listed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "MOST_ELEMENTS", 2)
    model, option, inputs = given("rwkv_overflow")
    code, out, _ = call("why", model, "wkv[0,3]@8", option, inputs, "--json", "-q")
    data = checked("why", out)
    (tensor,) = [one for one in data["tensors"] if one["kind"] == "input"]
    assert code == 0 and not data["complete"] and tensor["listed"] == 2 < tensor["elements"]
    assert len([one for one in data["sources"] if one["kind"] == "input"]) == 2


def test_where_an_element_goes(call: Call) -> None:
    model, option, inputs = given("for_loop")
    code, out, _ = call("why", model, "principal[1]", option, inputs, "--uses", "--json", "-q")
    data = checked("why", out)
    assert code == 0 and [(one["name"], one["elements"]) for one in data["outputs"]] == [
        ("final_balance", 1),
        ("balance_by_year", 10),
    ]
    code, out, _ = call("why", model, "principal[1]", option, inputs, "--uses", "-q")
    assert " @0 Add 'balance_next'[1], in 10 iterations, the last 9" in out.splitlines()


@each_row(
    ("question", "said"),
    [
        ("nothing_so_called", "there is nothing called 'nothing_so_called'"),
        ("final_balance[9]", "no such element in the shape [3]"),
        ("final_balance[", "final_balance["),
        ("4 iterations", "'years' ran 10 iterations, not 4"),
        ("end of principal", "is no loop"),
        ("balance@77[0]", "iterations 0 to 9 have run here"),
    ],
)
def test_a_question_that_has_no_answer_is_one_message(call: Call, question: str, said: str) -> None:
    model, option, inputs = given("for_loop")
    code, out, err = call("why", model, question, option, inputs, "-q")
    assert code == 2 and not out and said in err and "Traceback" not in err


def test_an_output_is_meant_before_a_loop_of_the_same_name(call: Call, tmp_path: Path) -> None:
    # The loop is called as its second output: `both[1,0]` is the second row, not an element of the last value.
    net = Graph()
    x, body = net.parameter("x", dims=(1,)), net.body()
    state = body.parameter("state", dims=(1,))
    carry = body.result(body.apply("Add", state, state, name="twice"), "carry")
    final, rows = net.loop("both", body, 3, True, [carried(x, state, carry)], [last(carry), joined(carry)])
    net.result(final, "final")
    net.result(rows, "both")
    net.write(tmp_path)
    np.savez(tmp_path / "inputs.npz", x=np.ones(1, np.float32))
    code, out, err = call("why", tmp_path / "model.xml", "both[1]", "--inputs", tmp_path / "inputs.npz", "--json", "-q")
    assert (code, err) == (0, "") and json.loads(out)["value"] == 4.0


def test_with_a_reference_the_path_ends_where_the_difference_begins(call: Call, tmp_path: Path) -> None:
    """A Subtract stands for an Add: the state is 0 in iteration 0, so that iteration 1 is the first that differs."""
    for name, fault in (("ours", "type"), ("theirs", "")):
        (tmp_path / name).mkdir()
        recurrence(fault).write(tmp_path / name)
    np.savez(tmp_path / "x.npz", x=X)
    theirs = tmp_path / "theirs" / "model.xml"
    line = (
        "why",
        tmp_path / "ours" / "model.xml",
        "y@2[0,0]",
        "--inputs",
        tmp_path / "x.npz",
        "--reference",
        theirs,
        "-q",
    )
    code, out, err = call(*line)
    assert code == 0, err
    assert out.splitlines()[-1].endswith("the difference begins here: the reference reads the same")
    code, out, err = call(*line, "--json")
    answer = json.loads(out)
    *others, first = answer["chain"]
    assert first["diverges"] and not any(link["diverges"] for link in others) and answer["sources"] == []
    assert "@1::summed[0,0]" in first["address"]
    values = {part["name"]: part["value"] for part in first["parts"]}
    projected, recurrent = values["xW"], values["hU"]
    assert first["value"] == pytest.approx(projected - recurrent)
    assert first["reference"] == pytest.approx(projected + recurrent)


def test_with_a_reference_only_what_differs_is_followed(call: Call, tmp_path: Path) -> None:
    model, option, inputs = given("for_loop")
    other = dict(np.load(inputs))
    other["rate"] = other["rate"] * np.float32(1.5)
    np.savez(tmp_path / "other.npz", **other)
    recorded = tmp_path / "other.sqlite"
    code, _, err = call(
        "run", model, "--inputs", tmp_path / "other.npz", "--trace", recorded, "--record", "all", "--quiet"
    )
    assert code == 0, err
    code, out, err = call("why", model, "balance_next@0[1]", option, inputs, "--reference", recorded, "--json", "-q")
    assert code == 0, err
    found = {(one["kind"], one["name"]) for one in json.loads(out)["sources"] if one["part"] == "data"}
    assert found == {("input", "rate")}
    code, out, err = call("why", model, "balance@0[0]", option, inputs, "--reference", recorded, "-q")
    assert code == 2 and not out and "'balance@0[0]' does not differ from the reference" in err
