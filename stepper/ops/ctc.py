"""Connectionist temporal classification: the best path of class scores as a text, and the loss of a wanted one.

Source: the pages CTCGreedyDecoder-1, CTCGreedyDecoderSeqLen-6 and CTCLoss-4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stepper.element_types import I32, Array, ElementType
from stepper.errors import KernelError
from stepper.ops.operands import integers, shape_text, single_integer
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel


@kernel("CTCGreedyDecoder", 1)
def ctc_greedy_decoder(data: Array, sequence_mask: Array, *, ctc_merge_repeated: bool = True) -> Array:
    """Return the best class of each time step of [time, batch, class] without blanks (the last class), -1 behind.

    A sequence ends at the first 0 of its mask.
    """
    if data.ndim != 3 or sequence_mask.shape != data.shape[:2]:
        shapes = f"{shape_text(data.shape)} and {shape_text(sequence_mask.shape)}"
        raise KernelError(f"data and sequence mask of shapes {shapes} do not fit: expected [T,N,C] and [T,N]")
    lengths = np.logical_and.accumulate(sequence_mask != 0, axis=0).sum(axis=0)
    classes = _decoded(np.swapaxes(data, 0, 1), lengths, data.shape[2] - 1, ctc_merge_repeated)[0]
    return classes.astype(data.dtype)[..., None, None]


@kernel("CTCGreedyDecoderSeqLen", 6)
def ctc_greedy_decoder_seq_len(
    data: Array,
    sequence_length: Array,
    blank_index: Any = None,
    *,
    merge_repeated: bool = True,
    classes_index_type: ElementType = I32,
    sequence_length_type: ElementType = I32,
) -> tuple[Array, Array]:
    """Return the best class of each time step of [batch, time, class] without blanks, -1 behind, and the lengths."""
    if data.ndim != 3 or sequence_length.shape != data.shape[:1]:
        shapes = f"{shape_text(data.shape)} and {shape_text(sequence_length.shape)}"
        raise KernelError(f"data and sequence lengths of shapes {shapes} do not fit: expected [N,T,C] and [N]")
    classes, lengths = _decoded(data, sequence_length, _blank(blank_index, data), merge_repeated)
    return classes.astype(classes_index_type.dtype), lengths.astype(sequence_length_type.dtype)


@kernel("CTCLoss", 4)
def ctc_loss(
    logits: Array,
    logit_length: Array,
    labels: Array,
    label_length: Array,
    blank_index: Any = None,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = False,
    unique: bool = False,
) -> Array:
    """Minus the logarithm of the probability that the scores [batch, time, class] give to all paths of the labels."""
    _check_loss(logits, logit_length, labels, label_length)
    blank = _blank(blank_index, logits)
    wanted = [
        _prepared(integers(row[: max(int(length), 0)]), preprocess_collapse_repeated, unique)
        for row, length in zip(labels, label_length, strict=True)
    ]
    if any(not 0 <= label < logits.shape[2] for row in wanted for label in row):
        raise KernelError(f"the labels must be classes 0..{logits.shape[2] - 1}")
    scores = widened(logits)
    scores = scores - scores.max(axis=2, keepdims=True)
    log_probability = scores - np.log(np.exp(scores).sum(axis=2, keepdims=True))
    loss = -_log_likelihood(log_probability, logit_length, wanted, blank, ctc_merge_repeated)
    return narrowed(loss, logits.dtype)


def _blank(blank_index: Any, data: Array) -> int:
    """Return the class of the blank, by default the last."""
    blank = data.shape[2] - 1 if blank_index is None else single_integer(blank_index, "the blank index")
    if not 0 <= blank < data.shape[2]:
        raise KernelError(f"the blank {blank} is not one of the {data.shape[2]} classes")
    return blank


def _decoded(data: Array, lengths: Array, blank: int, merge_repeated: bool) -> tuple[Array, Array]:
    """Return the classes [batch, time] of the best path, those that count first, -1 after them, and their number."""
    batches, steps, classes = data.shape
    best = data.argmax(axis=2) if classes else np.zeros((batches, steps), np.int64)
    counts = (best != blank) & (np.arange(steps) < lengths[:, None])
    if merge_repeated:
        counts[:, 1:] &= best[:, 1:] != best[:, :-1]
    decoded = np.full((batches, steps), -1, np.int64)
    row, step = np.nonzero(counts)
    decoded[row, counts.cumsum(axis=1)[row, step] - 1] = best[row, step]
    return decoded, counts.sum(axis=1)


def _check_loss(logits: Array, logit_length: Array, labels: Array, label_length: Array) -> None:
    shapes = [value.shape for value in (logits, logit_length, labels, label_length)]
    if logits.ndim != 3 or shapes[1:] != [shapes[0][:1], shapes[0][:2], shapes[0][:1]] or 0 in shapes[0][1:]:
        text = ", ".join(map(shape_text, shapes))
        raise KernelError(f"the shapes {text} do not fit: expected [N,T,C], [N], [N,T] and [N]")
    if (logit_length > logits.shape[1]).any() or (logit_length < 1).any():
        raise KernelError(f"the logit lengths must lie in 1..{logits.shape[1]}")


def _prepared(labels: list[int], collapse_repeated: bool, unique: bool) -> list[int]:
    """Return the labels of one batch with each run of one class made a single label, or each class only once."""
    if collapse_repeated:
        labels = [label for at, label in enumerate(labels) if at == 0 or label != labels[at - 1]]
    return list(dict.fromkeys(labels)) if unique else labels


def _log_likelihood(log_probability: Array, lengths: Array, wanted: list[list[int]], blank: int, merge: bool) -> Array:
    """Return the logarithm of the summed probability of all paths: forward recursion over blanks and labels in turn.

    A state is a label or the blank before or after one. With `merge` a path may stay on a label, and must pass a blank
    between two equal ones; without, each step on a label is one of its own.
    """
    batches, steps, _ = log_probability.shape
    states = np.full((batches, 2 * max(map(len, wanted), default=0) + 1), blank)
    for row, labels in zip(states, wanted, strict=True):
        row[1 : 2 * len(labels) : 2] = labels
    is_label = np.arange(states.shape[1]) % 2 == 1
    differs = np.ones_like(states, np.bool_)
    differs[:, 2:] = states[:, 2:] != states[:, :-2]
    may_stay, may_skip = (~is_label | merge, is_label & (differs if merge else True))
    emitted = np.take_along_axis(log_probability, states[:, None, :].repeat(steps, axis=1), axis=2)
    forward = np.where(np.arange(states.shape[1]) < 2, emitted[:, 0], -np.inf)
    for step in range(1, steps):
        stay = np.where(may_stay, forward, -np.inf)
        skip = np.where(may_skip, _later(forward, 2), -np.inf)
        reached = np.logaddexp(np.logaddexp(stay, _later(forward, 1)), skip) + emitted[:, step]
        forward = np.where((step < lengths)[:, None], reached, forward)
    last = np.array([2 * len(labels) for labels in wanted], np.int64)[:, None]
    before = np.where(last > 0, np.take_along_axis(forward, np.maximum(last - 1, 0), axis=1), -np.inf)
    total: Array = np.logaddexp(np.take_along_axis(forward, last, axis=1), before)[:, 0]
    return total


def _later(forward: Array, states: int) -> Array:
    """Return the values moved on by some states, -inf where none comes from."""
    return np.pad(forward, ((0, 0), (states, 0)), constant_values=-np.inf)[:, : forward.shape[1]]
