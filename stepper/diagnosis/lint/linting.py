"""`lint`: all that is wrong with a file, without a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepper.collector import collector_off
from stepper.diagnosis import narrowing
from stepper.diagnosis.check import numbers, states
from stepper.diagnosis.lint import carried, control, edges, operations, port_map
from stepper.diagnosis.lint.subjects import IfSubject, LayerKinds, LayerSubject, LoopSubject, ModelSubject
from stepper.diagnosis.rule import (
    FINDERS,
    GRAVITY,
    FilePart,
    Finding,
    Part,
    Rule,
    RuleFinder,
    RuleHit,
    Severity,
    SubjectKind,
    rules,
)
from stepper.errors import ModelError
from stepper.ir.model import BackEdge, InputMapping, Layer, LayerSite, Model, layer_site
from stepper.ir.reader import read_all_faults

_CAUSES = frozenset({
    "duplicate-layer-id",
    "malformed-constant",
    "malformed-edge",
    "malformed-element",
    "malformed-parameter",
    "malformed-port",
    "unknown-operation",
})  # fmt: skip
"""Rules whose faults drop an element when the file is read, so that other faults follow."""


_FINDING = (carried, control, edges, operations, port_map, numbers, states, narrowing)
"""Modules of rules: each says what finds the places where they are broken when it is imported."""


def rule_finders(scope: SubjectKind) -> Sequence[RuleFinder]:
    """Return the rules that are asked about each of these, with what finds the places."""
    return FINDERS[scope]


def lint(path: str | Path) -> tuple[Finding, ...]:
    """Return what is wrong with an IR, most severe first, then by line.

    Needs no inputs and no .bin.

    Raises ModelError for a file that cannot be read at all.
    """
    try:
        model, faults = read_all_faults(path)
    except ModelError as error:
        if not error.rule:  # there is no such file
            raise
        return (_fault(str(path), None, error),)
    stumbled: list[Exception] = []
    with collector_off(), np.errstate(all="ignore"):
        found = [*(_fault(str(path), model, fault) for fault in faults), *_hits(model, stumbled)]
    if stumbled and not any(one.severity is Severity.ERROR for one in found):
        raise stumbled[0]
    return tuple(
        sorted(found, key=lambda one: (GRAVITY[one.severity], one.rule not in _CAUSES, one.spot.line, one.rule))
    )


def _fault(file: str, model: Model | None, error: ModelError) -> Finding:
    rule = rules()[error.rule]
    place = error.place
    line = 0 if place is None else place.line
    layer = None if place is None or place.layer is None else LayerSite(*place.layer)
    path = () if model is None else _around(model, line)
    spot = FilePart(file, line, "file", path, layer, path[-1] if path else None)
    is_loop = bool(path) and layer is not None and (layer.id, layer.name) == (path[-1].id, path[-1].name)
    told = None if is_loop else layer
    return Finding(rule.name, rule.severity, spot, {"fault": error.reason or str(error), "faulty": told})


def _around(model: Model, line: int) -> tuple[LayerSite, ...]:
    """Return the loops in whose text a line stands, the outermost first."""
    found: tuple[LayerSite, ...] = ()
    graph = model.graph
    while True:
        before = [layer for layer in graph.layers if layer.line <= line]
        host = max(before, key=lambda layer: layer.line, default=None)
        if host is None or not host.bodies:
            return found
        found = (*found, layer_site(host, str(model.path)))
        graph = max(
            (body.graph for body in host.bodies if body.line <= line),
            key=lambda one: one.line,
            default=host.bodies[0].graph,
        )


def _hits(model: Model, stumbled: list[Exception]) -> Iterator[Finding]:
    """Yield what rules find. Of a broken file a rule may miss what it takes for given: such errors are kept."""
    for search in rule_finders(SubjectKind.MODEL):
        try:
            yield from (_finding(search.rule, facts, hit) for facts, hit in search.find(ModelSubject(model)))
        except Exception as error:
            stumbled.append(error)
    layers = LayerKinds(model)
    for search in rule_finders(SubjectKind.LAYER):
        for facts in _asked(layers, search, stumbled):
            yield from _of(search, facts, stumbled)
    for facts in layers.subjects(("TensorIterator", "Loop", "If")):
        layer = facts.layer
        if layer.is_loop and layer.bodies and layer.bodies[0].graph.layers:
            loop = LoopSubject(model, facts.path, facts.graph, layer)
            for search in rule_finders(SubjectKind.LOOP):
                yield from _of(search, loop, stumbled)
        elif layer.type == "If" and len(layer.bodies) == 2:
            conditional = IfSubject(model, facts.path, facts.graph, layer)
            for search in rule_finders(SubjectKind.IF):
                yield from _of(search, conditional, stumbled)


def _asked(layers: LayerKinds, search: RuleFinder, stumbled: list[Exception]) -> Iterator[LayerSubject]:
    """Yield the layers about which a rule is asked."""
    if search.suspects is None:
        yield from layers.subjects(search.types)
        return
    for first, alike in layers.kinds(search.types):
        try:
            if search.suspects(first):
                yield from alike
        except Exception as error:
            stumbled.append(error)


def _of(search: RuleFinder, facts: LayerSubject, stumbled: list[Exception]) -> Iterator[Finding]:
    try:
        for hit in search.find(facts):
            yield _finding(search.rule, facts, hit)
    except Exception as error:
        stumbled.append(error)


def _finding(rule: Rule, facts: LayerSubject, hit: RuleHit) -> Finding:
    at = hit.at
    loops = (*facts.path, facts.layer) if hit.is_inside else facts.path
    path = tuple(facts.site(layer) for layer in loops)
    graph = facts.layer.bodies[0].graph if hit.is_inside else facts.graph
    part: Part = "port map entry"
    layer: Layer | None
    result = None
    if isinstance(at, Layer):
        part, layer, result = "layer", at, at
    elif isinstance(at, BackEdge):
        part, layer, result = "back edge", graph.by_id.get(at.to_layer), graph.by_id.get(at.from_layer)
    else:
        layer = result = graph.by_id.get(at.parameter if isinstance(at, InputMapping) else at.result)
    site = None if layer is None else facts.site(layer)
    loop = facts.layer if facts.layer.bodies else facts.path[-1] if facts.path else None
    spot = FilePart(str(facts.model.path), at.line, part, path, site, None if loop is None else facts.site(loop))
    named: dict[str, Any] = {"layer": layer, "parameter": layer, "result": result}
    if (slicing := getattr(at, "slicing", None)) is not None:
        named |= {name: getattr(slicing, name) for name in ("axis", "start", "end", "stride")}
    found = rule.named(named) | dict(hit.details)
    details = {name: facts.site(one) if isinstance(one, Layer) else one for name, one in found.items()}
    return Finding(rule.name, hit.severity or rule.severity, spot, details)
