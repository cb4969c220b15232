"""From what a user gives to the model's inputs: which is meant, and whether it fits."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stepper
from stepper.element_types import ELEMENT_TYPES, STRING, STRING_DTYPE, Array, is_of_numpy
from stepper.engine.inputs import bind_inputs
from stepper.errors import InputError, UsageError
from stepper.ir.model import Model
from tests.models import Graph
from tests.tables import each_row


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """Inputs: 0 'a' (tensor names first, shared), 1 'b' (second, shared), 2 'same', 3 'same', 4 '0'."""
    net = Graph()
    net.parameter("a", "f32", (2,), names="first,shared")
    net.parameter("b", "i64", (-1,), names="second,shared")
    net.parameter("same", "f32", (1,))
    net.parameter("same", "f32", (1,))
    net.result(net.parameter("0", "boolean", (), names="flag"))
    return net.read(tmp_path)


A, B, ONE, FLAG = np.array([1, 2], np.float32), np.array([3, 4, 5]), np.ones(1, np.float32), np.True_


@each_row(
    "keys",
    [
        ("a", "b", 2, 3, "flag"),
        ("first", "second", "2", "3", "0"),
        (0, 1, 2, 3, 4),
        ("a", 1, np.int64(2), "3", "flag"),
    ],
)
def test_an_input_is_meant_by_name_tensor_name_or_position(model: Model, keys: tuple[Any, ...]) -> None:
    arrays = bind_inputs(model, dict(zip(keys, (A, B, ONE, -ONE, FLAG), strict=True)))
    assert [array.tolist() for array in arrays] == [[1, 2], [3, 4, 5], [1], [-1], True]


def test_a_name_goes_before_a_position(model: Model) -> None:
    with pytest.raises(UsageError, match="4 of the model's 5 inputs are missing"):
        bind_inputs(model, {"0": FLAG})


@each_row("key", ["shared", "same"])
def test_a_name_of_several_inputs_is_ambiguous(model: Model, key: str) -> None:
    positions = "0 or 1" if key == "shared" else "2 or 3"
    with pytest.raises(UsageError, match=f"the input name '{key}' is ambiguous; name its position: {positions}"):
        bind_inputs(model, {key: A})


@each_row("key", ["c", "A", "", "-1", -1, 5, "5", "99999999999", 1.5])
def test_an_unknown_input_is_answered_with_the_list_of_all(model: Model, key: Any) -> None:
    with pytest.raises(UsageError) as caught:
        bind_inputs(model, {key: A})
    near = "near is a; " if key == "A" else ""
    assert str(caught.value) == (
        f"the model has no input '{key}'; {near}its inputs are a: f32[2] (also: first, shared) (position 0); "
        "b: i64[?] (also: second, shared) (position 1); same: f32[1] (position 2); same: f32[1] (position 3); "
        "0: boolean[] (also: flag) (position 4)"
    )


@each_row("keys", [("a", "first"), ("a", 0), (1, "1")])
def test_an_input_given_by_two_of_its_names_is_refused(model: Model, keys: tuple[Any, Any]) -> None:
    with pytest.raises(UsageError, match=f"input '{keys[1]}' is given twice"):
        bind_inputs(model, dict.fromkeys(keys, A))


def test_missing_inputs_are_listed_with_what_to_write(model: Model) -> None:
    with pytest.raises(stepper.MissingInputs) as caught:
        bind_inputs(model, {"a": A, 2: ONE, "flag": FLAG})
    assert str(caught.value).splitlines() == [
        "2 of the model's 5 inputs are missing:",
        "  b: i64[?] (also: second, shared)",
        "  same: f32[1]",
        "pass them by name or position: inputs={'b': array, 3: array}",
    ]
    assert caught.value.missing == (("b", "i64", "[?]", ("second", "shared")), ("same", "f32", "[1]", ()))
    assert caught.value.inputs == 5


def test_what_is_done_to_an_array_later_does_not_reach_the_run(model: Model) -> None:
    given = {"a": A.copy(), "b": np.array([1, 2]), 2: ONE.copy(), 3: np.ones(1, np.float32), "flag": np.array(True)}
    views = {key: value[...] for key, value in given.items()}
    for one in views.values():
        one.flags.writeable = False  # read-only itself, but not where its numbers are
    arrays = [*bind_inputs(model, given), *bind_inputs(model, views)]
    before = [array.tolist() for array in arrays]
    for value in given.values():
        value[...] = 0
    assert [array.tolist() for array in arrays] == before
    assert not any(array.flags.writeable for array in arrays)


def test_what_nobody_can_write_to_is_not_copied(tmp_path: Path) -> None:
    net = Graph()
    net.result(net.parameter("x", "f32", (-1,)))
    model = net.read(tmp_path)
    np.save(tmp_path / "x.npy", np.arange(1000, dtype=np.float32))
    frozen = np.arange(3, dtype=np.float32)
    frozen.flags.writeable = False
    for mode, is_kept in (("r", True), ("c", False), ("r+", False)):
        mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
        (array,) = bind_inputs(model, {"x": mapped[1:]})
        assert np.shares_memory(array, mapped) is is_kept, mode
    for kept in (frozen, frozen[1:], np.frombuffer(b"\0" * 8, np.float32)):
        (array,) = bind_inputs(model, {"x": kept})
        assert np.shares_memory(array, kept)
        assert stepper.Machine(stepper.compile_model(model), [array]).stack[0].values[0] is array


def bound(folder: Path, type: str, value: Any, dims: tuple[int, ...] = (-1,)) -> Array:
    net = Graph()
    net.result(net.parameter("x", type, dims))
    (array,) = bind_inputs(net.read(folder), {"x": value})
    return array


@each_row(
    ("type", "value"),
    [
        ("f32", np.array([0.5, -2, np.nan, np.inf])),
        ("f32", np.array([2**24, -(2**24)])),
        ("f16", np.array([0.5, 2048, np.nan], np.float32)),
        ("bf16", np.array([1.5, -np.inf], np.float32)),
        ("f64", np.array([0.1], np.float32)),
        ("f8e4m3", np.array([0.5, 448], np.float32)),
        ("i64", np.array([1.0, -3.0])),
        ("i64", np.array([True, False])),
        ("i32", np.array([2**31 - 1, -(2**31)])),
        ("u8", np.array([0, 255])),
        ("i4", np.array([-8, 7])),
        ("u64", np.array([0, 2**62])),
        ("boolean", np.array([0, 1])),
        ("boolean", np.array([0.0, 1.0])),
        ("f32", np.array([1, 2], ">f4")),
        ("f32", np.array([1, 2], ml_dtypes.bfloat16)),
        ("string", np.array(["a", "héé"])),
        ("string", np.array(["a", ""], object)),
        ("f32", [1, 2.5]),
        ("f32", []),
    ],
)
def test_a_value_is_converted_where_nothing_is_lost(tmp_path: Path, type: str, value: Any) -> None:
    array = bound(tmp_path, type, value)
    assert array.dtype == ELEMENT_TYPES[type].dtype
    expected = np.asarray(value)
    if type == "string":
        assert array.astype(object).tolist() == expected.tolist()
    else:
        np.testing.assert_array_equal(array.astype(np.float64), expected.astype(np.float64))


@each_row(
    ("type", "value"),
    [
        ("f32", np.array([0.1])),
        ("f32", np.array([2**24 + 1])),
        ("f32", np.array([2**63 - 1])),
        ("f32", np.array([2**64 - 1], np.uint64)),
        ("f64", np.array([2**64 - 1], np.uint64)),
        ("f64", np.array([2**53 + 1])),
        ("f16", np.array([70000.0], np.float32)),
        ("f8e4m3", np.array([449.0], np.float32)),
        ("i64", np.array([1.5])),
        ("i64", np.array([np.nan])),
        ("i64", np.array([1e300])),
        ("i64", np.array([2**63], np.uint64)),
        ("i32", np.array([2**31])),
        ("u8", np.array([-1])),
        ("u8", np.array([256])),
        ("i4", np.array([8])),
        ("boolean", np.array([2])),
        ("boolean", np.array([0.5])),
        ("f32", np.array([1 + 2j])),
        ("f32", np.array([1 + 0j])),
        ("f32", np.array(["1"])),
        ("string", np.array([1])),
        ("string", np.array([b"a"])),
        ("f32", np.array([None])),
        ("i64", np.array(["2026-11-20"], "datetime64[D]")),
        ("i64", np.array([1], "timedelta64[s]")),
        ("f32", np.zeros(1, "V4")),
        ("f32", np.zeros(1, [("a", np.float32)])),
    ],
)
def test_a_value_that_would_change_is_refused(tmp_path: Path, type: str, value: Array) -> None:
    with pytest.raises(InputError, match=rf"input 'x' is .*, expected {type}: converting it would lose values"):
        bound(tmp_path, type, value)


@each_row(("dims", "shape"), [((2, 3), (3, 2)), ((2,), (2, 1)), ((), (1,)), ((1,), ()), ((-1, 3), (3,))])
def test_a_shape_that_does_not_fit_is_refused(tmp_path: Path, dims: tuple[int, ...], shape: tuple[int, ...]) -> None:
    declared = f"[{','.join('?' if dim < 0 else str(dim) for dim in dims)}]"
    found = f"[{','.join(map(str, shape))}]"
    with pytest.raises(InputError) as caught:
        bound(tmp_path, "f32", np.zeros(shape, np.float32), dims)
    assert str(caught.value) == f"input 'x' has shape {found}, expected f32{declared}"


def test_a_ragged_list_is_no_tensor(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="input 'x' is not a tensor"):
        bound(tmp_path, "f32", [[1, 2], [3]])


def test_bound_arrays_are_read_only_and_the_callers_stay_writable(tmp_path: Path) -> None:
    given = np.zeros(2, np.float32)
    array = bound(tmp_path, "f32", given)
    assert not array.flags.writeable and given.flags.writeable


def test_texts_are_bound_as_the_string_type(tmp_path: Path) -> None:
    assert bound(tmp_path, "string", ["a", "b"]).dtype == STRING_DTYPE


def test_an_array_that_was_pickled_is_the_same_as_one_that_was_not(tmp_path: Path) -> None:
    """The dtype of a pickled array is equal to numpy's own, but another object, and not called built in."""
    net = Graph()
    x = net.parameter("x", "u8", (3,))
    net.result(net.apply("Convert", x, element_type="f32", destination_type="f32"))
    array = np.array([0, 128, 255], np.uint8)
    pickled = pickle.loads(pickle.dumps(array))
    for given in (pickled, array):
        assert stepper.run(net.read(tmp_path), {"x": given})["result"].tolist() == [0, 128, 255]
    assert all(
        is_of_numpy(pickle.loads(pickle.dumps(np.zeros(1, type.dtype))).dtype) == (type.dtype.isbuiltin == 1)
        for type in ELEMENT_TYPES.values()
        if type is not STRING
    )
