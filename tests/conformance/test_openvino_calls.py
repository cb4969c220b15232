"""Many calls as a loop beside one infer request of OpenVINO that is called as often."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino")

import openvino as ov

import stepper
from stepper.cli import main
from stepper.ir.model import Model
from stepper.openvino.peer import OpenVINOPeer
from tests.calls.samples import ALL, FOLDER, GRU, KV_CACHE, VAD, SampleCalls
from tests.conformance.runtime import CONFIGURATION
from tests.conformance.runtime_faults import KEYS

ROOT = Path(__file__).parents[2]


def called(sample: SampleCalls, count: int) -> list[dict[str, np.ndarray]]:
    """What an application gets that makes these calls with one request."""
    request = ov.Core().compile_model(sample.path, "CPU", CONFIGURATION).create_infer_request()
    given, found = dict(sample.same), []
    for number in range(count):
        given |= {name: value[number] for name, value in sample.calls.items()}
        result = request.infer({name: np.array(value, order="C") for name, value in given.items()})
        found.append({port.any_name: np.array(value) for port, value in result.items()})
        given |= {to: found[-1][name] for name, to in sample.carry.items()}
    return found


def loop_of(sample: SampleCalls) -> tuple[Model, list[np.ndarray], list[dict[str, np.ndarray]]]:
    model, inputs = sample.over_calls()
    return model, stepper.bind_inputs(model, inputs), called(sample, len(sample.expected))


@pytest.mark.parametrize("sample", ALL, ids=lambda one: one.name)
def test_both_give_what_an_application_gets(sample: SampleCalls) -> None:
    model, inputs, truth = loop_of(sample)
    wanted = np.array([one[sample.output] for one in truth])
    ours = stepper.run(model, dict(enumerate(inputs)))
    theirs = OpenVINOPeer(model).run(inputs)
    right = KEYS - 1 if sample is KV_CACHE else len(wanted)  # the plugin's attention is wrong from there on
    for outputs in (list(ours.values()), theirs):
        assert len(outputs) == len(ours)
        np.testing.assert_allclose(outputs[0].reshape(wanted.shape)[:right], wanted[:right], rtol=1e-4, atol=1e-5)
    for name in sample.carry:
        position = list(ours).index(name)
        np.testing.assert_allclose(ours[name], truth[-1][name], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(theirs[position], truth[-1][name])


def test_calls_of_other_lengths_are_made_as_an_application_makes_them() -> None:
    sequence = GRU.calls["sequence"][0]
    parts = [sequence[:, :4], sequence[:, 4:5], sequence[:, 5:]]
    model, inputs = stepper.over_calls(GRU.path, {"sequence": parts})
    (theirs,) = OpenVINOPeer(model).run(stepper.bind_inputs(model, inputs))
    request = ov.Core().compile_model(GRU.path, "CPU", CONFIGURATION).create_infer_request()
    pieces = [request.infer([np.array(part, order="C")])[0].copy() for part in parts]
    np.testing.assert_array_equal(theirs, pieces[-1])


@pytest.mark.parametrize("sample", [VAD, KV_CACHE], ids=lambda one: one.name)
def test_each_operation_and_each_body_of_the_calls_is_compared(
    sample: SampleCalls, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", str(sample.path), "--calls", str(FOLDER / f"{sample.name}_calls.npz"), "--input", "*=zeros"]
    words += [word for name, to in sample.carry.items() for word in ("--carry", f"{name}={to}")]
    if sample is KV_CACHE:
        words += ["--shape", "past_key=1,0,6", "--shape", "past_value=1,0,6"]
    if sample is KV_CACHE and len(sample.expected) >= KEYS:
        assert main(words) == 1
        out = " ".join(capsys.readouterr().out.split())
        assert f"iteration {KEYS - 1}," in out and "compiled with SNIPPETS_MODE=DISABLE the runtime agrees" in out
    else:
        assert main([*words, "-q"]) == 0
        assert f"in {len(sample.expected)} iterations" in capsys.readouterr().out


def test_a_second_inference_does_not_begin_with_what_the_first_has_grown(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "sample_models" / "growing_tensor"
    given = [str(folder / "model.xml"), "--inputs", str(folder / "inputs.npz"), "--calls", "3", "-q"]
    assert main(["compare", *given]) == 0
    assert "in 39 iterations and 2 outputs agree" in capsys.readouterr().out


def test_a_cache_in_variables_grows_as_the_one_outside_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """MakeStateful of the sample with its cache outside, beside OpenVINO and beside the original."""
    from openvino._offline_transformations import apply_make_stateful_transformation

    model = ov.Core().read_model(KV_CACHE.path)
    apply_make_stateful_transformation(model, {"past_key": "present_key", "past_value": "present_value"})
    path, calls = tmp_path / "stateful.xml", ("--calls", str(FOLDER / "kv_cache_calls.npz"), "-q")
    ov.save_model(model, path, compress_to_fp16=False)
    assert main(["compare", str(path), *calls]) == 0
    assert "in 10 iterations and 1 output agree" in capsys.readouterr().out
    carry = [word for name, to in KV_CACHE.carry.items() for word in ("--carry", f"{name}={to}")]
    empty = [word for name in KV_CACHE.same for word in ("--input", f"{name}=zeros", "--shape", f"{name}=1,0,6")]
    for one, other in ((path, KV_CACHE.path), (KV_CACHE.path, path)):
        assert main(["compare", str(one), "--with", str(other), *calls, *carry, *empty]) == 0
        assert "in 10 iterations and 1 output agree" in capsys.readouterr().out
