"""The .bin: every element type, mapped and not read, and files that do not hold what the .xml says."""

from __future__ import annotations

import random
import resource
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.element_types import ELEMENT_TYPES, Array
from stepper.errors import ModelError
from stepper.ir.constants import constant_value
from stepper.ir.weights import packed_size
from tests.ir import tiny_models
from tests.ir.decoding import DECODERS
from tests.ir.texts import Blob, edges, net, result, write
from tests.tables import each_row

ALL_BYTES = bytes(range(256))


def constant_model(folder: Path, type: str, shape: Sequence[int], content: bytes, before: bytes = b"") -> Path:
    """A model that is a Const and a Result; `before` are bytes of the .bin in front."""
    blob = Blob()
    blob.content = before
    constant = blob.constant(0, "c", type, shape, content)
    return write(folder, net([constant, result(1, "out", type)], edges("0:0 1:0")), blob.content)


def value_in(path: Path) -> Array:
    model = stepper.read_model(path)
    return constant_value(model, model.graph.layers[0])


def numbers(value: Array) -> list[float | int | bool]:
    """The elements in order; of the types that are mere codes, the codes."""
    if value.dtype.names:
        return value[value.dtype.names[0]].reshape(-1).tolist()
    if value.dtype.kind in "biuf":
        return value.reshape(-1).tolist()
    return value.reshape(-1).astype(np.float64).tolist()


def test_every_element_type_has_a_second_opinion() -> None:
    assert {*DECODERS, "string"} == set(ELEMENT_TYPES)


@each_row("type", DECODERS)
@each_row("before", [b"", b"\xff", b"\xff\xff\xff"], ids=["aligned", "at 1", "at 3"])
def test_every_byte_of_an_element_type_reads_as_the_format_says(tmp_path: Path, type: str, before: bytes) -> None:
    content = ALL_BYTES * 3 + random.Random(0).randbytes(3 * 256)
    expected = DECODERS[type](content)
    path = constant_model(tmp_path, type, (len(expected),), content, before)
    np.testing.assert_array_equal(numbers(value_in(path)), expected)


@each_row("type", DECODERS)
@each_row("count", [0, 1, 2, 3, 4, 5, 7, 8, 9])
def test_a_count_that_ends_inside_a_byte_or_group_is_cut_there(tmp_path: Path, type: str, count: int) -> None:
    size = packed_size(ELEMENT_TYPES[type], count)
    content = ALL_BYTES[18 : 18 + size]
    value = value_in(constant_model(tmp_path, type, (1, count), content))
    assert value.shape == (1, count)
    np.testing.assert_array_equal(numbers(value), DECODERS[type](content)[:count])


@each_row(
    ("type", "count", "size"),
    [("u1", 9, 2), ("u2", 5, 2), ("u3", 7, 3), ("u3", 9, 6), ("u4", 3, 2), ("u6", 4, 3), ("u6", 7, 6), ("nf4", 5, 3)],
)
def test_packed_types_take_whole_bytes_and_groups(tmp_path: Path, type: str, count: int, size: int) -> None:
    assert value_in(constant_model(tmp_path, type, (count,), bytes(size))).shape == (count,)
    with pytest.raises(ModelError, match=f"{size - 1} bytes are too few"):
        stepper.read_model(constant_model(tmp_path, type, (count,), bytes(size - 1)))


@each_row("type", sorted(ELEMENT_TYPES))
def test_a_constant_of_every_type_is_an_output_of_a_run(tmp_path: Path, type: str) -> None:
    content = string_bytes(["a", "b"]) if type == "string" else bytes(16)
    output = stepper.run(stepper.read_model(constant_model(tmp_path, type, (2,), content)), {})["out"]
    assert output.dtype == ELEMENT_TYPES[type].dtype
    assert output.shape == (2,)


def test_a_scalar_and_an_empty_constant_keep_their_shapes(tmp_path: Path) -> None:
    assert value_in(constant_model(tmp_path, "f32", (), b"\0\0\x80\x3f")).shape == ()
    assert value_in(constant_model(tmp_path, "f32", (2, 0, 3), b"\0")).shape == (2, 0, 3)


def test_an_empty_constant_may_stand_behind_the_last_byte(tmp_path: Path) -> None:
    path = constant_model(tmp_path, "f32", (0,), b"\0")
    path.with_suffix(".bin").write_bytes(b"")
    assert value_in(path).shape == (0,)


# --- strings ----------------------------------------------------------------------------------------------------------


def string_bytes(texts: Sequence[str]) -> bytes:
    encoded = [text.encode() for text in texts]
    offsets = [sum(map(len, encoded[:index])) for index in range(len(encoded) + 1)]
    return struct.pack(f"<{len(offsets) + 1}i", len(encoded), *offsets) + b"".join(encoded)


def test_strings_read_as_they_were_written(tmp_path: Path) -> None:
    content = string_bytes(["ab", "", "héé", "x"])
    assert len(content) == 32
    value = value_in(constant_model(tmp_path, "string", (2, 2), content))
    assert value.tolist() == [["ab", ""], ["héé", "x"]]


@each_row("before", [b"", b"123"])
def test_no_string_is_a_tensor_too(tmp_path: Path, before: bytes) -> None:
    assert value_in(constant_model(tmp_path, "string", (0,), string_bytes([]), before)).shape == (0,)


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    content = struct.pack("<3i", 1, 0, 2) + b"a\xff"
    assert value_in(constant_model(tmp_path, "string", (1,), content)).tolist() == ["a\ufffd"]


@each_row(
    "header",
    [(2, 0, 1), (1, 1, 2), (1, 0, 99), (1, 0, -1), (-1, 0, 1), (2**31 - 1, 0, 1)],
    ids=["count", "first offset", "beyond the end", "negative offset", "negative count", "huge count"],
)
def test_a_broken_string_constant_is_refused_with_its_place(tmp_path: Path, header: tuple[int, int, int]) -> None:
    path = constant_model(tmp_path, "string", (1,), struct.pack("<3i", *header) + b"ab")
    with pytest.raises(
        ModelError,
        match=r"model\.xml:4: layer 0 'c' \(Constant\): its bytes in the \.bin are not a tensor of type string",
    ):
        value_in(path)


# --- the file ---------------------------------------------------------------------------------------------------------


def test_a_file_of_5_gigabytes_is_mapped_and_not_read(tmp_path: Path) -> None:
    gigabytes = 5 * 2**30
    path = constant_model(tmp_path, "f32", (2,), bytes(8))
    path.write_text(path.read_text().replace('offset="0"', f'offset="{gigabytes - 8}"'))
    with path.with_suffix(".bin").open("r+b") as file:
        file.truncate(gigabytes)
        file.seek(gigabytes - 8)
        file.write(struct.pack("<2f", 1.5, -2))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value = value_in(path)
    assert value.tolist() == [1.5, -2.0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 64 * 1024  # KB


def test_strings_of_a_large_range_read_only_what_they_need(tmp_path: Path) -> None:
    gigabytes = 3 * 2**30
    content = string_bytes(["ab"])
    path = constant_model(tmp_path, "string", (1,), content)
    path.write_text(path.read_text().replace(f'size="{len(content)}"', f'size="{gigabytes}"'))
    with path.with_suffix(".bin").open("r+b") as file:
        file.truncate(gigabytes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert value_in(path).tolist() == ["ab"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 64 * 1024  # KB


def test_an_aligned_constant_is_a_view_of_the_file_and_cannot_be_written(tmp_path: Path) -> None:
    value = value_in(constant_model(tmp_path, "f32", (2,), bytes(8)))
    assert not value.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 1


def test_a_model_without_its_bin_opens_for_its_structure_and_says_so_when_run(tmp_path: Path) -> None:
    text, _ = tiny_models.loop()
    path = write(tmp_path, text, None)
    model = stepper.read_model(path)
    assert model.weights is None
    assert [layer.name for _, graph in model.graphs() for layer in graph.layers if layer.type == "Add"] == [
        "step",
        "next",
    ]
    with pytest.raises(ModelError, match=r"its value is in .*model\.bin, which does not exist"):
        stepper.run(model, {"x": [1.0]})


def test_an_empty_bin_serves_a_model_without_constants(tmp_path: Path) -> None:
    text, _ = tiny_models.branch()
    with pytest.raises(ModelError, match=r"lie outside model\.bin, which has 0"):
        stepper.read_model(write(tmp_path, text, b""))


@each_row("size", [0, 1, 11])
def test_a_bin_that_was_cut_is_refused(tmp_path: Path, size: int) -> None:
    text, weights = tiny_models.plain()
    with pytest.raises(ModelError, match=f"bytes 0 to 12 lie outside model.bin, which has {size}"):
        stepper.read_model(write(tmp_path, text, weights[:size]))
