"""Where the value under the cursor is made: its address, for the debugger and for the reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepper.debug.overview.facts import RowKind
from tui.screens.overview.cards import LinePart

if TYPE_CHECKING:
    from stepper.engine.program import CompiledModel
    from stepper.ir.model import Layer, LayerSite
    from tui.screens.overview.cards import Card, Line


def address(card: Card, line: Line | None, run: int, iteration: int, compiled: CompiledModel) -> str:
    """Return where a value is made: after its operation, in this iteration; of one without it is the iteration."""
    site, output = (None, 0) if line is None else (card.made_by(line), card.output_of(line))
    return address_of_site(card, site, run, iteration, compiled, output)


def value_address(card: Card, line: Line, run: int, iteration: int, compiled: CompiledModel) -> str:
    """Return the value of a row in an iteration, a slice too; empty for a row without a layer."""
    is_slice = line.part is LinePart.VALUE and line.kind is RowKind.SLICE
    site = card.facts.rows[line.row].inner if is_slice else card.made_by(line)
    program = card.program
    layer = None if program is None or site is None else program.graph.by_id.get(site.id)
    return "" if layer is None else _address(card, layer, run, iteration, compiled, card.output_of(line))


def carried_addresses(card: Card, run: int, compiled: CompiledModel) -> list[str]:
    """Return what a run of a loop carries, each value in all iterations."""
    from stepper.query.address_syntax import apart_from_iteration  # the first picture has no use for it

    program = card.program
    inner = [card.facts.rows[line.row].inner for line in card.lines if line.kind is RowKind.BACK_EDGE]
    layers = [] if program is None else [program.graph.by_id[one.id] for one in inner]
    found = dict.fromkeys(_address(card, layer, run, 0, compiled) for layer in layers)
    return [apart_from_iteration(one)[0] for one in found if one]


def condition_address(card: Card, line: Line, run: int, iteration: int, compiled: CompiledModel) -> str:
    """Return the condition of an If in an iteration; empty for another row, and where the If is in another one."""
    if line.part is not LinePart.CHOICE or card.program is None:
        return ""
    layer, graph = card.ifs[line.row], card.program.graph
    known = graph.by_id.get(layer.id)
    source = graph.sources[layer.id][0] if known is not None and known.name == layer.name else None
    if source is None:
        return ""
    return _address(card, graph.by_id[source.layer], run, iteration, compiled, source.output)


def address_of_site(
    card: Card, site: LayerSite | None, run: int, iteration: int, compiled: CompiledModel, output: int = 0
) -> str:
    """Return where an operation of a loop has run in an iteration; the iteration itself for what is none."""
    operations = () if card.program is None else card.program.operations
    computing = (one.layer for one in operations if site is not None and one.layer.id == site.id)
    return _address(card, next(computing, None), run, iteration, compiled, output)


def _address(
    card: Card, layer: Layer | None, run: int, iteration: int, compiled: CompiledModel, output: int = 0
) -> str:
    from stepper.debug.overview.addresses import address_in_loop  # the first picture has no cursor

    outer = card.runs[run].outer if run < len(card.runs) else ()
    return "" if card.program is None else address_in_loop(card.program, outer, iteration, compiled, layer, output)


def short_address(cards: Sequence[Card], card: Card, line: Line, run: int, iteration: int) -> str:
    """Return a name for the reader: with the loop's where there are several, and the outer iterations."""
    at = f"{line.name}@{iteration}"
    outer = card.runs[run].outer if run < len(card.runs) else ()
    if outer:
        around = [one for one in cards if one.index == card.facts.parent]
        level = around[0].name if around else card.name
        return f"{level}@{outer[-1]}::{at}"
    return f"{card.name}::{at}" if len(cards) > 1 else at
