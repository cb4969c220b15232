"""The pieces of a concatenated output: appended, copied with a frame, and joined."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import stepper
from stepper.engine.frames import Every
from stepper.engine.loops import Scan
from stepper.engine.rules import Rules
from stepper.errors import KernelError, TensorTooLarge
from stepper.ir.model import Slicing
from stepper.ops.operands import LARGEST_TENSOR
from tests.models import Graph, carried, sliced
from tests.models import joined as entry_of
from tests.tables import each_row

FORWARD = Slicing(0, 0, -1, 1, 1)


def scan_of(*pieces: object) -> Scan:
    scan = Scan(0)
    for piece in pieces:
        scan.append(np.asarray(piece, np.float32))
    return scan


def joined(scan: Scan, axis: int = 0, stride: int = 1, rules: Rules = Rules.SPEC) -> np.ndarray:
    return scan.concatenated(Slicing(axis, 0, -1, stride, None), rules, lambda _text: None)


def listed(scan: Scan) -> list[object]:
    return [scan.piece(index).tolist() for index in range(scan.length)]


@each_row("count", [1, 2, 7, 8, 9, 100])
@each_row("axis", [0, 1, 2, -1])
@each_row("stride", [1, -1])
def test_pieces_are_joined_along_their_axis_in_order_or_backwards(count: int, axis: int, stride: int) -> None:
    pieces = [np.arange(24, dtype=np.float32).reshape(2, 3, 4) + 100 * number for number in range(count)]
    expected = np.concatenate(pieces[::stride], axis)
    np.testing.assert_array_equal(joined(scan_of(*pieces), axis, stride), expected)


@each_row("stride", [1, -1])
def test_scalars_become_a_vector(stride: int) -> None:
    assert joined(scan_of(1, 2, 3), 0, stride).tolist() == [1, 2, 3][::stride]


def test_pieces_of_several_lengths_are_joined_as_they_are() -> None:
    notes: list[str] = []
    scan = scan_of([1], [2, 3], [], [4])
    assert scan.concatenated(FORWARD, Rules.SPEC, notes.append).tolist() == [1, 2, 3, 4]
    assert scan.concatenated(replace(FORWARD, stride=-1), Rules.SPEC, notes.append).tolist() == [4, 2, 3, 1]
    assert notes == ["a piece is 2 long along axis 0, OpenVINO expects the stride, 1"] * 2


def test_pieces_that_differ_beside_the_axis_are_filled_with_zeros_and_noted() -> None:
    notes: list[str] = []
    found = scan_of([[1, 2]], [[3]], [[4, 5]]).concatenated(FORWARD, Rules.SPEC, notes.append)
    assert found.tolist() == [[1, 2], [3, 0], [4, 5]]
    assert len(notes) == 1 and "the output is undefined" in notes[0]


def test_pieces_of_different_rank_cannot_be_joined() -> None:
    with pytest.raises(
        KernelError, match=r"the piece of iteration 1 has the shape \[1\], the piece of iteration 0 \[1,1\]"
    ):
        joined(scan_of([[1]], [1]))


@each_row("axis", [1, -2, 5])
def test_an_axis_that_the_pieces_do_not_have_is_refused(axis: int) -> None:
    with pytest.raises(KernelError, match=f"axis {axis} is out of range"):
        joined(scan_of([1], [2]), axis)


def test_openvino_wants_pieces_as_long_as_the_stride() -> None:
    assert joined(scan_of([1, 2], [3, 4]), stride=-2, rules=Rules.OPENVINO).tolist() == [3, 4, 1, 2]
    for scan in (scan_of([1, 2], [3, 4]), scan_of([1], [3, 4])):
        with pytest.raises(KernelError, match="a piece is 2 long along axis 0, OpenVINO expects the stride, 1"):
            joined(scan, rules=Rules.OPENVINO)


def test_the_joined_tensor_shares_nothing_with_the_pieces() -> None:
    for piece in (np.float32(1), np.ones(1, np.float32), np.ones((2, 1), np.float32)):
        for count in (1, 3):
            scan = scan_of(*[piece] * count)
            joined(scan)[...] = 9
            assert all((scan.piece(index) == 1).all() for index in range(count))


def test_a_piece_is_read_only_and_one_that_is_not_there_an_error() -> None:
    scan = scan_of([1], [2])
    with pytest.raises(ValueError, match="read-only"):
        scan.piece(0)[0] = 5
    for index in (-1, 2):
        with pytest.raises(IndexError, match=f"iteration {index} has no piece, there are 2"):
            scan.piece(index)


def test_a_copy_and_its_origin_grow_apart() -> None:
    origin = scan_of([1], [2])
    twin = origin.copy()
    origin.append(np.array([3], np.float32))
    assert (listed(origin), listed(twin)) == ([[1], [2], [3]], [[1], [2]])
    twin.append(np.array([4, 5], np.float32))
    third = twin.copy()
    third.append(np.array([6], np.float32))
    twin.append(np.array([7], np.float32))
    assert (listed(origin), listed(twin), listed(third)) == (
        [[1], [2], [3]],
        [[1], [2], [4, 5], [7]],
        [[1], [2], [4, 5], [6]],
    )


def test_copies_at_every_length_stay_as_they_were() -> None:
    scan, copies = Scan(0), []
    for number in range(50):
        copies.append(scan.copy())
        scan.append(np.array([number]))
    for length, copy in enumerate(copies):
        for extra in (100, 200):
            branch = copy.copy()
            branch.append(np.array([extra]))
            assert listed(branch) == [[number] for number in range(length)] + [[extra]]
    assert [copy.length for copy in copies] == list(range(50)) and scan.length == 50
    assert listed(scan) == [[number] for number in range(50)]


def test_appending_copies_each_element_a_bounded_number_of_times() -> None:
    # However the pieces are kept: a copy of the whole in each iteration would make 5000 arrays of it.
    scan, kept = Scan(0), set()
    snapshots = []
    for number in range(5000):
        scan.append(np.full(4, number, np.float32))
        snapshots.append(scan.copy())
        kept.add(scan.identity)
    assert len(kept) < 20
    assert joined(scan).size == 20000


@each_row(("begin", "end"), [(0, 1000), (0, 1), (1, 257), (255, 258), (999, 1000), (300, 300)])
def test_stacks_hold_each_piece_of_a_range_once_as_many_together_as_are_alike(begin: int, end: int) -> None:
    pieces = [np.full((1, 2 + (number >= 700)), number, np.float32) for number in range(1000)]
    stacks = list(scan_of(*pieces).stacks(begin, end))
    found = [piece for stack in stacks for piece in stack]
    assert [piece.tolist() for piece in found] == [piece.tolist() for piece in pieces[begin:end]]
    assert len(stacks) == (begin < min(end, 700)) + (end > max(begin, 700))


def test_a_range_looks_at_its_own_blocks_alone() -> None:
    class Counted(list[object]):
        looked = 0

        def __getitem__(self, key):  # type: ignore[no-untyped-def, override]
            self.looked += len(range(*key.indices(len(self)))) if isinstance(key, slice) else 1
            return super().__getitem__(key)

    scan = scan_of(*range(20_000))
    scan._blocks = blocks = Counted(scan._blocks)
    assert len(blocks) > 50
    assert np.concatenate(list(scan.stacks(19_000, 19_010))).tolist() == list(range(19_000, 19_010))
    assert 1 <= blocks.looked <= 2


def test_a_piece_that_is_a_view_does_not_keep_its_whole_tensor() -> None:
    whole = np.zeros((1000, 1), np.float32)
    scan = Scan(0)
    scan.append(whole[:1])
    assert not np.shares_memory(scan.piece(0), whole)


def test_all_pieces_together_may_not_pass_the_limit_on_a_tensor() -> None:
    token = LARGEST_TENSOR.set(100)
    try:
        scan = Scan(0)
        scan.append(np.zeros(20, np.float32))
        with pytest.raises(TensorTooLarge):
            scan.append(np.zeros(20, np.float32))
        assert scan.length == 1
    finally:
        LARGEST_TENSOR.reset(token)


def widening(steps: int) -> Graph:
    """A value of shape [2, 1] that is twice as wide in each iteration, joined where it cannot be."""
    net = Graph()
    x = net.parameter("x", dims=(steps, 1))
    body = net.body()
    body_x = body.parameter("item", dims=(1, 1))
    wide = body.parameter("wide", dims=(2, -1))
    used = body.apply("Add", wide, body_x, name="used")
    wider = body.result(body.apply("Concat", used, used, name="wider", dims=(2, -1), axis=1))
    start = net.constant(np.zeros((2, 1), np.float32))
    (found,) = net.tensor_iterator("loop", body, [sliced(x, body_x), carried(start, wide, wider)], [entry_of(wider)])
    net.result(found, "found")
    return net


@each_row("every", [Every.OPERATION, Every.END])
def test_a_piece_of_another_shape_ends_the_run_in_the_iteration_that_gives_it(tmp_path: Path, every: Every) -> None:
    model = stepper.read_model(widening(8).write(tmp_path))
    inputs = stepper.bind_inputs(model, {0: np.ones((8, 1), np.float32)})
    machine = stepper.Machine(stepper.compile_model(model), inputs)
    says = r"piece of iteration 1 has the shape \[2,4\], the piece of iteration 0 \[2,2\]"
    with pytest.raises(stepper.ExecutionError, match=says):
        for _ in machine.run(every):
            pass
    activation = machine.stack[-1].activation
    assert activation is not None and activation.iteration == 1 and activation.scans[0].length == 1
