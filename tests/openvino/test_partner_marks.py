"""What a partner computed is marked wherever it is shown: commands, recordings, figures, screens."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.cli import main
from stepper.commands import Interpreter
from stepper.engine.compiler import compile_model, given_away
from stepper.engine.machine import Machine
from stepper.engine.program import legend, mark_of
from stepper.engine.rules import Rules
from stepper.errors import UsageError
from stepper.export.exporter import draw
from stepper.openvino.partner import OpenVINOPartner
from stepper.recording import RecordingOptions, open_recording, record
from stepper.recording.queries import select
from tests.openvino.partners import TRIPLES, Tripling, read
from tests.tables import each_row
from tests.tui.driven import Driven, drive

X = {"x": np.float32(2)}
MARK = "so"
LEGEND = f"{MARK}: computed by {TRIPLES}"


def test_openvino_has_the_mark_ov() -> None:
    assert mark_of("OpenVINO (GPU.0, f16)") == "ov"
    assert mark_of("") == ""
    assert legend("OpenVINO (CPU, f32)") == "ov: computed by OpenVINO (CPU, f32)"


def test_what_is_given_away_is_known_without_a_run(tmp_path: Path) -> None:
    model = read(tmp_path)
    loop = next(layer for layer in model.graph.layers if layer.is_loop)
    body = loop.bodies[0].graph
    tripled = next(layer for layer in body.layers if layer.type == "Triple")
    assert given_away(model, Tripling()) == {(id(body), tripled.id): TRIPLES}
    assert given_away(model, None) == {}


def test_a_run_names_each_operation(tmp_path: Path) -> None:
    (one,) = stepper.run(read(tmp_path), X, partner=Tripling()).elsewhere
    assert (one.path, one.layer.type, one.layer.name) == ("model > Loop 'powers'", "Triple", "tripled")
    assert one.computed_by == TRIPLES


def test_commands_mark_it(tmp_path: Path) -> None:
    debugger = stepper.Debugger(read(tmp_path), X, partner=Tripling())
    debugger.break_at("tripled", exactly=True)
    interpreter = Interpreter(debugger)
    continued = interpreter.execute("continue")
    assert any(
        line.startswith("  after Triple 'tripled' = ") and line.endswith(LEGEND + ")") for line in continued.lines
    )
    listed = interpreter.execute("list")
    assert f"Triple 'tripled'  ({LEGEND})" in listed.lines[0]
    assert "computed by" not in listed.lines[1]
    assert [one.get("computed_by") for one in listed.data["operations"]] == [TRIPLES, None]
    assert interpreter.execute("print tripled").lines == ("f32[] 6.", f"  ({LEGEND})")
    assert interpreter.execute("print state").lines == ("f32[] 2.",)
    assert interpreter.execute("print tripled").data["computed_by"] == [TRIPLES]


def recorded(folder: Path) -> Path:
    model, path = read(folder), folder / "run.sqlite"
    inputs = stepper.bind_inputs(model, {"x": np.float32(np.inf)})
    machine = Machine(compile_model(model, Rules.SPEC, Tripling()), inputs)
    with record(machine, inputs, path, RecordingOptions.parse("all")) as recorder:
        assert recorder.run()
    return path


def test_a_recording_says_it_of_each_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path)
    with sqlite3.connect(path) as connection:
        rows = dict(connection.execute("SELECT DISTINCT name, computed_by FROM statistics"))
    connection.close()
    assert rows == {"tripled": TRIPLES, "less": "", "state": ""}
    with open_recording(path) as recording:
        assert [one.computed_by for one in select(recording, ["tripled", "less", "x"])] == [TRIPLES, "", ""]
    assert main(["print", str(path), "tripled@1"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(f"tripled  ({LEGEND})")
    assert main(["print", str(path), "tripled@1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"][0]["computed_by"] == TRIPLES
    assert main(["find", str(path), "inf", "all"]) == 1
    found = [line for line in capsys.readouterr().out.splitlines() if LEGEND in line]
    assert found and all("tripled" in line for line in found)


@each_row("view", ["rolled", "unrolled", "model"])
@each_row("format", ["svg", "dot", "mermaid", "md"])
def test_figures_mark_the_box_and_say_what_the_mark_means(tmp_path: Path, view: str, format: str) -> None:
    text = draw(read(tmp_path), X, view=view, partner=Tripling()).written(format).decode()
    assert f"tripled · {MARK}" in text
    assert "less · " not in text
    assert LEGEND in text
    plain = draw(read(tmp_path), X, view=view, partner=Tripling("Subtract")).written(format).decode()
    assert plain.count(f" · {MARK}") == 2 * text.count(f" · {MARK}")


def test_tables_say_it_of_each_value(tmp_path: Path) -> None:
    picture = draw(read(tmp_path), X, view="unrolled", partner=Tripling())
    values = json.loads(picture.written("json"))["trace"][0]["values"]
    assert {value["layer"]["name"]: value["computed_by"] for value in values} == {
        "state": None,
        "tripled": TRIPLES,
        "less": None,
    }
    assert TRIPLES in picture.written("csv").decode()
    assert LEGEND in picture.written("html").decode()


def test_the_screens_mark_it(tmp_path: Path) -> None:
    debugger = stepper.Debugger(read(tmp_path), {"x": np.float32(np.inf)}, partner=Tripling())

    async def script(driven: Driven) -> None:
        await driven.do(":rows all")
        assert f"tripled {MARK}" in driven.text("sheet") and f"less {MARK}" not in driven.text("sheet")
        assert f"computed by {TRIPLES}" in await driven.do(":print tripled")
        await driven.do(":search tripled", "v")
        assert LEGEND in driven.text("tensor")
        await driven.do("escape", "g")
        assert f"tripled {MARK}" in driven.text("graph") and f"less {MARK}" not in driven.text("graph")

    drive(debugger, script, size=(160, 48), runs=True)


@each_row("text", ["--engine numpy", "--engine numpy --engine-for Re lu=numpy --device GPU.1 --precision f16"])
def test_a_partner_comes_back_from_its_description(text: str) -> None:
    assert OpenVINOPartner.described(text).description == text


def test_a_partner_that_is_not_openvino_cannot_come_back() -> None:
    with pytest.raises(UsageError, match="computed with --engine_x y, which only the program that did so can do again"):
        OpenVINOPartner.described("--engine_x y")
