"""Where rows and names of the overview lead: addresses of values; links to moments, to rows, to inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from stepper.debug.overview.facts import RowKind
from stepper.errors import UsageError
from stepper.ir.model import LayerSite
from stepper.query.short_names import short_names_of
from tui.paint.links import Destination, LinkText
from tui.paint.names import layer_name
from tui.paint.rows import printable
from tui.screens.overview.cards import LinePart

if TYPE_CHECKING:
    from stepper.debug.overview.facts import Overview
    from stepper.engine.program import CompiledModel, Program
    from stepper.ir.model import Layer
    from tui.screens.overview.cards import Card, Line

LinkOf = Callable[[LayerSite], Destination | None]
"""Where the name of a layer leads."""


def nowhere(_site: LayerSite) -> Destination | None:
    """Return no destination."""
    return None


def moment_link(line: str) -> Destination:
    """Return a destination that carries out a movement, and leaves the overview."""
    return Destination(f"overview go {line}")


def row_link(card: int, row: int) -> Destination:
    """Return a destination that puts the cursor on a row of a card."""
    return Destination(f"overview row {card} {row}", at_once=True)


def name_linked(text: str, target: Destination | None) -> str:
    """Return a name that leads somewhere, if there is somewhere."""
    return text if target is None else LinkText(text, target)


class PortLinks(NamedTuple):
    """Where the names of the inputs and outputs of a model lead: `rows` are those of outputs that a loop gives.

    An input leads to its value, an output to its row in the loop, else to where it is computed.
    """

    rows: Mapping[int, Destination]

    def output(self, place: int) -> Destination:
        """Return where an output leads, by its place."""
        return self.rows.get(place, Destination(f"overview output {place}"))

    def input(self, place: int) -> Destination:
        """Return where an input leads, by its place."""
        return Destination(f"overview input {place}")


NO_LINKS: Final = PortLinks({})


def row_shown(overview: Overview, shown: Container[tuple[int, int]], loop: int, row: int) -> tuple[int, int] | None:
    """Return the row of a loop that shows another one of it: itself, else the back edge that carries the same."""
    if (loop, row) in shown:
        return loop, row
    rows = overview.loops[loop].rows
    edges = (k for k, one in enumerate(rows) if one.result is not None and one.result.id == rows[row].inner.id)
    return next(((loop, edge) for edge in edges if (loop, edge) in shown), None)


def port_links(overview: Overview, cards: Sequence[Card]) -> PortLinks:
    """Return the links of a model's ports."""
    rows = {
        (card.index, line.row): row_link(card.index, place)
        for card in cards
        for place, line in enumerate(card.lines)
        if line.part in (LinePart.VALUE, LinePart.GROWTH)
    }
    found = {}
    for place, port in enumerate(overview.outputs):
        at = None if port.loop is None or port.row is None else row_shown(overview, rows, port.loop, port.row)
        if at is not None:
            found[place] = rows[at]
    return PortLinks(found)


class PortLine(NamedTuple):
    """A line that goes to where an output of a model is computed, or opens a value in place (`opens`)."""

    line: str
    opens: bool


def line_to_port(compiled: CompiledModel, place: int, *, output: bool) -> PortLine:
    """Return the line that goes to an output of a model, or opens an input. UsageError."""
    from stepper.debug.scopes import target_in  # the first picture needs none of this

    main = compiled.main
    slots = main.results if output else main.parameters
    if place >= len(slots):
        raise UsageError("there is no such output" if output else "there is no such input")
    found = target_in(main, slots[place])
    is_computed = found.layer.id in main.indices
    address = layer_address_in(main, found.layer, 0 if is_computed else found.output, compiled)
    return PortLine(f"{'goto' if is_computed else 'open'} {address}", opens=not is_computed)


def site_link(program: Program, site: LayerSite, compiled: CompiledModel) -> Destination | None:
    """Return a link to where an operation of a graph runs, of what a file or a user gives to its value; else None."""
    layer = program.graph.by_id.get(site.id)
    if layer is None or layer.name != site.name:
        return None
    is_computed = any(one.layer.id == site.id for one in program.operations)
    address = layer_address_in(program, layer, 0, compiled)
    return moment_link(f"goto {address}") if is_computed else Destination(f"open {address}")


def layer_address_in(program: Program, layer: Layer, output: int, compiled: CompiledModel) -> str:
    """Return the address of a layer's output in a graph."""
    from stepper.query.address_resolution import Target, address_of

    slot = program.slots.get((layer.id, output), -1)
    return str(address_of(Target(program, layer, output, slot, layer, (None,) * len(program.path)), compiled))


# --- the value under the cursor -------------------------------------------------------------------------------------


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
    return "" if layer is None else _address_in_card(card, layer, run, iteration, compiled, card.output_of(line))


def condition_address(card: Card, line: Line, run: int, iteration: int, compiled: CompiledModel) -> str:
    """Return the condition of an If in an iteration; empty for another row, and where the If is in another one."""
    if line.part is not LinePart.CHOICE or card.program is None:
        return ""
    layer, graph = card.ifs[line.row], card.program.graph
    known = graph.by_id.get(layer.id)
    source = graph.sources[layer.id][0] if known is not None and known.name == layer.name else None
    if source is None:
        return ""
    return _address_in_card(card, graph.by_id[source.layer], run, iteration, compiled, source.output)


def address_of_site(
    card: Card, site: LayerSite | None, run: int, iteration: int, compiled: CompiledModel, output: int = 0
) -> str:
    """Return where an operation of a loop has run in an iteration; the iteration itself for what is none."""
    operations = () if card.program is None else card.program.operations
    computing = (one.layer for one in operations if site is not None and one.layer.id == site.id)
    return _address_in_card(card, next(computing, None), run, iteration, compiled, output)


def _address_in_card(
    card: Card, layer: Layer | None, run: int, iteration: int, compiled: CompiledModel, output: int = 0
) -> str:
    from stepper.debug.overview.programs import address_in_loop  # the first picture has no cursor

    outer = card.runs[run].outer if run < len(card.runs) else ()
    return "" if card.program is None else address_in_loop(card.program, outer, iteration, compiled, layer, output)


def short_address(cards: Sequence[Card], card: Card, line: Line, run: int, iteration: int) -> str:
    """Return a name for the reader: with the loop's where there are several, and the outer iterations.

    Of what a back edge hands on it is that of what makes it: the name of the Parameter means what entered.
    """
    at = f"{_name_at(card, line)}@{iteration}"
    outer = card.runs[run].outer if run < len(card.runs) else ()
    if outer:
        path = () if card.program is None else card.program.path[:-1]
        around = [layer_name(one) for one in path if one.is_loop]
        return "".join([*(f"{name}@{one}::" for name, one in zip(around, outer, strict=False)), at])
    return f"{card.name}::{at}" if len(cards) > 1 else at


def _name_at(card: Card, line: Line) -> str:
    """Return the name of the value of a row in an iteration."""
    site, program = card.made_by(line), card.program
    if line.kind is not RowKind.BACK_EDGE or line.part is not LinePart.VALUE or site is None or program is None:
        return line.name
    from stepper.query.address_resolution import unique_name  # the first picture has no value that it names
    from stepper.query.address_syntax import NameKind

    layer = program.graph.by_id[site.id]
    port = f":{card.output_of(line)}" if len(layer.outputs) > 1 or layer.is_loop else ""
    name = unique_name(layer, program)
    shown = str(name) if name.kind is NameKind.ID else printable(short_names_of(program.graph)[layer.id])
    return f"{shown}{port}"
