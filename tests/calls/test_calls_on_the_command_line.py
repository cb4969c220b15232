"""`--calls` and `--carry`: every command over calls as over iterations."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from stepper.recording import open_recording
from tests.calls.samples import FOLDER, KV_CACHE, VAD_STATEFUL
from tests.cli.conftest import Call, call  # noqa: F401
from tests.tables import each_row

CALLS = ("--calls", FOLDER / "vad_calls.npz")
STATEFUL = (FOLDER / "vad_stateful.xml", *CALLS, "--input", "sr=16000")
CARRY = ("--carry", "stateN=state", "--input", "state=zeros", "--input", "sr=16000")
PLAIN = (FOLDER / "vad.xml", *CALLS, *CARRY)
CACHE = ("--carry", "present_key=past_key", "--carry", "present_value=past_value", "--input", "*=zeros")
EMPTY = ("--shape", "past_key=1,0,6", "--shape", "past_value=1,0,6")


def outputs_of(call: Call, tmp_path: Path, *words: object) -> dict[str, np.ndarray]:  # noqa: F811
    path = tmp_path / "out.npz"
    assert call("run", *words, "-o", path, "-q").code == 0
    with np.load(path) as arrays:
        return dict(arrays)


def test_calls_are_given_in_files_of_all_forms(call: Call, tmp_path: Path) -> None:  # noqa: F811
    frames, expected = VAD_STATEFUL.calls["input"], VAD_STATEFUL.expected
    np.save(tmp_path / "rows.npy", frames.reshape(60, 16))
    np.save(tmp_path / "line.npy", frames.reshape(1, 960))
    (tmp_path / "each").mkdir()
    for number, frame in enumerate(frames):
        np.savez(tmp_path / "each" / f"call-{number}.npz", input=frame, sr=16000)
    model = FOLDER / "vad_stateful.xml"
    rate = ("--input", "sr=16000")
    for given in (
        (*CALLS, *rate),
        ("--calls", f"input={FOLDER / 'vad_calls.npz'}:input", *rate),
        ("--calls", f"input={tmp_path / 'rows.npy'}", *rate),
        ("--calls", f"input={tmp_path / 'line.npy'}:axis1", "--calls", "60", *rate),
        ("--calls", tmp_path / "each"),
        ("--calls", tmp_path / "each" / "call-*.npz"),
    ):
        found = outputs_of(call, tmp_path, model, *given)["output"]
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)
    found = outputs_of(call, tmp_path, model, "--calls", "3", "--calls", "input=rand:1", "--input", "sr=16000")
    assert found["output"].shape == (3, 1) and len(set(found["output"].ravel())) == 3


def test_a_cache_outside_is_carried_as_it_grows(call: Call, tmp_path: Path) -> None:  # noqa: F811
    given = (KV_CACHE.path, "--calls", FOLDER / "kv_cache_calls.npz", *CACHE, *EMPTY)
    found = outputs_of(call, tmp_path, *given)
    np.testing.assert_allclose(found["mixed"].reshape(10, 1, 1, 6), KV_CACHE.expected, rtol=1e-4, atol=1e-5)
    assert found["present_key"].shape == (1, 10, 6)


def test_a_recording_of_calls_opens_resumes_and_is_searched(call: Call, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "run.sqlite"
    assert call("run", *PLAIN, "--trace", path, "--record", "all", "-q").code == 0
    with open_recording(path) as recording:
        model = recording.model(FOLDER / "vad.xml")
        assert model.calls is not None and model.calls.count == 60 and model.path == FOLDER / "vad.xml"
    expected = VAD_STATEFUL.expected.ravel()
    loudest = int(expected.argmax())
    found = call("find", path, f"max(probability) > {expected[loudest] - 1e-4}")
    assert f"Loop 'calls' #{loudest}" in found.out
    held = call("compare", *PLAIN, "--with", path)
    assert held.code == 0 and "in 60 iterations and 2 outputs agree" in held.out
    assert call("run", "--resume", path, "--calls", "3").code == 2
    resumed = call("run", "--resume", path, "--model", FOLDER / "vad.xml", "-q")
    assert "Loop 'calls': 60 calls" in resumed.out
    figure = tmp_path / "figure.svg"
    assert call("export", path, "--model", FOLDER / "vad.xml", "-o", figure, "--iters", "0,1", "-q").code == 0
    assert "calls" in figure.read_text(encoding="utf-8")


def test_a_session_of_calls_goes_on(call: Call, tmp_path: Path) -> None:  # noqa: F811
    session, script = tmp_path / "session.sqlite", tmp_path / "script"
    script.write_text("goto cell@7\n")
    assert call("debug", *STATEFUL, "--session", session, "--script", script).code == 0
    script.write_text("where\n")
    told = call("debug", FOLDER / "vad_stateful.xml", "--session", session, "--script", script)
    assert "Loop 'calls', call 7 of 60" in told.out
    other = (FOLDER / "vad_stateful.xml", "--calls", "2", "--input", "*=zeros", "--session", session)
    assert "of other calls (--calls, --carry)" in call("debug", *other, "--script", script).err


def test_why_goes_back_over_calls_through_a_variable(call: Call) -> None:  # noqa: F811
    plain = call("why", *STATEFUL, "probability@2[0,0]").out
    assert "input input f32[60,16]" in plain and "of 960 elements" in plain and "48 of 960" in plain


def test_two_models_are_compared_call_by_call_though_one_has_its_state_inside(call: Call) -> None:  # noqa: F811
    for model, other in (("vad_stateful", "vad"), ("vad", "vad_stateful")):
        words = (FOLDER / f"{model}.xml", "--with", FOLDER / f"{other}.xml", *CALLS)
        same = call("compare", *words, *CARRY)
        assert same.code == 0 and "values in 60 iterations and 1 output agree" in same.out
        begun = ("--carry", "stateN=state", "--input", "state=ones", "--input", "sr=16000")
        differs = call("compare", *words, *begun)
        assert differs.code == 1 and "Loop 'calls'" in differs.out
    unknown = call("compare", *words, "--carry", "stateM=state", "--input", "state=zeros", "--input", "sr=16000")
    assert unknown.code == 2 and "none of the models has an output 'stateM'" in unknown.err


@each_row(
    ("words", "message"),
    [
        (("--calls", "0"), "from 1 to"),
        (("--calls", "frames.np"), "--calls frames.np: expected their number, FILE.npz"),
        (("--calls", "input"), "--calls input: expected"),
        (("--calls", "frame=zeros"), "has no input 'frame'"),
        (("--calls", "input=zeros"), "say how many there are"),
        (("--calls", "3", "--calls", "input=rand"), "has no seed"),
        (("--calls", "3", "--calls", "4"), "once"),
        (("--calls", "*.nothing.npz"), "there are no .npz files"),
        (("--calls", "gone.npz"), "gone.npz: cannot be read"),
        (("--calls", "3", "--carry", "stateN"), "OUTPUT=INPUT is expected"),
        (("--carry", "stateN=state"), "nothing says how many calls"),
        ((*CALLS, "--input", "input=zeros"), "has its values from the calls"),
        ((*CALLS, "--calls", "input=x.npy"), "gives input 'input' twice"),
    ],
)
def test_what_is_no_call_is_said_in_one_line(call: Call, words: tuple[object, ...], message: str) -> None:  # noqa: F811
    told = call("run", FOLDER / "vad.xml", *words)
    assert told.code in (2, 3) and message in told.err and told.err.count("\n") == 1


@each_row(
    ("carried", "said"),
    [
        (["stateM", "state"], "the model has no output 'stateM'; near is stateN"),
        (["stateN", "stat"], "the model has no input 'stat'; near is state"),
        (["stateN", "sr"], "'stateN' cannot be carried to 'sr': it is f32, that takes i64"),
    ],
)
def test_calls_of_a_case_that_do_not_fit_its_model_are_said_to_be_those_of_the_case(
    call: Call,  # noqa: F811
    carried: list[str],
    said: str,
    tmp_path: Path,
) -> None:
    case = tmp_path / "case"
    (case / "calls").mkdir(parents=True)
    for suffix in (".xml", ".bin"):
        shutil.copyfile((FOLDER / "vad").with_suffix(suffix), (case / "model").with_suffix(suffix))
    given = {"sr": np.int64(16000), "state": np.zeros((2, 1, 8), np.float32)}
    for number, frame in enumerate(VAD_STATEFUL.calls["input"][:3]):
        np.savez(case / "calls" / f"{number}.npz", input=frame, **given)
    facts = {"trigger": {"kind": "number"}, "call": 3, "request_call": 3, "carried": [["stateN", "state"]]}
    (case / "case.json").write_text(json.dumps(facts))
    assert call("run", case).code == 0
    (case / "case.json").write_text(json.dumps({**facts, "carried": [carried]}))
    for command in ("run", "check", "why", "compare"):
        told = call(
            command,
            case,
            *(["output"] if command == "why" else []),
            *(["--with", FOLDER / "vad_stateful.xml"] if command == "compare" else []),
        )
        assert told.code == 3 and told.err.startswith(f"stepper: {case}: its calls ") and told.err.count("\n") == 1
        assert said in told.err or (command == "compare" and "none of the models has" in told.err)


def test_files_of_calls_are_not_written_over(call: Call, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "calls.npz"
    path.write_bytes((FOLDER / "vad_calls.npz").read_bytes())
    told = call("run", FOLDER / "vad_stateful.xml", "--calls", path, "--input", "sr=16000", "-o", path)
    assert told.code == 2 and "a file of --calls" in told.err


def test_a_reference_beside_the_debugger_is_called_as_often(call: Call, tmp_path: Path) -> None:  # noqa: F811
    script = tmp_path / "script"
    script.write_text("goto cell@7\ndiff\n")
    told = call("debug", *STATEFUL, "--no-keep", "--reference", FOLDER / "vad_stateful.xml", "--script", script)
    assert "0 of 8 operations that have run differ" in told.out


@each_row("name", ["a=b", "x=1 [2]*", "12", "input=zeros"])
def test_calls_are_read_of_a_folder_of_any_name(call: Call, name: str, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / name / "calls"
    folder.mkdir(parents=True)
    for number, frame in enumerate(VAD_STATEFUL.calls["input"][:4]):
        np.savez(folder / f"{number}.npz", input=frame)
    shutil.copyfile(FOLDER / "vad_stateful.xml", folder.parent / "model.xml")
    shutil.copyfile(FOLDER / "vad_stateful.bin", folder.parent / "model.bin")
    told = call("run", folder.parent, "--input", "sr=16000")
    assert told.code == 0 and "Loop 'calls': 4 calls" in told.out
