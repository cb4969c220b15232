"""Loops of which the reference knows no single run, only how many iterations they ran in all."""

from __future__ import annotations

from collections.abc import Iterator

from stepper.compare.references.protocol import Outcome, Path, Reference, Step, loop_key
from stepper.compare.run.observations import LoopDifference, LoopRecord, Observations
from stepper.ir.model import Graph, Layer, Model


def compare_totals(model: Model, reference: Reference, observations: Observations) -> Iterator[LoopDifference]:
    """Hold the sums against ours, those of loops that ran on one side alone too, and note them; what differs."""
    totals = reference.totals()
    for path, layer in _loops_of(model):
        total, record = totals.get(loop_key(path, layer)), observations.loops.get(id(layer))
        if total is None or (record is None and not total):
            continue
        if record is None:
            record = observations.loops[id(layer)] = LoopRecord(tuple(step.layer for step in path), layer)
        elif all(theirs is not None for _ours, theirs, _count in record.runs):
            continue  # each run was compared
        record.total = total
        if total != record.iterations:
            ours, theirs = (Outcome(number, "in all its runs") for number in (record.iterations, total))
            yield LoopDifference(path, layer, None, ours, theirs)


def _loops_of(model: Model) -> Iterator[tuple[Path, Layer]]:
    stack: list[tuple[Path, Graph]] = [((), model.graph)]
    while stack:
        path, graph = stack.pop()
        for layer in graph.layers:
            if layer.is_loop:
                yield path, layer
            stack += [((*path, Step(layer, body.role, None)), body.graph) for body in layer.bodies]
