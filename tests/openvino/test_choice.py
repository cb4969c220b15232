"""Who is asked to compute what, and what is said where OpenVINO is not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.cli import main
from stepper.errors import UnsupportedOperation, UsageError
from stepper.ir.model import Layer, Port
from stepper.openvino import partner, runtime
from stepper.openvino.layers import LayerInput, fatal, layer_text, must_be_constant, needs_open_shapes
from stepper.openvino.partner import OpenVINOPartner
from stepper.openvino.peer import OpenVINOPeer
from tests.engine.subjects import sums
from tests.openvino.partners import read

SAMPLE = Path(__file__).parents[2] / "sample_models" / "for_loop"
RUN = ["run", str(SAMPLE / "model.xml"), "--inputs", str(SAMPLE / "inputs.npz")]


def layer(type: str, name: str = "layer", definition: int | None = 1, **attributes: str) -> Layer:
    output = Port(1, None, (-1,), (), 1)
    return Layer(1, name, type, f"opset{definition}", definition, attributes, (), (output,), (), 1)


@pytest.fixture
def without_openvino(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def missing(name: str, *rest: Any) -> Any:
        return None if name in ("openvino", "onnx", "onnxruntime") else found(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", missing)


@pytest.fixture
def with_openvino(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were installed, for what only asks."""
    monkeypatch.setattr(partner, "ensure_installed", lambda _what: None)
    monkeypatch.setattr(runtime.Runtime, "check", lambda _self: None)


@pytest.mark.usefixtures("with_openvino")
@pytest.mark.parametrize(
    "engine, choices, given_away",
    [
        ("numpy", {}, set()),
        ("openvino", {}, {"encoder/a", "encoder/b", "decoder/a"}),
        ("numpy", {"matmul": "openvino"}, {"encoder/a"}),
        ("numpy", {"encoder/*": "openvino"}, {"encoder/a", "encoder/b"}),
        ("openvino", {"encoder/*": "numpy"}, {"decoder/a"}),
        ("numpy", {"encoder/*": "openvino", "Tanh": "numpy"}, {"encoder/a"}),
    ],
)
def test_the_last_choice_that_fits_counts(engine: str, choices: dict[str, str], given_away: set[str]) -> None:
    layers = [layer("MatMul", "encoder/a"), layer("Tanh", "encoder/b"), layer("Add", "decoder/a")]
    chosen = OpenVINOPartner(engine, choices)
    assert {each.name for each in layers if chosen.computes(each, has_kernel=True)} == given_away
    assert all(chosen.computes(each, has_kernel=False) for each in layers), "what has no kernel is always its own"


@pytest.mark.usefixtures("without_openvino")
@pytest.mark.parametrize(
    "words, said",
    [
        ([*RUN, "--engine", "openvino"], "the engine openvino needs OpenVINO: pip install 'loop-stepper[openvino]'"),
        ([*RUN, "--engine-for", "Add=openvino"], "the engine openvino needs OpenVINO"),
        ([*RUN, "--engine-for", "Add"], "--engine-for 'Add' is not PATTERN=ENGINE"),
        ([*RUN, "--engine-for", "Add=torch"], "there is no engine 'torch'; choose numpy or openvino"),
        ([*RUN, "--engine-for", "Adder=numpy"], "no operation of the model has the type 'Adder'"),
        ([*RUN, "--device", "GPU"], "--device is for OpenVINO; give it operations with --engine or --engine-for"),
        ([*RUN, "--precision", "bf16"], "--precision is for OpenVINO"),
        (["passes", *RUN[1:]], "stepper passes needs OpenVINO: pip install 'loop-stepper[openvino]'"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == UsageError.exit_code
    streams = capsys.readouterr()
    assert said in streams.err
    assert len(streams.err.splitlines()) == 1
    assert not streams.out


@pytest.mark.usefixtures("without_openvino")
def test_without_openvino_a_run_stops_where_only_it_could_go_on(tmp_path: Path) -> None:
    said = r"powers' #0 > Triple 'tripled': there is no kernel for Triple of extension \(line \d+ of the model\); "
    with pytest.raises(UnsupportedOperation, match=said + r"OpenVINO may compute it: pip install"):
        stepper.run(read(tmp_path), {"x": np.float32(1)}, partner=OpenVINOPartner())


@pytest.mark.usefixtures("without_openvino")
def test_without_openvino_nothing_else_changes(tmp_path: Path) -> None:
    model, inputs = sums().read(tmp_path), {0: np.arange(5, dtype=np.float32)}
    outputs = stepper.run(model, inputs, partner=OpenVINOPartner())
    assert outputs.computed_by == {}
    assert main(RUN) == 0


@pytest.mark.usefixtures("without_openvino")
def test_a_comparison_without_openvino_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="comparing with OpenVINO needs OpenVINO: pip install"):
        OpenVINOPeer(sums().read(tmp_path))


def test_a_layer_is_written_with_its_attributes_and_constants() -> None:
    inputs = [LayerInput("f32", ["2", "?"]), LayerInput("i64", ["1"], 0, 8)]
    text = layer_text(layer("Odd", mode='a "<b>"\n&\tc', value="1"), inputs)
    for part in (
        '<data element_type="f32" shape="2,?"/>',
        'type="Const" version="opset1"><data element_type="i64" shape="1" offset="0" size="8"/>',
        '<data mode="a &quot;&lt;b&gt;&quot;&#10;&amp;&#9;c" value="1"/>',
        '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>',
    ):
        assert part in text


def test_what_would_end_the_process_is_kept_from_openvino() -> None:
    numbers, nothing = np.zeros((2, 3)), np.zeros(0, np.int64)
    assert needs_open_shapes(layer("Gather"), [numbers, nothing, np.int64(0)])
    assert not needs_open_shapes(layer("Gather"), [numbers, np.zeros(1), np.int64(0)])
    assert [must_be_constant(layer("SliceScatter"), index) for index in range(4)] == [False, False, True, True]
    assert fatal(layer("LRN"), [numbers, nothing])
    assert fatal(layer("AvgPool", definition=16), [numbers])
    assert not fatal(layer("AvgPool", definition=14), [numbers])


def test_a_complaint_of_openvino_is_what_it_says_and_not_where() -> None:
    text = (
        "Exception from src/inference/src/cpp/core.cpp:117:\nException from src/plugin.cpp:54:\n"
        "Check 'is_valid' failed at src/core/src/a.cpp:336:\nWhile validating node 'x':\nAxis 7 is out of range.\n\n"
    )
    assert runtime.complaint(RuntimeError(text)) == "While validating node 'x': Axis 7 is out of range."


@pytest.mark.usefixtures("without_openvino")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["compare", "--with", "openvino"],
            "comparing with OpenVINO needs OpenVINO: pip install 'loop-stepper[openvino]'",
        ),
        (["compare"], "comparing with OpenVINO needs OpenVINO: pip install 'loop-stepper[openvino]'"),
        (["debug", "--reference", "openvino", "--script", "-"], "comparing with OpenVINO needs OpenVINO: pip install"),
        (["compare", "--with", "other.onnx"], "other.onnx: cannot be read"),
        (["compare", "--with", "onnx"], "compares a model that came from ONNX; model.xml is not an .onnx file"),
        (["compare", "--with", "onnxruntime"], "compares a model that came from ONNX; model.xml is not an .onnx file"),
        (["compare", "--with", "run.npz", "--device", "CPU"], "--device is for OpenVINO; compare with it"),
        (["compare", "--with", "run.npz", "--precision", "f16"], "--precision is for OpenVINO; compare with it"),
    ],
)
def test_a_reference_that_is_not_there_is_one_sentence(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [words[0], str(SAMPLE / "model.xml"), *words[1:], "--inputs", str(SAMPLE / "inputs.npz")]
    assert main(given) in (2, 3)
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and not captured.out


@pytest.mark.usefixtures("without_openvino")
def test_two_models_are_compared_without_openvino(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(SAMPLE / "model.xml")
    assert main(["compare", path, "--with", path, "--inputs", str(SAMPLE / "inputs.npz")]) == 0
    assert capsys.readouterr().out.startswith("no difference from")
