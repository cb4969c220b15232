"""Requests as applications use them: variables that are reset and set, requests of a queue, busy ones, calls refused.

What the application got is the truth: its outputs, and OpenVINO's own errors.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.cases.case import read_case
from stepper.cli import main
from stepper.engine.array_files import read_archive

pytest.importorskip("openvino")

import openvino as ov
from openvino import opset6, opset13

ONE = np.ones((1, 3), np.float32)
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def summing(initial: float = 0.0) -> Any:
    """y = log(h + x), where h becomes h + x; h begins as `initial`."""
    x = opset13.parameter([1, 3], np.float32, name="x")
    h = opset6.read_value(opset13.constant(np.full((1, 3), initial, np.float32)), "h")
    total = opset13.add(h, x, name="total")
    y = opset13.log(total, name="y")
    model = ov.Model(results=[opset13.result(y)], sinks=[opset6.assign(total, "h")], parameters=[x], name="summing")
    model.inputs[0].tensor.set_names({"x"})
    model.outputs[0].tensor.set_names({"y"})
    return model


def logarithm(shape: list[int]) -> Any:
    x = opset13.parameter(shape, np.float32, name="x")
    model = ov.Model([opset13.result(opset13.log(x, name="y"))], [x], "logarithm")
    model.inputs[0].tensor.set_names({"x"})
    model.outputs[0].tensor.set_names({"y"})
    return model


def compiled(model: Any) -> Any:
    return ov.Core().compile_model(model, "CPU", EXACT)


def request_of(model: Any) -> Any:
    return compiled(model).create_infer_request()


def reset_all(request: Any) -> None:
    request.reset_state()


def reset_one(request: Any) -> None:
    request.query_state()[0].reset()


def set_to_seven(request: Any) -> None:
    request.query_state()[0].state = ov.Tensor(np.full((1, 3), 7, np.float32))


def set_to_zero(request: Any) -> None:
    request.query_state()[0].state = ov.Tensor(np.zeros((1, 3), np.float32))


@pytest.mark.parametrize("change", [reset_all, reset_one, set_to_seven, set_to_zero])
@pytest.mark.parametrize("initial", [0.0, 5.0])
@pytest.mark.parametrize("calls", [1, 12])
def test_a_case_begins_behind_what_the_application_did_with_its_variables(
    change: Callable[[Any], None], initial: float, calls: int, tmp_path: Path
) -> None:
    """The call that makes the NaN, with all that led to it since the variable was reset or set, runs again alike."""
    with stepper.capture("nan", tmp_path, calls=calls) as kept:
        request = request_of(summing(initial))
        for _ in range(4):
            request.infer(ONE)
        change(request)
        before = [request.infer(ONE)[0].copy() for _ in range(3)]
        bad = request.infer(-50 * ONE)[0].copy()
    assert np.isnan(bad).all() and not np.isnan(before).any()
    (folder,) = kept.cases
    assert main(["compare", str(folder)]) == 0
    assert main(["run", str(folder), "--break", "nan", "-q"]) == 1
    case = read_case(folder)
    assert case.facts is not None
    if calls > 1:
        assert case.calls is not None
        assert sorted(one.name for one in case.calls.iterdir()) == [f"{number:06}.npz" for number in (5, 6, 7, 8)]
        (told,) = case.facts.trouble
        assert told == "the calls begin with call 5: the application reset or set a variable before call 5"


def test_variables_of_one_request_are_no_matter_of_another(tmp_path: Path) -> None:
    with stepper.capture("nan", tmp_path, calls=12) as kept:
        model = compiled(summing())
        first, second = model.create_infer_request(), model.create_infer_request()
        for number in range(6):
            first.infer(ONE)
            second.infer(ONE)
            if number == 2:
                second.query_state()[0].reset()
        first.infer(-50 * ONE)
    (folder,) = kept.cases
    case = read_case(folder)
    assert case.calls is not None and len(list(case.calls.iterdir())) == 7
    assert main(["compare", str(folder)]) == 0


def test_the_first_call_of_a_request_begins_as_the_model_says_and_the_second_with_a_zero_that_is_left(
    tmp_path: Path,
) -> None:
    with stepper.capture("any", tmp_path) as kept:
        request = request_of(summing(5.0))
        request.infer(-5 * ONE)
        request.infer(ONE)
    first, second = (read_case(folder) for folder in kept.cases)
    assert first.states is None
    assert second.states is not None and read_archive(second.states)["h"].read().tolist() == [[0, 0, 0]]
    assert all(main(["compare", str(folder)]) == 0 for folder in kept.cases)


@pytest.mark.parametrize("model", [summing, lambda: logarithm([1, 3])])
def test_calls_of_requests_that_have_gone_take_no_memory(model: Callable[[], Any], tmp_path: Path) -> None:
    """An application may make a request for each call."""
    inputs: list[weakref.ref[Any]] = []

    class Kept(stepper.capture):  # type: ignore[misc, name-defined]
        def begun(self, call: Any) -> None:
            inputs.append(weakref.ref(call.inputs["x"]))
            super().begun(call)

    with Kept("nan", tmp_path, calls=3) as kept:
        made = compiled(model())
        for _ in range(50):
            made.create_infer_request().infer(ONE)
        stays = made.create_infer_request()
        for _ in range(5):
            stays.infer(ONE)
        gc.collect()
        assert sum(one() is not None for one in inputs) <= 4, "the last three of one request"
        stays.infer(-50 * ONE)
    case = read_case(kept.cases[0])
    assert case.calls is not None and len(list(case.calls.iterdir())) == 3


@pytest.mark.parametrize("way", ["call", "request", "queue"])
def test_calls_that_have_a_request_each_are_a_loop_with_what_is_carried(way: str, tmp_path: Path) -> None:
    """y = log(h + x), and h + x is handed on by the application."""
    x, h = (opset13.parameter([1, 3], np.float32, name=name) for name in "xh")
    total = opset13.add(h, x)
    model = ov.Model([opset13.result(opset13.log(total)), opset13.result(total)], [x, h], "outside")
    for port, name in zip([*model.inputs, *model.outputs], ["x", "h", "y", "next"], strict=True):
        port.tensor.set_names({name})
    state, other = np.zeros((1, 3), np.float32), logarithm([1, 3])
    with stepper.capture("nan", tmp_path, calls=4) as kept:
        made, beside = compiled(model), compiled(other)
        for number in range(1, 8):
            given = {"x": -50 * ONE if number == 7 else number * ONE, "h": state}
            beside.create_infer_request().infer(ONE)
            if way == "call":
                state = made.infer_new_request(given)["next"].copy()
            elif way == "request":
                state = made.create_infer_request().infer(given)["next"].copy()
            else:
                seen: list[np.ndarray] = []
                queue = ov.AsyncInferQueue(made, 1)
                queue.set_callback(lambda one, into: into.append(one.get_tensor("next").data.copy()))
                queue.start_async(given, seen)
                queue.wait_all()
                (state,) = seen
    (folder,) = kept.cases
    case = read_case(folder)
    assert case.calls is not None and case.facts is not None and case.facts.carried == (("next", "h"),)
    names = sorted(one.stem for one in case.calls.iterdir())
    assert names == ["000008", "000010", "000012", "000014"], "those of this model"
    assert main(["compare", str(folder)]) == 0


def test_a_window_of_calls_ends_at_a_call_that_failed_and_at_inputs_that_cannot_be_joined(tmp_path: Path) -> None:
    with stepper.capture("nan", tmp_path / "failed", calls=5) as kept:
        request = request_of(logarithm([1, 3]))
        request.infer(ONE)
        with pytest.raises(RuntimeError):
            request.infer(np.ones((2, 3), np.float32))
        request.infer(ONE)
        request.infer(-ONE)
    case = read_case(kept.cases[0])
    assert case.calls is not None and [one.name for one in sorted(case.calls.iterdir())] == ["000003.npz", "000004.npz"]
    with stepper.capture("nan", tmp_path / "sizes", calls=5) as kept:
        request = request_of(logarithm([-1, -1]))
        for size, value in ((1, 1), (2, 1), (2, -1)):
            request.infer(np.full((size, size), value, np.float32))
    case = read_case(kept.cases[0])
    assert case.calls is not None and len(list(case.calls.iterdir())) == 2
    assert main(["compare", str(kept.cases[0])]) == 0


def test_numbers_alone_are_compared_as_the_application_has_them(tmp_path: Path) -> None:
    with stepper.capture("nan", tmp_path, calls=3) as kept:
        request = request_of(logarithm([]))
        for number in (1, 2, -3):
            request.infer(np.float32(number))
    assert main(["compare", str(kept.cases[0])]) == 0
    assert main(["compare", str(kept.cases[0]), "--calls", "1"]) == 0


def slow() -> Any:
    """Takes some tenths of a second."""
    x = opset13.parameter([700, 700], np.float32, name="x")
    y = x
    for _ in range(30):
        y = opset13.tanh(opset13.matmul(y, x, False, False))
    return ov.Model([opset13.result(y)], [x], "slow")


def test_a_request_that_is_busy_refuses_a_second_call_as_without_a_capture(tmp_path: Path) -> None:
    def told() -> tuple[list[str], np.ndarray]:
        request, given = request_of(slow()), np.zeros((700, 700), np.float32)
        request.start_async({0: given})
        errors = []
        for call in (request.start_async, request.infer):
            try:
                call({0: given + 1})
            except RuntimeError as error:
                errors.append(str(error).strip())
        request.wait()
        return errors, request.get_output_tensor(0).data.copy()

    without = told()
    with stepper.capture("any", tmp_path) as kept:
        within = told()
    assert len(without[0]) == 2 and within[0] == without[0], "Infer Request is busy"
    assert np.array_equal(without[1], within[1])
    assert not kept.troubles
    of_first = [read_case(folder) for folder in kept.cases if folder.name == "case-000001"]
    assert of_first[0].outputs is not None, "the call that was under way went on"


def test_requests_that_are_taken_from_a_queue_are_known_with_their_model(tmp_path: Path) -> None:
    with stepper.capture("nan", tmp_path) as kept:
        queue = ov.AsyncInferQueue(compiled(logarithm([1, 3])), 3)
        for number, request in enumerate(queue):
            request.infer(-ONE if number == 1 else ONE)
        queue[2].start_async([-ONE])
        queue[2].wait()
    assert (kept.calls, kept.hits, [folder.name for folder in kept.cases]) == (4, 2, ["case-000002", "case-000004"])
    assert all(read_case(folder).model is not None for folder in kept.cases)


def test_a_callback_that_writes_over_outputs_of_calls_which_share_one_array_hides_none(tmp_path: Path) -> None:
    seen = []

    def callback(request: Any, _number: int) -> None:
        output = request.get_output_tensor(0).data
        seen.append(bool(np.isnan(output).all()))
        output[:] = 0

    with stepper.capture("nan", tmp_path, 20) as kept:
        queue, shared = ov.AsyncInferQueue(compiled(logarithm([1, 3])), 4), -ONE
        queue.set_callback(callback)
        for number in range(12):
            queue.start_async({0: shared}, number, share_inputs=True)
        queue.wait_all()
    assert seen == [True] * 12 and (kept.hits, len(kept.cases)) == (12, 12)


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("way", ["get_output_tensor", "get_tensor", "output_tensors", "results"])
@pytest.mark.parametrize("is_queue", [False, True])
def test_a_callback_that_was_set_before_the_capture_hides_no_outputs_that_it_writes_over(
    is_queue: bool, way: str, shares: bool, tmp_path: Path
) -> None:
    model = logarithm([1, 3])
    before = compiled(model)
    request: Any = ov.AsyncInferQueue(before, 3) if is_queue else before.create_infer_request()
    seen: dict[int, np.ndarray] = {}

    def outputs_of(one: Any) -> np.ndarray:
        if way == "get_output_tensor":
            return one.get_output_tensor(0).data
        if way == "get_tensor":
            return one.get_tensor("y").data
        return one.output_tensors[0].data if way == "output_tensors" else next(iter(one.results.values()))

    def over(one: Any, number: int) -> None:
        seen[number] = outputs_of(one).copy()
        one.get_output_tensor(0).data[:] = 0

    request.set_callback(over if is_queue else lambda number: over(request, number), *([] if is_queue else [0]))
    with stepper.capture("nan", tmp_path, model=model) as kept:
        inputs = [-ONE if number == 7 else ONE + number for number in range(20)]  # a queue that shares keeps none alive
        for number, x in enumerate(inputs):
            request.start_async({"x": x}, number, share_inputs=shares)
            if not is_queue:
                request.wait()
        if is_queue:
            request.wait_all()
    assert [number for number, value in seen.items() if np.isnan(value).any()] == [7]
    (folder,) = kept.cases
    assert (kept.calls, kept.hits, kept.troubles, folder.name) == (20, 1, [], "case-000008")
    assert main(["compare", str(folder)]) == 0
    for number in (0, 1):
        request.start_async({"x": ONE}, number)
        request.wait_all() if is_queue else request.wait()
    assert seen[0].tolist() == [[0, 0, 0]], "it is called as before"


def test_a_call_of_a_queue_that_is_refused_is_an_error_and_makes_no_case_of_the_call_before(tmp_path: Path) -> None:
    with stepper.capture(("nan", "error"), tmp_path) as kept:
        queue = ov.AsyncInferQueue(compiled(logarithm([1, 3])), 2)  # the one that refuses is never idle again
        queue.start_async({0: -ONE})
        queue.wait_all()
        with pytest.raises(RuntimeError):
            queue.start_async({0: np.ones((2, 3), np.float32)})
        queue.start_async({0: ONE})
        queue.wait_all()
    triggers = [read_case(folder).facts.trigger.kind for folder in kept.cases]  # type: ignore[union-attr]
    assert (kept.calls, triggers) == (3, ["nan", "error"])


def test_a_call_that_raises_while_its_inputs_are_prepared_is_an_error_too(tmp_path: Path) -> None:
    with stepper.capture("error", tmp_path) as kept:
        request = request_of(logarithm([1, 3]))
        for given in ({"nothing": ONE}, {7: ONE}):
            with pytest.raises((RuntimeError, ValueError, KeyError, StopIteration)):
                request.infer(given)
        request.infer(ONE)
    assert (kept.calls, kept.hits) == (3, 2)


def test_weights_that_were_replaced_after_a_model_was_compiled_are_not_those_of_the_case(tmp_path: Path) -> None:
    x = opset13.parameter([1, 3], np.float32, name="x")
    weights = opset13.constant(np.full((1, 3), 2, np.float32))
    ov.save_model(ov.Model([opset13.result(opset13.multiply(x, weights))], [x], "m"), tmp_path / "m.xml", False)
    ov.save_model(
        ov.Model([opset13.result(opset13.multiply(x, opset13.constant(np.full((1, 3), 4, np.float32))))], [x], "m"),
        tmp_path / "other.xml", False,
    )  # fmt: skip
    with stepper.capture("any", tmp_path / "cases") as kept:
        model = ov.Core().compile_model(tmp_path / "m.xml", "CPU", EXACT)
        (tmp_path / "other.bin").replace(tmp_path / "m.bin")
        assert model(ONE)[0].tolist() == [[2, 2, 2]]
    facts = read_case(kept.cases[0]).facts
    assert facts is not None and facts.trouble[0].endswith("m.xml has changed since it was compiled")


def test_a_model_of_a_case_that_was_changed_is_told_beside_the_outputs_of_the_application(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stepper.capture("any", tmp_path) as kept:
        request_of(logarithm([1, 3])).infer(ONE)
    folder = kept.cases[0]
    assert main(["compare", str(folder)]) == 0 and not capsys.readouterr().err
    (folder / "model.xml").write_text((folder / "model.xml").read_text().replace('type="Log"', 'type="Exp"'))
    assert main(["compare", str(folder)]) == 1
    assert "its model is not the one that the application ran" in capsys.readouterr().err


def test_what_the_application_got_is_not_written_over_and_calls_have_their_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stepper.capture("nan", tmp_path, calls=3) as kept:
        request = request_of(logarithm([1, 3]))
        for sign in (1, 1, -1):
            request.infer(sign * ONE)
    folder = kept.cases[0]
    for name in ("outputs.npz", "calls_outputs.npz", "case.json", "calls/000001.npz"):
        assert main(["run", str(folder), "-o", str(folder / name)]) == 2
        assert "that is a file of " in capsys.readouterr().err
    np.savez(tmp_path / "other.npz", x=ONE)
    assert main(["run", str(folder), "--inputs", str(tmp_path / "other.npz")]) == 2
    assert "'x' has its values from the calls; --calls 1 runs one of a case" in capsys.readouterr().err
    assert main(["run", str(folder), "--calls", "1", "--inputs", str(tmp_path / "other.npz"), "--break", "nan"]) == 0


def test_texts_that_a_case_keeps_are_those_that_are_computed(tmp_path: Path) -> None:
    x = opset13.parameter([2], ov.Type.string, name="x")
    model = ov.Model([opset13.result(x)], [x], "texts")
    model.inputs[0].tensor.set_names({"x"})
    with stepper.capture("any", tmp_path) as kept:
        ov.Core().compile_model(model, "CPU")(np.array(["a", "bé"]))
    assert main(["compare", str(kept.cases[0])]) == 0
