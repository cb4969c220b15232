"""Which loop or If of a model a figure is about."""

from __future__ import annotations

from msgspec import Struct

from stepper.errors import UsageError
from stepper.ir.lowering import unopened
from stepper.ir.model import Body, Graph, Layer, Model
from stepper.wording import excerpt, near_text


class LoopPath(Struct, frozen=True):
    """A TensorIterator, Loop or If: the layers round it, itself, and the graph in which it stands."""

    around: tuple[Layer, ...]
    layer: Layer
    outer: Graph

    @property
    def name(self) -> str:
        """The names of all layers that lead to it, joined by slashes."""
        return "/".join(layer.name for layer in (*self.around, self.layer))

    @property
    def address(self) -> str:
        """The names as an address of the debugger joins them."""
        return "::".join(layer.name for layer in (*self.around, self.layer))

    @property
    def body(self) -> Body:
        """The loop's body (of an If the then side)."""
        return self.layer.bodies[0]

    @property
    def title(self) -> str:
        """Such as `Loop 'decoder'`, with the layers around it."""
        return " > ".join(f"{layer.type} '{excerpt(layer.name)}'" for layer in (*self.around, self.layer))


def loops_of(model: Model) -> list[LoopPath]:
    """Return every layer with a body, outer before inner."""
    return [LoopPath(path, layer, graph) for path, graph in model.graphs() for layer in graph.layers if layer.bodies]


def find_loop(model: Model, name: str | None) -> LoopPath:
    """Return the loop of that name (or of the end of its path); without a name the only one of the outermost.

    Raises UsageError, with those that there are, where that is none or several.
    """
    places = loops_of(model)
    if not places:
        hint = f"; {said}" if (said := unopened(model)) else ""
        raise UsageError(f"this model has no TensorIterator, Loop or If; --view model draws it as it is{hint}")
    if name is None:
        outermost = min(len(place.around) for place in places)
        found = [place for place in places if len(place.around) == outermost]
        loops = [place for place in found if place.layer.is_loop]
        found = loops or found
    else:
        found = [place for place in places if name in (place.layer.name, place.name, place.address)]
        found = found or [place for place in places if place.address.endswith(f"::{name}")]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"'{excerpt(place.address)}'" for place in (found or places)[:20])
    if not found:
        near = near_text(str(name), [one for place in places for one in (place.address, place.name)])
        are = "is" if len(places) == 1 else "are"
        raise UsageError(f"no loop is called '{name}'; {f'{near}; ' if near else ''}there {are} {listed}")
    raise UsageError(f"which loop? Name one with --loop: {listed}")
