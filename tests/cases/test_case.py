"""Folders as cases: what they have, and what damaged ones say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepper.cases.case import CallTrigger, CaseFacts, cases_in, read_case, trigger_text
from stepper.cli import main
from stepper.errors import InputError, ModelError, UsageError
from stepper.files.file_kinds import is_case
from stepper.ir.reader import read
from tests.tables import each_row


def folder_with(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return folder


def test_a_folder_with_a_model_is_a_case_and_has_what_is_there(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "one", model_xml="", states_npz="")
    case = read_case(folder)
    assert (case.model, case.inputs, case.states) == (folder / "model.xml", None, folder / "states.npz")
    assert (case.outputs, case.facts) == (None, None)


@each_row("word", ["", "nowhere", "model.xml", "a\0b", "x" * 5000])
def test_other_words_name_no_case(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder_with(tmp_path / "one", model_xml=""))
    (tmp_path / "one" / "model.xml").rename(tmp_path / "one" / "other.xml")
    assert not is_case(word)
    with pytest.raises(UsageError, match="is no case"):
        read_case(tmp_path / "one")


@each_row(
    "text",
    [
        "", "{", "[]", "{}", '{"trigger": {"kind": 1}, "call": 1, "request_call": 1}', "[" * 100_000,
        '{"trigger": {"kind": "nan"}, "call": "../../etc", "request_call": 1}', '{"a": "' + "x" * 2**20 + '"}',
    ],
    ids=["empty", "begun", "list", "bare", "type", "deep", "text", "large"],
)  # fmt: skip
def test_damaged_facts_are_one_sentence_with_the_file(text: str, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "one", model_xml="", case_json=text)
    with pytest.raises(InputError) as caught:
        read_case(folder)
    assert str(caught.value).startswith(f"{folder / 'case.json'}: ") and len(str(caught.value)) < 400


@each_row("name", ["model.xml", "model.bin", "inputs.npz", "calls", "calls/1.npz", "case.json"])
def test_a_link_out_of_a_case_is_refused(name: str, tmp_path: Path) -> None:
    folder, secret = folder_with(tmp_path / "one", model_xml=""), folder_with(tmp_path / "secret", file="")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(secret if name == "calls" else secret / "file")
    with pytest.raises(InputError, match=r"is a link out of the case") as caught:
        read_case(folder)
    assert str(caught.value).startswith(str(folder / name))
    (found,) = cases_in(tmp_path)
    assert found.damage == str(caught.value) and found.model is None


def test_a_link_within_a_case_and_one_to_a_case_are_followed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "one", weights="")
    (folder / "model.xml").symlink_to("weights")
    (tmp_path / "two").symlink_to(folder)
    assert read_case(tmp_path / "two").model == tmp_path / "two" / "model.xml"


@each_row("name", ["inputs.npz", "states.npz", "calls_outputs.npz"])
def test_what_is_no_file_is_said_to_be_none(name: str, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "one", model_xml="")
    (folder / name).mkdir()
    with pytest.raises(InputError, match="is not a file"):
        read_case(folder)


FACTS = '{"trigger": {"kind": "number"}, "call": 7, "request_call": 7}'
FILES = "case.json model.bin model.xml inputs.npz states.npz outputs.npz calls calls_states.npz calls_outputs.npz"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.parametrize("name", [*FILES.split(), "calls/000001.npz"])
def test_a_pipe_in_a_case_is_refused_and_not_waited_for(name: str, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "one", model_xml="", case_json=FACTS)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match=rf"{name}: is not a (file|folder)$"):
        read_case(folder)
    assert cases_in(tmp_path)[0].damage


@pytest.mark.parametrize("words", [["run"], ["check"], ["compare"], []], ids=["run", "check", "compare", "bare"])
def test_a_folder_that_is_no_case_is_told_what_a_case_needs(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare, kept = folder_with(tmp_path / "ba re", other_xml=""), tmp_path / "kept"
    one = folder_with(kept / "one", model_xml="")
    assert main([*words, str(bare)]) == (3 if words else 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"stepper: {bare}: is a folder without model.xml") and "inputs.npz" in line
    assert main([*words, str(kept)]) == (3 if words else 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert f"such as {one};" in line and f"stepper cases {kept}" in line


def test_a_case_given_to_the_reader_of_files_is_told_its_model(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "one", model_xml="")
    with pytest.raises(ModelError, match=r"is a folder: name the model in it, .*one.model\.xml"):
        read(folder)


def test_the_cases_of_a_folder_are_in_order_and_hidden_ones_are_left_out(tmp_path: Path) -> None:
    for name in ("b", "a", ".case-000001.77.part"):
        folder_with(tmp_path / name, model_xml="")
    folder_with(tmp_path / "none")
    assert [case.folder.name for case in cases_in(tmp_path)] == ["a", "b"]
    assert [case.folder for case in cases_in(tmp_path / "a")] == [tmp_path / "a"]
    with pytest.raises(UsageError, match="cannot be read"):
        cases_in(tmp_path / "nowhere")


@each_row(
    ("trigger", "text"),
    [
        (CallTrigger("nan", 1, "y", 2, 1200, (0, 3)), "NaN in 2 of 1,200 elements of output 1 'y', first at [0,3]"),
        (CallTrigger("inf", 0, "y", 1, 1), "Inf in 1 of 1 elements of output 0 'y'"),
        (
            CallTrigger("error", message="Exception from a.cpp:1:\n\n shapes do not fit\n"),
            "it failed: shapes do not fit",
        ),
        (CallTrigger("error"), "it failed: without a message"),
        (CallTrigger("condition"), "the condition held"),
        (CallTrigger("number"), "its number was asked for"),
    ],
)
def test_a_trigger_is_a_sentence(trigger: CallTrigger, text: str) -> None:
    assert trigger_text(trigger) == text


@each_row(("hint", "precision"), [("bf16", "bf16"), ("f16", "f16"), ("f32", None), ("", None)])
def test_a_device_that_computes_in_fewer_bits_is_known(hint: str, precision: str | None) -> None:
    facts = CaseFacts(CallTrigger("any"), 1, 1, properties={"INFERENCE_PRECISION_HINT": hint})
    assert facts.precision == precision
