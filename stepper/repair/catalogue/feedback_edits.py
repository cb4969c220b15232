"""Edits that feed an output back: a decoder that reads given tokens reads the one that it gave before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from stepper.ir.model import BackEdge, Layer, Port, Source
from stepper.repair.changes import add_input
from stepper.repair.edit import EditKind, GraphSite, RepairEdit, ValueForm
from stepper.repair.patch import ModelPatch

_MOST_TOKENS = 16
"""First tokens that are tried."""


def feedback_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield the edits of the body of a loop in which a table is read at given indices."""
    body = site.body
    if body is None or site.path[-1].type != "Loop":
        return
    for layer in site.operations:
        sources = site.sources(layer)
        if layer.type != "Gather" or len(sources) < 2 or sources[1] is None:
            continue
        table, index = site.form(sources[0]), site.form(sources[1])
        if table is None or index is None or not table.is_float or not index.is_integer or not table.shape:
            continue
        yield from _fed_back(site, layer, sources[1], index, table.shape[0])


def _fed_back(site: GraphSite, layer: Layer, index: Source, form: ValueForm, rows: int) -> Iterator[RepairEdit]:
    for scores_form, found in site.by_form.items():
        if not scores_form.is_float or not scores_form.shape or scores_form.shape[-1] != rows:
            continue
        if scores_form.shape[:-1] not in (form.shape, (1, *form.shape)):
            continue
        for scores in found:
            if not site.follows(scores.layer, layer.id):
                continue
            for token in range(min(rows, _MOST_TOKENS)):
                what = f"the largest of '{site.name(scores)}' in the iteration before, at first {token},"
                yield site.edit(
                    EditKind.FEEDBACK,
                    layer,
                    2.5 + 0.01 * token,
                    partial(_feed_back, site, layer, scores, form, token),
                    subject="1",
                    before=site.name(index),
                    after=what,
                )


def _feed_back(site: GraphSite, layer: Layer, scores: Source, form: ValueForm, token: int, patch: ModelPatch) -> None:
    graph = patch.graph(site.scope)
    first = patch.graph(site.scope[:-1]).constant(np.full(form.shape, token, form.dtype))
    parameter = add_input(patch, site.scope, first, "last_token")
    largest = _index_of_largest(site, scores, form, graph.port(Source(parameter, 0)), patch)
    patch.port_map(site.scope).back_edges.append(BackEdge(graph.result(largest, "next_token"), parameter, 0))
    graph.read(layer.id, 1, Source(parameter, 0))


def _index_of_largest(site: GraphSite, scores: Source, form: ValueForm, port: Port, patch: ModelPatch) -> Source:
    graph, scored = patch.graph(site.scope), site.form(scores)
    assert scored is not None
    texts = {"axis": str(len(scored.shape) - 1), "mode": "max", "sort": "value", "index_element_type": "i64"}
    one = graph.integers(1)
    best = graph.add("TopK", (scores, one), texts, graph.port(scores), outputs=2)
    kind = "i32" if form.dtype == np.int32 else "i64"
    index = graph.add("Convert", (Source(best.layer, 1),), {"destination_type": kind}, port)
    shape = graph.integers(form.shape)
    return graph.add("Reshape", (index, shape), {"special_zero": "false"}, port)
