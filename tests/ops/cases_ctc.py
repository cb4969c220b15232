"""Cases of connectionist temporal classification, recorded from the runtime."""

from __future__ import annotations

import itertools

import numpy as np

from tests.ops.recording import Case

_random = np.random.default_rng(11)
PATHS = np.array([[0, 0, 3, 0, 1, 1, 2], [2, 3, 3, 2, 2, 0, 0], [3, 1, 1, 1, 3, 3, 2]])
DATA = (np.eye(4)[PATHS] + _random.random((3, 7, 4)) / 2).astype(np.float32)
LENGTHS = np.array([7, 4, 6], np.int32)
MASK = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 1, 1], [0, 1, 1, 1, 1, 1, 0]], np.float32)
LABELS = np.array([[0, 0, 1, 2, 0, 0, 0], [2, 2, 1, 0, 0, 0, 0], [1, 2, 1, 1, 0, 0, 0]], np.int32)
LABEL_LENGTHS = np.array([3, 2, 4], np.int32)
BLANK = np.array(3, np.int32)


def decoded(name: str, merge: str) -> Case:
    data, mask = DATA.swapaxes(0, 1).copy(), MASK.T.copy()
    return Case(name, "CTCGreedyDecoder", 1, [data, mask], {"ctc_merge_repeated": merge})


def with_lengths(name: str, merge: str, type: str, *blank: np.ndarray) -> Case:
    attributes = {"merge_repeated": merge, "classes_index_type": type, "sequence_length_type": type}
    return Case(name, "CTCGreedyDecoderSeqLen", 6, [DATA, LENGTHS, *blank], attributes, 2, {2} if blank else set())


def loss(collapse: str, merge: str, unique: str) -> Case:
    attributes = {"preprocess_collapse_repeated": collapse, "ctc_merge_repeated": merge, "unique": unique}
    inputs = [DATA * np.float32(2), LENGTHS, LABELS, LABEL_LENGTHS, BLANK]
    return Case(f"loss_{collapse}_{merge}_{unique}", "CTCLoss", 4, inputs, attributes, constant={4})


CASES = [
    decoded("decoded", "true"),
    decoded("decoded_every_step", "false"),
    with_lengths("with_lengths", "true", "i32"),
    with_lengths("with_lengths_every_step", "false", "i64"),
    with_lengths("with_lengths_first_blank", "true", "i64", np.array(0, np.int32)),
    *(loss(*flags) for flags in itertools.product(("false", "true"), repeat=3)),
]
