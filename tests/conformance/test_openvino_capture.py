"""Cases from running applications: what is kept is what the call saw, and the application computes the same.

The frames of the application, and what it got, are the truth; they come from its own code and from OpenVINO.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.cases.case import read_case
from stepper.cli import main
from stepper.engine.array_files import read_archive

pytest.importorskip("openvino")

from sample_models import detector
from tests.conformance.agreement import assert_agrees
from tests.conformance.applications import streams
from tests.test_docs import fences

APPLICATION = Path(streams.__file__)
ROOT = Path(__file__).parents[2]


def command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of the program, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "stepper", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("title", ["in the application", "your own condition"])
def test_the_lines_of_the_page_keep_the_call(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sample_models.application import LOUD
    from sample_models.application import main as application

    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "tasks" / "it-fails-in-my-application.md"
    (lines,) = (one.text for one in fences(page) if one.language == f'py title="{title}"')
    exec(
        compile(lines.replace('outputs["score"]', 'outputs["mixed"]'), title, "exec"),
        {"application": application, "stepper": stepper},
    )
    assert [one.name for one in tmp_path.glob("*/case-*")] == [f"case-{LOUD:06}"]


def seen_without(way: str, folder: Path) -> dict[str, np.ndarray]:
    folder.mkdir()
    subprocess.run([sys.executable, str(APPLICATION), way, str(folder)], check=True, timeout=300)
    return dict(np.load(folder / "seen.npz"))


@pytest.mark.parametrize("way", streams.WAYS)
def test_call_137_of_an_application_is_kept_and_one_command_more_stands_at_the_birth_of_its_nan(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = seen_without(way, tmp_path / "alone")
    ended = command(
        "capture", "--to", "kept", "--most", "1", "--json", "--", sys.executable, str(APPLICATION), way, ".",
        folder=tmp_path,
    )  # fmt: skip
    assert ended.returncode == 1, ended.stderr
    answer = json.loads(ended.stdout)
    assert (answer["exit_code"], answer["processes"], answer["calls"]) == (0, 1, streams.CALLS)
    assert not answer["troubles"]
    with_capture = dict(np.load(tmp_path / "seen.npz"))
    assert all(np.array_equal(alone[key], with_capture[key], equal_nan=True) for key in alone)

    (one,) = answer["cases"]
    folder = tmp_path / one["folder"]
    number = one["facts"]["call"]
    inputs = read_archive(folder / "inputs.npz")
    assert np.array_equal(inputs["frame"], streams.frame_of(streams.BAD))
    assert (number == streams.BAD) or way == "pool"  # two threads begin their calls in any order
    outputs = list(read_archive(folder / "outputs.npz").values())
    assert np.array_equal(outputs[0], alone[str(streams.BAD)], equal_nan=True)
    if way == "stateful":
        assert np.array_equal(read_archive(folder / "states.npz")["memory"], alone["before"])

    assert main(["run", str(folder), "--break", "nan"]) == 1
    stop = capsys.readouterr().out
    assert "NaN appears in Divide 'share' in iteration 2 of TensorIterator 'over steps': element [0,0,1]" in stop
    assert "first appeared in Exp 'raised' in iteration 2" in stop, "e^200 is more than f32 holds"
    assert main(["compare", str(folder)]) == 0


@pytest.mark.parametrize("way", ["stateful", "queue"])
def test_a_hundred_cases_run_again_to_what_the_application_got(way: str, tmp_path: Path) -> None:
    with stepper.capture("any", tmp_path / "kept", 100) as kept:
        streams.main(way, tmp_path)
    assert (len(kept.cases), kept.calls, kept.troubles) == (100, streams.CALLS, [])
    compiled = stepper.compile_model(stepper.read_model(kept.cases[0] / "model.xml"))
    left: dict[str, np.ndarray] = {}
    for number, folder in enumerate(sorted(kept.cases), 1):
        case = read_case(folder)
        assert case.facts is not None and case.inputs is not None and case.outputs is not None
        assert case.facts.call == number
        assert np.array_equal(read_archive(case.inputs)["frame"], streams.frame_of(number)), "as it was at the call"
        states = {} if case.states is None else read_archive(case.states)
        assert states.keys() == left.keys(), "the first call begins as the model says, or there is no variable"
        for name, value in states.items():
            assert_agrees(value, left[name], f"{name} before call {number}, of the run of the case before")
        got = stepper.run(compiled, read_archive(case.inputs), states=states)
        wanted = read_archive(case.outputs)
        assert len(got) == len(wanted)
        for value, expected in zip(got.values(), wanted.values(), strict=True):
            assert_agrees(value, expected, f"call {number}")
        left = got.states


def small_model(*, is_square: bool = True) -> object:
    """y = sqrt(x), or x reshaped to two rows."""
    import openvino as ov
    from openvino import opset13 as op

    x = op.parameter([-1, 3], np.float32, name="x")
    shaped = op.sqrt(x) if is_square else op.reshape(x, op.constant(np.array([2, 3], np.int64)), False)
    model = ov.Model([op.result(shaped)], [x], "small")
    model.inputs[0].tensor.set_names({"x"})
    return model


def ones(rows: int, value: float = 1.0) -> dict[str, np.ndarray]:
    return {"x": np.full((rows, 3), value, np.float32)}


def test_openvino_is_as_it_was_behind_a_capture(tmp_path: Path) -> None:
    from openvino import _ov_api as api

    holders = (api, api.Core, api.CompiledModel, api.InferRequest, api.AsyncInferQueue)
    before = [dict(vars(one)) for one in holders]
    with stepper.capture(to=tmp_path):
        assert [dict(vars(one)) for one in holders] != before
    assert [dict(vars(one)) for one in holders] == before


def test_captures_that_overlap_leave_openvino_as_it_was(tmp_path: Path) -> None:
    """As in two threads: the first ends while the second listens."""
    import openvino as ov
    from openvino import _ov_api as api

    holders = (api, api.Core, api.CompiledModel, api.InferRequest, api.AsyncInferQueue)
    before = [dict(vars(one)) for one in holders]
    first, second, third = (stepper.capture("any", tmp_path / name, 9) for name in "abc")
    compiled = ov.Core().compile_model(small_model(), "CPU")
    for begin, end in ((first, None), (second, None), (None, first), (third, None), (None, second), (None, third)):
        if begin is not None:
            begin.__enter__()
        if end is not None:
            end.__exit__(None, None, None)
        compiled(ones(1))
    assert [dict(vars(one)) for one in holders] == before
    assert [one.calls for one in (first, second, third)] == [2, 3, 2]
    assert not any(one.troubles for one in (first, second, third))


@pytest.mark.parametrize("way", ["infer", "wait", "queue"])
def test_a_call_that_fails_is_kept_with_its_inputs(way: str, tmp_path: Path) -> None:
    import openvino as ov

    with stepper.capture("error", tmp_path) as kept:
        compiled = ov.Core().compile_model(small_model(is_square=False), "CPU")
        with pytest.raises(RuntimeError):
            if way == "queue":
                queue = ov.AsyncInferQueue(compiled, 2)
                for rows in (2, 3, 2):
                    queue.start_async(ones(rows))
                queue.wait_all()
            else:
                request = compiled.create_infer_request()
                for rows in (2, 3):
                    request.start_async(ones(rows))
                    request.wait()
                    request.infer(ones(rows))
    (folder,) = kept.cases
    case = read_case(folder)
    assert case.facts is not None and case.facts.trigger.kind == "error" and case.outputs is None
    assert read_archive(folder / "inputs.npz")["x"].shape == (3, 3)


def test_inputs_that_a_request_was_given_before_are_kept(tmp_path: Path) -> None:
    import openvino as ov

    with stepper.capture("nan", tmp_path) as kept:
        compiled = ov.Core().compile_model(small_model(), "CPU")
        request = compiled.create_infer_request()
        request.set_tensor("x", ov.Tensor(ones(1, -4)["x"]))
        request.infer()
    assert read_archive(kept.cases[0] / "inputs.npz")["x"].read().tolist() == [[-4, -4, -4]]


def test_a_condition_a_number_and_the_most_of_cases(tmp_path: Path) -> None:
    import openvino as ov

    def is_large(inputs: object, outputs: object) -> bool:
        assert isinstance(outputs, dict)
        (output,) = outputs.values()
        return bool(output.max() > 2)

    compiled = ov.Core().compile_model(small_model(), "CPU")
    with stepper.capture((is_large, 2), tmp_path, 2, model=small_model()) as kept:
        for value in (1, 1, 9, 1, 16):
            compiled(ones(1, value))
    facts = [read_case(folder).facts for folder in kept.cases]
    assert [(one.call, one.trigger.kind) for one in facts if one] == [(2, "number"), (3, "condition")]
    assert (kept.calls, kept.hits) == (5, 2)  # with the last place taken, calls are counted alone
    assert command("run", str(kept.cases[1]), folder=tmp_path).returncode == 0


def test_a_condition_that_raises_does_not_reach_the_application(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import openvino as ov

    with stepper.capture(lambda inputs, outputs: 1 / 0, tmp_path) as kept:
        compiled = ov.Core().compile_model(small_model(), "CPU")
        for _ in range(3):
            assert compiled(ones(1, 4))[0].tolist() == [[2, 2, 2]]
    assert not kept.cases and kept.troubles == ["ZeroDivisionError: division by zero"]
    assert capsys.readouterr().err.count("division by zero") == 1


def test_a_model_that_was_compiled_before_is_asked_for(tmp_path: Path) -> None:
    import openvino as ov

    compiled = ov.Core().compile_model(small_model(), "CPU")
    with stepper.capture("nan", tmp_path) as kept:
        compiled(ones(1, -1))
    refused = command("run", str(kept.cases[0]), folder=tmp_path)
    assert refused.returncode == 3 and "compiled before the capture began" in refused.stderr


def test_a_model_that_was_changed_after_it_was_read_is_kept_as_it_was_compiled(tmp_path: Path) -> None:
    import openvino as ov

    ov.save_model(small_model(), tmp_path / "small.xml")
    with stepper.capture("any", tmp_path / "kept", 2) as kept:
        core = ov.Core()
        model = core.read_model(tmp_path / "small.xml")
        core.compile_model(model, "CPU")(ones(1))
        model.reshape([2, 3])
        core.compile_model(model, "CPU")(ones(2))
    facts = [read_case(folder).facts for folder in kept.cases]
    assert [one.is_as_read for one in facts if one] == [True, False]
    assert (kept.cases[0] / "model.xml").read_bytes() == (tmp_path / "small.xml").read_bytes()
    assert stepper.run(kept.cases[1] / "model.xml", ones(2)).popitem()[1].shape == (2, 3)
    with pytest.raises(stepper.InputError):
        stepper.run(kept.cases[1] / "model.xml", ones(1))


def test_a_model_that_was_made_of_text_and_weights_is_kept(tmp_path: Path) -> None:
    import openvino as ov

    ov.save_model(small_model(is_square=False), tmp_path / "small.xml")
    text, weights = (tmp_path / "small.xml").read_text(), (tmp_path / "small.bin").read_bytes()
    with stepper.capture("any", tmp_path / "kept", 2) as kept:
        core = ov.Core()
        core.compile_model(text, "CPU", {}, weights=weights)(ones(2))
        tensor = ov.Tensor(np.frombuffer(weights, np.uint8).copy())
        core.compile_model(core.read_model(text.encode(), tensor), "CPU")(ones(2))
    facts = [read_case(folder).facts for folder in kept.cases]
    assert [one.source for one in facts if one] == ["", ""] and not kept.troubles
    for folder in kept.cases:
        assert stepper.run(folder / "model.xml", ones(2)).popitem()[1].shape == (2, 3)


def test_a_call_with_inputs_that_are_none_is_an_error_without_any(
    tmp_path: Path,
) -> None:
    import openvino as ov

    with stepper.capture(("nan", "error"), tmp_path) as kept:
        request = ov.Core().compile_model(small_model(), "CPU").create_infer_request()
        request.infer(ones(1, 4))
        with pytest.raises(Exception, match="Incompatible"):
            request.infer({"x": object()})
        request.infer(ones(1, -4))
    facts = [read_case(folder).facts for folder in kept.cases]
    assert [one.trigger.kind for one in facts if one] == ["error", "nan"]
    assert [one.inputs for one in facts if one] == [(), ("x",)]


@pytest.mark.parametrize("way", ["outside", "inside"])
def test_a_case_of_the_last_calls_opens_as_a_loop_over_them(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The NaN of call 31 comes of its own frame and of the state that call 30 has left."""
    seen: dict[int, np.ndarray] = {}
    with stepper.capture("nan", tmp_path, 1, calls=12) as kept:
        detector.run(way, lambda call, shares: seen.update({call: shares}))
    (folder,) = kept.cases
    case = read_case(folder)
    assert kept.troubles == [] and case.facts is not None and case.calls is not None
    assert case.facts.carried == ((("next", "state"),) if way == "outside" else ())
    files = sorted(case.calls.iterdir())
    assert [path.name for path in files] == [f"{number:06}.npz" for number in range(20, 32)]
    for number, path in enumerate(files, 20):
        assert np.array_equal(read_archive(path)["frame"], detector.frame_of(number)), "the array is used again"

    assert main(["run", str(folder), "-o", str(tmp_path / "out.npz"), "-q"]) == 0
    outputs = read_archive(tmp_path / "out.npz")["shares"]
    wanted = np.concatenate([seen[number] for number in range(20, 32)])
    np.testing.assert_allclose(outputs, wanted, rtol=1e-5)
    assert main(["compare", str(folder)]) == 0
    assert "in 12 iterations" in capsys.readouterr().out
    assert main(["why", str(folder), "share@11[0,1]"]) == 0
    assert "2 of 36 elements: [10,1] = 80, [11,1] = 60" in capsys.readouterr().out
    assert main(["run", str(folder), "--calls", "1", "-q"]) == 0, "the call alone"
    assert "shares  f32[1,3]" in capsys.readouterr().out


def test_what_a_callback_writes_into_the_outputs_is_not_kept(tmp_path: Path) -> None:
    """The application mends a NaN in the tensor of its request: what OpenVINO gave is what went wrong."""
    import openvino as ov

    mended: list[int] = []

    def mend(request: Any, number: int) -> None:
        output = request.get_output_tensor(0).data
        if np.isnan(output).any():
            mended.append(number)
            output[...] = 0

    with stepper.capture("nan", tmp_path) as kept:
        queue = ov.AsyncInferQueue(ov.Core().compile_model(small_model(), "CPU"), 3)
        queue.set_callback(mend)
        for number in range(1, 41):
            queue.start_async(ones(1 + number % 3, -number if number % 20 == 7 else number), number)
        queue.wait_all()
    assert sorted(mended) == [7, 27] and (kept.calls, kept.hits, kept.troubles) == (40, 2, [])
    for folder, number in zip(sorted(kept.cases), (7, 27), strict=True):
        assert np.array_equal(read_archive(folder / "inputs.npz")["x"], ones(1 + number % 3, -number)["x"])
        assert np.isnan(read_archive(folder / "outputs.npz")["out_0"]).all()


def test_the_calls_of_a_queue_that_has_gone_are_kept_and_it_goes_as_before(tmp_path: Path) -> None:
    """A request that outlives its queue breaks the process, so in one of its own."""
    ended = command("capture", "--to", "kept", "--most", "20", "--", sys.executable, "-c", GOES, folder=tmp_path)
    assert ended.returncode == 1 and "ended with exit code" not in ended.stderr
    assert "30 calls of OpenVINO, 10 with nan" in ended.stderr


GOES = """
import gc
import numpy as np, openvino as ov
from openvino import opset13 as op

def application():
    x = op.parameter([1, 3], np.float32, name="x")
    queue = ov.AsyncInferQueue(ov.Core().compile_model(ov.Model([op.result(op.sqrt(x))], [x], "small"), "CPU"), 3)
    queue.set_callback(lambda request, number: None)
    for number in range(3):
        queue.start_async([np.full((1, 3), number - 1, np.float32)], number)
    for request in queue:
        request.wait()

for _ in range(10):
    application()
    gc.collect()
"""


def test_a_callback_is_called_as_before_when_the_capture_is_over(tmp_path: Path) -> None:
    import openvino as ov

    called: list[object] = []
    with stepper.capture("any", tmp_path) as kept:
        compiled = ov.Core().compile_model(small_model(), "CPU")
        request, queue = compiled.create_infer_request(), ov.AsyncInferQueue(compiled, 2)
        request.set_callback(called.append, "of the request")
        queue.set_callback(lambda _request, data: called.append(data))
    for _ in range(2):
        request.start_async(ones(1))
        request.wait()
        queue.start_async(ones(1), "of the queue")
        queue.wait_all()
    assert called == ["of the request", "of the queue"] * 2 and kept.calls == 0


def test_a_condition_cannot_change_what_the_application_gets(tmp_path: Path) -> None:
    import openvino as ov

    def writes(_inputs: object, outputs: Any) -> bool:
        next(iter(outputs.values()))[...] = 0
        return True

    with stepper.capture(writes, tmp_path) as kept:
        request = ov.Core().compile_model(small_model(), "CPU").create_infer_request()
        assert request.infer(ones(1, 4), share_outputs=True)[0].tolist() == [[2, 2, 2]]
    assert not kept.cases and "read-only" in kept.troubles[0]


@pytest.mark.parametrize("device", ["CPU", "AUTO", "HETERO:CPU"])
def test_the_bits_in_which_a_device_computes_are_known_whoever_chose_it(device: str, tmp_path: Path) -> None:
    import openvino as ov

    core, options = ov.Core(), {"INFERENCE_PRECISION_HINT": "bf16"}
    truth = core.compile_model(small_model(), "CPU", options).get_property("INFERENCE_PRECISION_HINT").get_type_name()
    with stepper.capture(1, tmp_path) as kept:
        core.compile_model(small_model(), device, options)(ones(1))
    facts = read_case(kept.cases[0]).facts
    assert facts is not None and facts.properties["INFERENCE_PRECISION_HINT"] == truth and facts.device == "CPU"


ENDS = """
import os, signal, sys
import multiprocessing
import numpy as np
import openvino as ov
from openvino import opset13 as op

def work():
    x = op.parameter([1, 3], np.float32, name="x")
    compiled = ov.Core().compile_model(ov.Model([op.result(op.sqrt(x))], [x], "small"), "CPU")
    for number in range(1, 21):
        compiled(np.full((1, 3), -1 if number == 7 else 1, np.float32))

if sys.argv[1] == "forked":
    processes = [multiprocessing.get_context("fork").Process(target=work) for _ in range(3)]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
else:
    work()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.parametrize(("way", "calls", "names"), [
    ("forked", 60, ["case-000007", "case-000007-2", "case-000007-3"]), ("killed", 7, ["case-000007"]),
])  # fmt: skip
def test_processes_that_end_in_other_ways_are_counted(way: str, calls: int, names: list[str], tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text(ENDS)
    words = ("--", sys.executable, "application.py", way)
    answer = json.loads(command("capture", "--to", "kept", "--json", *words, folder=tmp_path).stdout)
    assert (answer["calls"], answer["hits"], answer["troubles"]) == (calls, len(names), [])
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == names
    told = command("capture", "--to", "again", *words, folder=tmp_path).stderr
    assert ("1 process ended without a word" in told) == (way == "killed")
