"""Every answer as JSON follows its schema: of all commands, over all samples, and of all errors."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from docs.json_shapes import ANSWERS, DEBUG_ANSWERS
from stepper.cli.parser import COMMANDS, parser
from stepper.commands.command_session import commands
from stepper.schemas import schema, schema_names
from tests.cli.conftest import Call
from tests.json_answers import checked, checked_lines, validator
from tests.models import Graph
from tests.tables import each_row

pytest.importorskip("jsonschema")
SAMPLES = Path(__file__).parents[2] / "sample_models"
NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/model.xml"))
SAMPLE = pytest.mark.parametrize("name", NAMES)


def given(name: str) -> tuple[Path, str, Path]:
    return SAMPLES / name / "model.xml", "--inputs", SAMPLES / name / "inputs.npz"


# --- the schemas themselves -----------------------------------------------------------------------------------------


def test_the_schemas_and_the_page_are_up_to_date() -> None:
    root = Path(__file__).parents[2]
    check = subprocess.run(
        [sys.executable, "-m", "docs.json_schemas", "--check"], cwd=root, capture_output=True, text=True, timeout=120
    )
    assert (check.returncode, check.stderr) == (0, "")


@each_row("name", schema_names())
def test_a_schema_is_one(name: str) -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema(name))


def test_each_command_that_answers_as_json_has_a_schema_and_each_schema_a_command() -> None:
    (choices,) = (action.choices for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    answering = {name for name, one in choices.items() if "--json" in one._option_string_actions}
    assert set(ANSWERS) == answering | {"export"} <= set(COMMANDS)
    assert set(schema_names()) == {*ANSWERS, "common", "debug-answers", "error"}
    assert set(DEBUG_ANSWERS) == {"", *(one.name for one in commands())}


def test_every_shape_is_exact_and_reached() -> None:
    parts = schema("common")["$defs"]
    text = json.dumps([schema(name) for name in schema_names()])
    for name, part in parts.items():
        assert f'$defs/{name}"' in text, f"{name} is used nowhere"
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert set(part["required"]) <= set(part["properties"])


# --- all commands over all samples ----------------------------------------------------------------------------------


@SAMPLE
def test_inspect_run_and_export_follow_their_schemas(call: Call, name: str) -> None:
    model = given(name)[0]
    inspected = checked("inspect", call("inspect", model, "--json").out)
    run = checked("run", call("run", *given(name), "--json", "-q").out)
    assert {loop["layer"]["name"] for loop in run["loops"]} <= {loop["layer"]["name"] for loop in inspected["loops"]}
    assert all(loop["layer"]["file"] == str(model) for loop in run["loops"])
    exported = checked("export", call("export", *given(name), "--as", "json", "--values", "stats", "-q").out)
    line = model.read_text(encoding="utf-8").splitlines()[exported["loop"]["line"] - 1]
    assert f'id="{exported["loop"]["id"]}"' in line and exported["loop"]["type"] in line


@SAMPLE
@pytest.mark.parametrize(
    "stop", ["nan", "cond", "shape", "stuck", "grow>1.5", "changes {value}", "{value}", "when iter == 1"]
)
def test_a_run_that_a_breakpoint_stops_follows_its_schema(call: Call, name: str, stop: str) -> None:
    value = {"while_loop": "peak_next", "nested_loop": "order_next"}.get(name)
    if "{value}" in stop and value is None:
        pytest.skip("of two samples")
    answer = call("run", *given(name), "--break", stop.format(value=value), "--json", "-q")
    if "error" not in checked("run", answer.out):
        assert answer.code == (1 if "break" in json.loads(answer.out) else 0)


@SAMPLE
def test_a_recording_is_printed_and_searched_as_its_schemas_say(call: Call, name: str, tmp_path: Path) -> None:
    trace = tmp_path / "run.trace"
    call("run", *given(name), "--trace", trace, "--record", "all", "-q")
    loop = checked("inspect", call("inspect", given(name)[0], "--json").out)["loops"][0]
    address = f"id={loop['entries'][0]['inner']['id']}@*"
    for option in ((), ("--stats",)):
        answer = call("print", trace, address, "--json", *option)
        checked("print", answer.out)
    for predicate in ("nan", "inf", "iter == 0", "max(nowhere) > 0"):
        checked("find", call("find", trace, predicate, "--json").out)


def test_a_comparison_follows_its_schema(call: Call, tmp_path: Path) -> None:
    for name in NAMES:
        trace = tmp_path / f"{name}.trace"
        call("run", *given(name), "--trace", trace, "--record", "all", "-q")
        report = checked("compare", call("compare", *given(name), "--with", trace, "--per-op", "--json", "-q").out)
        assert not report["different"]
    text = (SAMPLES / "while_loop" / "model.xml").read_text(encoding="utf-8")
    other = tmp_path / "model.xml"
    other.write_text(text.replace('type="Maximum"', 'type="Minimum"'), encoding="utf-8")
    other.with_suffix(".bin").write_bytes((SAMPLES / "while_loop" / "model.bin").read_bytes())
    answer = call("compare", *given("while_loop"), "--with", other, "--per-op", "--json", "-q")
    report = checked("compare", answer.out)
    assert answer.code == 1 and report["verdict"]["layer"]["type"] == "Maximum"
    assert report["verdict"]["layer"]["file"] == str(given("while_loop")[0])


def test_the_schemas_are_printed(call: Call) -> None:
    printed = json.loads(call("help", "json").out)
    assert printed == {f"{name}.json": schema(name) for name in schema_names()}


def test_the_table_of_keys_follows_its_schema(call: Call) -> None:
    assert checked("help", call("help", "keys", "--json").out)["keys"]


@each_row("topic", ["", "addresses", "run", "exit codes"])
def test_a_topic_of_help_follows_its_schema(call: Call, topic: str) -> None:
    printed = checked("help", call("help", *topic.split(), "--json").out)
    assert printed["topic"] == topic.replace(" ", "-")
    assert printed["lines"] == call("help", *topic.split()).out.splitlines()


# --- the debugger ---------------------------------------------------------------------------------------------------

ALL_COMMANDS = """
where
next
step 3
info trip
info ports
info edges
info scans
info breaks
info watches
info memory
info marks
explain
list
why {carried}
uses {carried}
print {carried}
print {carried}@*
print max({carried})
p "text" == "text"
stats {carried}
watch max({carried})
display {carried}/e3
display
info
info watches
break {made} if iter > 0
log {made} "{{iter}}: {{max({carried})}}"
change 1 {made}
ignore 1 1
disable 1
enable
break nan
commands 1 print {made}; print nosuch
continue
commands 1
silent
end
commands 1 end
mark here
explain
info marks
iter +1
iter last
finish
goto 'here
goto tick 3
reverse-step
reverse-next
reverse-finish
reverse-continue
first
until iter == 1
run-to {made}
step
set {carried} = {carried}
branches
undo
branch other
set {carried} = {carried} + 1
branch diff main other
A
diff
A before
diff
A
A off
diff original
branches
branch rename other another
branch main
branch delete another
up
down
frame 0
find iter == 1 all
except nowhere*
labels {carried} {folder}/labels.txt
labels {carried}
save {carried} {folder}/value.npy
session save {folder}/session
session load {folder}/session
trust
history
complete print {carried}
history {folder}/commands
source {folder}/script
to-anomaly
reverse-to-anomaly
unwatch 1
delete
help
help break
help addresses
nosuch
print nosuch
last
explain
where
info trip

quit
"""


@each_row(
    ("name", "carried", "made"),
    [
        ("while_loop", "peak", "peak_next"),
        ("nested_loop", "order", "order_next"),
        ("do_while_loop", "guess", "guess_next"),
    ],
)
def test_every_command_of_the_debugger_follows_its_schema(
    call: Call, name: str, carried: str, made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "labels.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "script").write_text("where\n", encoding="utf-8")
    script = ALL_COMMANDS.format(carried=carried, made=made, folder=tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(script))
    lines = checked_lines(call("debug", *given(name), "--json").out)
    answered = {line["name"] for line in lines if "answer" in line}
    failed = [line["command"] for line in lines if "error" in line]
    assert {one.name for one in commands()} <= answered | {line.split()[0] for line in failed} | {"quit"}
    assert {"nosuch", "print nosuch"} <= set(failed) and len(failed) < 25, failed
    logged = [line["log"] for line in lines if "log" in line]
    assert all(one["breakpoint"] == 2 and one["tick"] > 0 for one in logged)


def test_explain_and_info_answer_with_data(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "step 4\nexplain\ninfo ports\ninfo trip\ninfo edges\ninfo scans\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(script))
    answers = [line["answer"] for line in checked_lines(call("debug", *given("while_loop"), "--json").out)]
    explained = answers[1]
    assert explained["done"]["layer"]["type"] == "FloorMod"
    assert explained["done"]["inputs"][0]["value"] == {"type": "i64", "shape": [], "values": [27]}
    assert [port["role"] for port in answers[2]["ports"]].count("merged") == 3
    assert (answers[3]["maximum"], answers[3]["executed"], answers[3]["condition"]) == (None, 0, True)
    assert [edge["parameter"]["name"] for edge in answers[4]["back_edges"]] == ["number", "steps", "peak"]
    assert answers[4]["back_edges"][0]["came_in"]["values"] == [27]
    assert answers[5]["scans"][0]["pieces"] == 0


# --- errors ---------------------------------------------------------------------------------------------------------


def failing(folder: Path) -> Path:
    """A model whose loop fails in its third iteration: a slice is missing."""
    from tests.models import joined, sliced

    net = Graph()
    x, body = net.parameter("x", dims=(2,)), net.body()
    piece = body.parameter("piece", dims=(1,))
    result = body.result(body.apply("Negative", piece))
    net.result(net.loop("rows", body, 3, True, [sliced(x, piece)], [joined(result)])[0])
    return net.write(folder)


@each_row("name", [name for name in ANSWERS if name not in ("help", "export", "passes", "hunt", "capture")])
def test_a_file_that_is_not_there_is_an_error_object(call: Call, name: str, tmp_path: Path) -> None:
    more = {"print": ["x"], "find": ["nan"], "why": ["x"], "compare": ["--with", tmp_path / "other.xml"]}
    more |= {"reduce": ["-o", tmp_path / "small"]}
    file = ["--file"] if name == "figures" else []
    code, out, err = call(name, *file, tmp_path / "nowhere.xml", *more.get(name, []), "--json")
    error = checked("error", out)["error"]
    assert error["exit_code"] == code != 0
    assert error["message"] in err and str(tmp_path / "nowhere.xml") in error["message"]
    assert error["file"] == (str(tmp_path / "nowhere.xml") if error["kind"] == "model" else None)


@each_row("words", [["run", "--brake", "nan"], ["run"], ["inspect"], ["compare"], ["find"], ["debug", "--speed"]])
def test_a_wrong_usage_is_an_error_object(call: Call, words: list[str]) -> None:
    code, out, err = call(*words, "--json")
    error = checked("error", out)["error"]
    assert (code, error["kind"], error["exit_code"]) == (2, "usage", 2)
    assert error["message"] in err


def test_an_error_of_the_file_names_line_and_layer(call: Call, tmp_path: Path) -> None:
    text = (SAMPLES / "while_loop" / "model.xml").read_text(encoding="utf-8")
    path = tmp_path / "model.xml"
    path.write_text(text.replace('type="Maximum"', 'type=""'), encoding="utf-8")
    code, out, _err = call("inspect", path, "--json")
    error = checked("error", out)["error"]
    assert (code, error["kind"], error["file"]) == (3, "model", str(path))
    assert "peak_next" in path.read_text(encoding="utf-8").splitlines()[error["line"] - 1]


def test_an_error_of_the_run_names_layer_file_line_and_loops(call: Call, tmp_path: Path) -> None:
    path = failing(tmp_path)
    code, out, _err = call("run", path, "--input", "x=[1,2]", "--json")
    error = checked("run", out)["error"]
    assert (code, error["kind"]) == (3, "execution") and "no slice" in error["message"]
    assert error["layer"] == {
        "id": error["layer"]["id"],
        "name": "rows",
        "type": "Loop",
        "file": str(path),
        "line": error["line"],
    }
    assert 'name="rows"' in path.read_text(encoding="utf-8").splitlines()[error["line"] - 1]


def test_an_operation_without_a_kernel_in_a_loop_names_the_iteration(call: Call, tmp_path: Path) -> None:
    from tests.models import carried, last

    net = Graph()
    x, body = net.parameter("x"), net.body()
    state = body.parameter("state")
    result = body.result(body.apply("Mystery", state, version="extension", name="odd"))
    net.result(net.loop("around", body, 3, True, [carried(x, state, result)], [last(result)])[0])
    code, out, _err = call("run", net.write(tmp_path), "--input", "x=1", "--json", "--engine", "numpy")
    error = checked("run", out)["error"]
    assert (code, error["kind"], error["layer"]["name"]) == (5, "unsupported", "odd")
    assert [(one["layer"]["name"], one["body"], one["iteration"]) for one in error["path"]] == [("around", "body", 0)]


def test_a_limit_is_an_error_object(call: Call) -> None:
    code, out, _err = call("run", *given("while_loop"), "--max-iterations", "5", "--json")
    error = checked("run", out)["error"]
    assert (code, error["kind"], error["layer"]["name"]) == (4, "limit", "until_one")


def test_a_script_that_fails_says_so_once(call: Call, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("step\nnosuch\n", encoding="utf-8")
    code, out, _err = call("debug", *given("while_loop"), "--script", script, "--json")
    lines = checked_lines(out)
    assert code == 2 and ["answer" in line for line in lines] == [True, False]
    assert lines[1]["error"]["kind"] == "usage" and "line 2" in lines[1]["error"]["message"]


@each_row("message", ["interrupted at model", ""])
def test_an_interruption_and_a_lack_of_memory_are_error_objects(
    call: Call, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    for exception, code, kind in ((KeyboardInterrupt, 130, "interrupted"), (MemoryError, 4, "memory")):

        def fail(_options: object, exception: type[BaseException] = exception) -> int:
            raise exception(message)

        monkeypatch.setattr("stepper.cli.commands.inspect.execute", fail)
        called = call("inspect", given("for_loop")[0], "--json")
        error = checked("error", called.out)["error"]
        assert (called.code, error["kind"], error["exit_code"]) == (code, kind, code)


# --- numbers --------------------------------------------------------------------------------------------------------


def test_nan_and_infinities_are_texts_and_large_tensors_null(call: Call, tmp_path: Path) -> None:
    net = Graph()
    net.result(net.parameter("x", dims=(-1,)))
    path = net.write(tmp_path)
    np.savez(tmp_path / "few.npz", x=np.array([np.nan, np.inf, -np.inf, 1.5], np.float32))
    np.savez(tmp_path / "many.npz", x=np.zeros(1001, np.float32))
    few = checked("run", call("run", path, "--inputs", tmp_path / "few.npz", "--json").out)["outputs"][0]
    assert (few["type"], few["shape"], few["values"]) == ("f32", [4], ["NaN", "Infinity", "-Infinity", 1.5])
    many = checked("run", call("run", path, "--inputs", tmp_path / "many.npz", "--json").out)["outputs"][0]
    assert (many["shape"], many["values"]) == ([1001], None)


def test_a_key_that_no_schema_knows_is_found() -> None:
    assert not validator("error").is_valid({"schema": 1, "error": {}})
    assert not validator("help").is_valid({"schema": 1, "keys": [], "more": 1})
    assert validator("help").is_valid({"schema": 1, "keys": []})
