"""Every dialect in which loops were written: read, and run to values derived by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.errors import LimitReached, ModelError, UsageError
from tests.ir import tiny_models
from tests.ir.first_draft import first_draft
from tests.ir.texts import write
from tests.ir.tiny_models import Texts
from tests.tables import each_row

SAMPLES = Path(__file__).parents[2] / "sample_models"


def run(folder: Path, texts: Texts, inputs: Mapping[str | int, Any], **options: Any) -> dict[str, list[Any]]:
    model = stepper.read_model(write(folder, *texts))
    return {name: value.tolist() for name, value in stepper.run(model, inputs, **options).items()}


@each_row(
    ("texts", "inputs", "expected"),
    [
        (tiny_models.plain, {"x": [1, 1, 1]}, {"out": [2, 3, 4]}),
        (tiny_models.loop, {"x": [10]}, {"last": [16], "all": [11, 13, 16]}),
        (
            tiny_models.iterator,
            {"x": [[0, 1], [2, 3], [4, 5], [6, 7]]},
            {"sum": [[12, 16]], "sums": [[0, 1], [2, 4], [6, 9], [12, 16]]},
        ),
        (tiny_models.branch, {"up": True, "x": 3}, {"out": 13}),
        (tiny_models.branch, {"up": False, "x": 3}, {"out": 30}),
        (lambda: tiny_models.nested(3), {"x": 1}, {"out": 9}),
    ],
)
def test_the_current_names_run(
    tmp_path: Path, texts: Callable[[], Texts], inputs: dict[str | int, Any], expected: dict[str, list[Any]]
) -> None:
    assert run(tmp_path, texts(), inputs) == expected


@each_row("folder", sorted(path.parent for path in SAMPLES.glob("*/model.xml")), ids=lambda path: path.name)
def test_a_sample_model_is_read_and_runs_to_its_recorded_outputs(folder: Path) -> None:
    model = stepper.read_model(folder / "model.xml")
    with np.load(folder / "inputs.npz") as inputs, np.load(folder / "expected.npz") as expected:
        outputs = stepper.run(model, dict(inputs), max_iterations=10_000)
        assert len(expected.files) == len(outputs)
        for name, value in outputs.items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5)


# --- the first draft, with every combination of trip count and condition ---------------------------------------------


def test_first_draft_without_trip_count_and_condition_never_ends(tmp_path: Path) -> None:
    model = stepper.read_model(write(tmp_path, *first_draft(trip_count=None, condition=False)))
    with pytest.raises(LimitReached, match="more than 50 iterations"):
        stepper.run(model, {"x": [0.0]}, max_iterations=50)


@each_row("condition_port", [0, 1, 7])
def test_first_draft_with_a_condition_is_a_while_loop(tmp_path: Path, condition_port: int) -> None:
    texts = first_draft(trip_count=None, condition=True, condition_port=condition_port)
    outputs = run(tmp_path, texts, {"go": True, "x": [0]})
    assert outputs == {"last": [3], "all": [1, 2, 3], "numbers": [0, 1, 2]}


def test_first_draft_with_a_false_condition_runs_no_iteration(tmp_path: Path) -> None:
    outputs = run(tmp_path, first_draft(trip_count=None, condition=True), {"go": False, "x": [0]})
    assert outputs == {"last": [0], "all": [], "numbers": []}


def test_first_draft_with_a_true_condition_is_a_do_while_loop(tmp_path: Path) -> None:
    outputs = run(tmp_path, first_draft(trip_count=None, condition=True), {"go": True, "x": [10]})
    assert outputs == {"last": [11], "all": [11], "numbers": [0]}


def test_first_draft_with_a_trip_count_alone_ignores_the_condition_of_the_body(tmp_path: Path) -> None:
    outputs = run(tmp_path, first_draft(trip_count=5, condition=False), {"x": [0]})
    assert outputs == {"last": [5], "all": [1, 2, 3, 4, 5], "numbers": [0, 1, 2, 3, 4]}


@each_row(("trip_count", "go", "count"), [(5, True, 3), (2, True, 2), (5, False, 0), (0, True, 0), (-1, True, 3)])
def test_first_draft_with_both_ends_with_the_first_of_them(
    tmp_path: Path, trip_count: int, go: bool, count: int
) -> None:
    outputs = run(tmp_path, first_draft(trip_count=trip_count, condition=True), {"go": go, "x": [0]})
    numbers = list(range(count))
    assert outputs == {"last": [count], "all": [number + 1 for number in numbers], "numbers": numbers}


def test_first_draft_is_refused_under_the_rules_of_openvino(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="first draft of Loop-5, which OpenVINO refuses"):
        run(tmp_path, first_draft(trip_count=5, condition=True), {"go": True, "x": [0]}, rules="openvino")


@each_row("missing", ["from-operation", "to-operation", "internal_operation_id"])
def test_a_missing_attribute_of_the_first_draft_is_named(tmp_path: Path, missing: str) -> None:
    text, weights = first_draft(trip_count=5, condition=False)
    with pytest.raises(ModelError, match=r"has no attribute '(from-layer|to-layer|internal_layer_id)'"):
        stepper.read_model(write(tmp_path, text.replace(missing, "other"), weights))


# --- older and unusual files ------------------------------------------------------------------------------------------


def test_a_constant_may_have_type_and_shape_on_its_port_alone(tmp_path: Path) -> None:
    text, weights = tiny_models.plain()
    changed = text.replace('<data element_type="f32" shape="3" offset', "<data offset")
    assert run(tmp_path, (changed, weights), {"x": [1, 1, 1]}) == {"out": [2, 3, 4]}


def test_a_constant_with_an_open_port_and_no_shape_is_refused(tmp_path: Path) -> None:
    text, weights = tiny_models.plain()
    changed = text.replace('<data element_type="f32" shape="3" offset', "<data offset").replace("<dim>3", "<dim>-1")
    with pytest.raises(ModelError, match="is not a list of non-negative integers"):
        stepper.read_model(write(tmp_path, changed, weights))


def test_parameters_of_a_body_may_have_no_data(tmp_path: Path) -> None:
    text, weights = tiny_models.loop()
    body = text.index("<body>")
    changed = text[:body] + text[body:].replace('<data element_type="f32" shape="1"/>\n', "")
    changed = changed.replace('<data element_type="i64" shape=""/>\n', "")
    assert changed.count("<data element_type") == 5  # four Consts and the model's own Parameter
    assert run(tmp_path, (changed, weights), {"x": [10]}) == {"last": [16], "all": [11, 13, 16]}


def test_the_iteration_number_goes_to_the_one_parameter_that_is_not_mapped(tmp_path: Path) -> None:
    text, weights = tiny_models.loop()
    entry = '<input external_port_id="-1" internal_layer_id="1" purpose="current_iteration"/>\n'
    assert run(tmp_path, (text.replace(entry, ""), weights), {"x": [10]}) == {"last": [16], "all": [11, 13, 16]}


def test_a_port_map_entry_without_the_attributes_of_slicing_has_their_defaults(tmp_path: Path) -> None:
    text, weights = tiny_models.iterator()
    changed = text.replace(' start="0" end="-1" stride="1" part_size="1"', "")
    outputs = run(tmp_path, (changed, weights), {"x": [[0, 1], [2, 3], [4, 5], [6, 7]]})
    assert outputs == {"sum": [[12, 16]], "sums": [[0, 1], [2, 4], [6, 9], [12, 16]]}


def test_outputs_of_a_port_map_are_numbered_by_order_not_by_name(tmp_path: Path) -> None:
    text, weights = tiny_models.loop()
    changed = text.replace('external_port_id="3" int', 'external_port_id="70" int')
    changed = changed.replace('external_port_id="4" int', 'external_port_id="900" int')
    assert run(tmp_path, (changed, weights), {"x": [10]}) == {"last": [16], "all": [11, 13, 16]}


@each_row("version", [10, 11])
def test_both_versions_of_the_net_are_read(tmp_path: Path, version: int) -> None:
    text, weights = tiny_models.plain()
    model = stepper.read_model(write(tmp_path, text.replace('version="11"', f'version="{version}"'), weights))
    assert model.version == version


@each_row("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_every_encoding_of_unicode_is_read(tmp_path: Path, encoding: str) -> None:
    text, weights = tiny_models.plain()
    model = stepper.read_model(write(tmp_path, text.replace('"sum"', '"Σ"').encode(encoding), weights))
    assert model.graph.by_id[2].name == "Σ"


def test_the_case_of_a_type_does_not_count(tmp_path: Path) -> None:
    text, weights = tiny_models.loop()
    changed = text.replace('"Loop"', '"loop"').replace('"Const"', '"CONSTANT"').replace('"Parameter"', '"parameter"')
    assert run(tmp_path, (changed, weights), {"x": [10]})["last"] == [16]


def test_tensor_names_are_split_at_commas_that_are_not_escaped(tmp_path: Path) -> None:
    text, weights = tiny_models.plain()
    changed = text.replace('<port id="0" precision="F32"', '<port id="0" precision="F32" names="a,b\\,c"', 1)
    assert run(tmp_path, (changed, weights), {"b,c": [1, 1, 1]}) == {"out": [2, 3, 4]}
    with pytest.raises(UsageError, match="no input 'b'"):
        run(tmp_path, (changed, weights), {"b": [1, 1, 1]})


def test_comments_instructions_and_unknown_elements_are_passed_over(tmp_path: Path) -> None:
    text, weights = tiny_models.loop()
    changed = text.replace("<layers>", "<!-- c --><?p i?><rt_info><body/></rt_info><layers><!-- c -->")
    changed = changed.replace("<edges>", "<edges><!-- c --><?p i?><rt_info/>").replace(
        "<dim>", "<!-- c --><dim><!-- c -->"
    )
    assert run(tmp_path, (changed, weights), {"x": [10]})["last"] == [16]
