"""Cases in place of models, `stepper cases`, and `stepper capture` around programs without OpenVINO."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.cases.capturing import STARTUP
from tests.cli.conftest import ROOT, Call, program
from tests.json_answers import checked

SAMPLES = Path(__file__).parents[2] / "sample_models"
SAMPLE = SAMPLES / "for_loop"


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """A case: compound interest, whose outputs come from its formula."""
    folder = tmp_path / "case-000007"
    folder.mkdir()
    for name, to in {"model.xml": "", "model.bin": "", "inputs.npz": "", "expected.npz": "outputs.npz"}.items():
        shutil.copyfile(SAMPLE / name, folder / (to or name))
    facts = {"trigger": {"kind": "number"}, "call": 7, "request_call": 7}
    (folder / "case.json").write_text(json.dumps(facts), encoding="utf-8")
    return folder


def test_commands_take_a_case_with_its_inputs_in_place_of_a_model(call: Call, case: Path) -> None:
    model = ("--inputs", case / "inputs.npz")
    assert call("run", case).out == call("run", case / "model.xml", *model).out
    assert call("why", case, "final_balance[1]").out == call("why", case / "model.xml", "final_balance[1]", *model).out
    assert call("export", case, "--view", "unrolled").out == call(
        "export", case / "model.xml", "--view", "unrolled", *model
    ).out  # fmt: skip
    assert call("inspect", case).out == call("inspect", case / "model.xml").out
    assert call("lint", case).code == 0
    assert call("check", case, "--with", "none").code == 0


def test_what_is_given_goes_before_what_the_case_has(call: Call, case: Path) -> None:
    out = call("run", case, "--input", "rate=[0,0,0]", "--json").out
    final = next(one for one in json.loads(out)["outputs"] if one["name"] == "final_balance")
    assert final["values"] == [1000, 1000, 250]


def test_a_case_is_compared_with_what_came_out(call: Call, case: Path) -> None:
    assert "no difference from outputs.npz" in call("compare", case).out
    values = dict(np.load(case / "outputs.npz"))
    values["final_balance"] = values["final_balance"] + 1
    np.savez(case / "outputs.npz", **values)  # type: ignore[arg-type]
    found = call("compare", case)
    assert found.code == 1 and "final_balance" in found.out
    facts = json.loads((case / "case.json").read_text())
    (case / "case.json").write_text(json.dumps({**facts, "properties": {"INFERENCE_PRECISION_HINT": "bf16"}}))
    said = call("compare", case)
    assert said.code == 0, "one in a thousand is what bf16 has"
    assert "computed in bf16 (INFERENCE_PRECISION_HINT); values are compared with the tolerances" in said.err
    assert call("compare", case, "--rtol", "1e-4").code == 1


def test_the_files_of_a_case_are_not_written_over(call: Call, case: Path) -> None:
    for name in ("model.xml", "inputs.npz"):
        found = call("run", case, "-o", case / name)
        assert found.code == 2 and "choose another" in found.err


def test_a_case_without_a_model_says_why(call: Call, case: Path) -> None:
    facts = json.loads((case / "case.json").read_text())
    (case / "case.json").write_text(json.dumps({**facts, "trouble": ["it was compiled before"]}))
    (case / "model.xml").unlink()
    found = call("run", case)
    assert (found.code, found.err) == (3, f"stepper: {case} has no model.xml: it was compiled before\n")


def test_the_cases_of_a_folder_are_listed(call: Call, case: Path) -> None:
    (case.parent / "nothing").mkdir()
    lines = call("cases", case.parent).out.splitlines()
    assert lines[0] == f"{case}  call 7: its number was asked for"
    assert lines[1].split(";")[0].strip() == "inputs principal[3], rate[3]"
    answer = checked("cases", call("cases", case.parent, "--json").out)
    assert [one["folder"] for one in answer["cases"]] == [str(case)]
    assert answer["cases"][0]["facts"]["call"] == 7 and answer["cases"][0]["states"] is None
    refused = call("cases", case.parent / "nothing")
    assert refused.code == 2 and "has no cases" in refused.err


def captured(call: Call, folder: Path, *words: object) -> tuple[int, str, str]:
    return call("capture", "--to", folder / "kept", *words)


def test_a_damaged_case_is_listed_beside_the_others(call: Call, case: Path) -> None:
    broken, odd = case.with_name("broken"), case.with_name("odd")
    for one in (broken, odd):
        shutil.copytree(case, one)
    (broken / "case.json").write_text("{")
    (odd / "inputs.npz").write_bytes(b"PK nothing")
    found = call("cases", case.parent)
    assert found.code == 1 and not found.err
    assert found.out.splitlines()[0].startswith(f"{broken}") and "does not say what a case says" in found.out
    assert "inputs that cannot be read; outputs final_balance[3]" in found.out and f"{case}  call 7" in found.out
    answer = checked("cases", call("cases", case.parent, "--json").out)
    assert [bool(one["damage"]) for one in answer["cases"]] == [True, False, False]


def test_a_case_in_place_of_a_recording_is_told_how_to_make_one(call: Call, case: Path) -> None:
    for words in (("print", case, "x"), ("find", case, "nan")):
        refused = call(*words)
        assert refused.code == 3 and f"stepper run {case} --trace FILE makes one" in refused.err


def test_the_exit_code_of_the_application_is_that_of_the_command(call: Call, tmp_path: Path) -> None:
    code, out, err = captured(call, tmp_path, "--", sys.executable, "-c", "raise SystemExit(7)")
    assert (code, out) == (7, "") and "the application ended with exit code 7" in err
    assert "no process of Python in it used OpenVINO" in err


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no such signal here")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_the_command_ends_the_application(name: str, tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text(
        "import pathlib, signal, sys, time\n"
        f"signal.signal(signal.{name}, lambda *_: sys.exit(5))\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(60)\n"
    )
    words = [sys.executable, "-m", "stepper", "capture", "--to", "kept", "--", sys.executable, "application.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    before = signal.signal(getattr(signal, name), signal.SIG_DFL)  # nohup ignores a hangup for all that it starts
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        signal.signal(getattr(signal, name), before)
        while not (tmp_path / "ready").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(getattr(signal, name))
        try:
            told = process.communicate(timeout=50)[1]
        finally:
            process.kill()
    assert process.returncode == 5 and "the application ended with exit code 5" in told


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals here")
def test_a_signal_between_the_start_and_the_wait_reaches_the_application(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen

    def signalled(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = start(*arguments, **options)
        signal.raise_signal(signal.SIGTERM)
        return process

    monkeypatch.setattr(subprocess, "Popen", signalled)
    line = ("capture", "--to", tmp_path / "kept", "--", sys.executable, "-c", "import time; time.sleep(600)")
    assert call(*line)[0] == 128 + signal.SIGTERM


@pytest.mark.skipif(os.name != "posix", reason="there are no groups of processes here")
def test_an_application_has_time_to_end_after_a_second_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text(
        "import pathlib, sys, time\n"
        "for name in ('first', 'second'):\n"
        "    try:\n"
        "        pathlib.Path(name).touch()\n"
        "        time.sleep(60)\n"
        "    except KeyboardInterrupt:\n"
        "        pass\n"
        "time.sleep(0.3)\n"
        "sys.exit(9)\n"
    )
    words = [sys.executable, "-m", "stepper", "capture", "--to", "kept", "--", sys.executable, "application.py"]
    options: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, **options) as process:
        for name, later in (("first", 0.0), ("second", 1.1)):
            while not (tmp_path / name).exists():
                assert process.poll() is None
                time.sleep(0.02)
            time.sleep(later)
            os.killpg(process.pid, signal.SIGINT)
        try:
            told = process.communicate(timeout=50)[1]
        finally:
            process.kill()
    assert process.returncode == 9 and told.splitlines()[-1] == "the application ended with exit code 9"


def test_an_application_that_ends_well_without_cases_is_0(call: Call, tmp_path: Path) -> None:
    code, out, _err = captured(call, tmp_path, "--json", "--", sys.executable, "-c", "print('noise')")
    answer = checked("capture", out)
    assert (code, answer["exit_code"], answer["processes"], answer["cases"]) == (0, 0, 0, [])


def test_another_sitecustomize_is_carried_out_as_well(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.seen_here = 5")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code = captured(call, tmp_path, "--", sys.executable, "-c", "raise SystemExit(seen_here)")[0]
    assert code == 5


def test_a_python_without_what_the_capture_needs_says_so_and_goes_on(tmp_path: Path) -> None:
    package = tmp_path / "application" / "openvino"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    application = (sys.executable, "-c", "import openvino; raise SystemExit(3)")
    environment = {"PYTHONPATH": os.pathsep.join([str(package.parent), str(ROOT)])}
    process = program("capture", "--to", tmp_path / "kept", "--", *application, env=environment)
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 3 and b"no calls are kept of process" in err and b"Traceback" not in err


def test_the_usage_is_checked_before_the_application_starts(call: Call, tmp_path: Path) -> None:
    made = tmp_path / "made"
    start = (sys.executable, "-c", f"open({str(made)!r}, 'w')")
    assert captured(call, tmp_path, "--when", "nann", "--", *start)[0] == 2
    assert captured(call, tmp_path, "--most", "0", "--", *start)[0] == 2
    assert not made.exists()
    assert captured(call, tmp_path, "--", "no-such-program")[0] == 2
    nothing = captured(call, tmp_path)
    assert nothing[0] == 2 and "name what is to run behind --" in nothing[2]


def test_a_command_goes_before_a_folder_of_its_name(call: Call, case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case.rename(case.with_name("run"))
    monkeypatch.chdir(case.parent)
    assert "Loop 'years': 10 iterations" in call("run", "run").out


def test_a_folder_is_told_as_one_whatever_command_has_a_name_like_it(
    call: Call, case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := case.parent / "exports").mkdir()
    case.rename(folder / case.name)
    monkeypatch.chdir(case.parent)
    done = call("exports")
    assert done.code == 2 and "exports: is a folder with cases, not one itself: name one, such as " in done.err


def test_another_version_that_the_application_uses_stays(tmp_path: Path) -> None:
    for name in ("openvino", "stepper"):
        package = tmp_path / "application" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("kind = 'theirs'")
    script = "import stepper, openvino, sys; raise SystemExit(4 if sys.modules['stepper'] is stepper else 5)"
    begin = {"when": ["nan"], "to": str(tmp_path), "packages": [str(ROOT)]}
    paths = os.pathsep.join([str(STARTUP), str(package.parent)])
    environment = {**os.environ, "STEPPER_CAPTURE": json.dumps(begin), "PYTHONPATH": paths}
    words = [sys.executable, "-c", script]
    ended = subprocess.run(words, env=environment, capture_output=True, check=False, timeout=60)
    assert ended.returncode == 4 and b"no calls are kept of process" in ended.stderr
