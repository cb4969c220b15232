"""Connectionist temporal classification against the enumeration of all paths."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from stepper.errors import KernelError
from stepper.ops.recurrent import ctc_greedy_decoder, ctc_greedy_decoder_seq_len, ctc_loss
from tests.tables import each_row

LOGITS = np.random.default_rng(6).standard_normal((1, 4, 3)).astype(np.float32)
BLANK = 2


def shown(path: tuple[int, ...], merge: bool) -> list[int]:
    steps = [label for label, _ in itertools.groupby(path)] if merge else path
    return [label for label in steps if label != BLANK]


@each_row("merge", [False, True])
@each_row("labels", [[], [0], [0, 0], [0, 1], [1, 0, 0], [1, 0, 1, 0]])
@each_row("length", [3, 4])
def test_the_loss_sums_all_paths_of_the_labels(length: int, labels: list[int], merge: bool) -> None:
    probability = np.exp(LOGITS[0].astype(float))
    probability /= probability.sum(axis=1, keepdims=True)
    total = sum(
        math.prod(probability[step, label] for step, label in enumerate(path))
        for path in itertools.product(range(3), repeat=length)
        if shown(path, merge) == labels
    )
    padded = np.array([labels + [0] * (4 - len(labels))], np.int32)
    lengths = np.array([length], np.int32), np.array([len(labels)], np.int32)
    with np.errstate(all="ignore"):
        loss = ctc_loss(LOGITS, lengths[0], padded, lengths[1], ctc_merge_repeated=merge)
    assert loss[0] == pytest.approx(-math.log(total) if total else math.inf, rel=1e-5)


def test_labels_are_merged_or_made_unique_first() -> None:
    length, rows = np.array([4], np.int32), {"all": [0, 0, 1, 0], "merged": [0, 1, 0], "unique": [0, 1]}
    loss = {
        name: ctc_loss(LOGITS, length, np.array([row + [0] * (4 - len(row))]), np.array([len(row)]))
        for name, row in rows.items()
    }
    wanted = np.array([rows["all"]])
    assert ctc_loss(LOGITS, length, wanted, length, preprocess_collapse_repeated=True) == loss["merged"]
    assert ctc_loss(LOGITS, length, wanted, length, unique=True) == loss["unique"]


def test_an_empty_batch_has_no_loss() -> None:
    none = np.zeros(0, np.int32)
    assert ctc_loss(LOGITS[:0], none, np.zeros((0, 4), np.int32), none).shape == (0,)


@each_row(("length", "label", "blank"), [(5, 0, 2), (0, 0, 2), (4, 7, 2), (4, -1, 2), (4, 0, 3)])
def test_lengths_labels_and_blanks_out_of_range_are_refused(length: int, label: int, blank: int) -> None:
    with pytest.raises(KernelError):
        ctc_loss(LOGITS, np.array([length]), np.full((1, 4), label), np.array([1]), np.array(blank))


def test_a_mask_ends_its_sequence_at_the_first_zero() -> None:
    data = np.eye(3, dtype=np.float32)[[0, 1, 0, 1]][:, None].repeat(3, axis=1)
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]], np.float32).T
    decoded = ctc_greedy_decoder(data, mask)
    assert decoded.shape == (3, 4, 1, 1)
    assert decoded[:, :, 0, 0].tolist() == [[0, 1, 0, 1], [0, 1, -1, -1], [-1, -1, -1, -1]]


def test_a_blank_keeps_equal_classes_apart() -> None:
    data = np.eye(3, dtype=np.float32)[[0, 0, 2, 0, 1]][None]
    classes, lengths = ctc_greedy_decoder_seq_len(data, np.array([5]))
    assert (classes.tolist(), lengths.tolist()) == ([[0, 0, 1, -1, -1]], [3])
    classes, lengths = ctc_greedy_decoder_seq_len(data, np.array([4]), merge_repeated=False)
    assert (classes.tolist(), lengths.tolist()) == ([[0, 0, 0, -1, -1]], [3])
    assert classes.dtype == lengths.dtype == np.int32
