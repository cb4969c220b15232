"""Selection and detail of a figure: depth, operations, values, highlight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import field

from stepper.debug.causes.loop_ends import ConditionLimit
from stepper.engine.program import Elsewhere
from stepper.errors import UsageError
from stepper.export.figures.drawn_graph import WHOLE_EXPRESSIONS, FoldingOptions
from stepper.export.options import BlockStyle, ConstantStyle, ValueDetail
from stepper.export.parting import RunDifferences
from stepper.ir.model import Graph, Layer, Model
from stepper.name_patterns import Pattern, PatternError, regex
from stepper.records import Record


class Highlight(Record):
    """A layer of one graph and, in an unrolled trace, the iteration (None: all)."""

    graph: Graph
    layer: int
    iteration: int | None = None


class FigureContent(Record):
    """Selection and detail of a figure. `depth`: levels of bodies that are drawn inside of their layer.

    `only` and `hide` are regular expressions for names, or whole types; `carried` leaves of a body only what back edges
    carry. What is not shown is drawn as a group that says how many operations it stands for. `elsewhere` says what is
    not computed here; such boxes have a mark. Constants that are drawn inline or as boxes are read from `model`. Of
    `blocks` that repeat each is drawn, or one (None: one in a large figure). `limits` are those that conditions imply,
    by id() of the graph and by the loop's id in it; `differences` are those from another run. `expressions`: what one
    operation alone reads is in the box of that; `cell`: a rolled body is its port map.
    `never_begun` are loops that a run entered without an iteration, by id() of the graph and id;
    `sizes` those of its values of which the file leaves one open, by id() of the graph, layer and output.
    """

    depth: int = 1
    only: tuple[Pattern, ...] = ()
    hide: tuple[Pattern, ...] = ()
    carried: bool = False
    expressions: bool = False
    cell: bool = False
    never_begun: frozenset[tuple[int, int]] = frozenset()
    sizes: Mapping[tuple[int, int, int], tuple[int, ...]] = {}
    values: ValueDetail = ValueDetail.NONE
    highlight: Highlight | None = None
    constants: ConstantStyle = ConstantStyle.INLINE
    model: Model | None = None
    limits: Mapping[tuple[int, int], ConditionLimit] = {}
    fold_accumulators: bool = True
    blocks: BlockStyle | None = None
    differences: RunDifferences | None = None
    elsewhere: Elsewhere = field(default_factory=dict)

    def limit_of(self, graph: Graph, loop: Layer) -> ConditionLimit | None:
        """Return the limit that the condition of a loop of a graph implies."""
        return self.limits.get((id(graph), loop.id))

    def never_began(self, graph: Graph, loop: Layer) -> bool:
        """True if the run entered a loop of a graph and did no iteration of it."""
        return (id(graph), loop.id) in self.never_begun

    def folding(self, graph: Graph) -> FoldingOptions:
        """Return the parts of a graph that are folded."""
        hidden = frozenset(layer.id for layer in graph.layers if not self._shows(layer))
        return FoldingOptions(
            constants=self.constants is not ConstantStyle.BOX,
            accumulators=self.fold_accumulators and not hidden,
            hidden=hidden,
            expressions=WHOLE_EXPRESSIONS if self.expressions else 0,
            results=True,
        )

    def _shows(self, layer: Layer) -> bool:
        if self.carried or any(_fits(pattern, layer) for pattern in self.hide):
            return False
        return not self.only or any(_fits(pattern, layer) for pattern in self.only)

    def computed_by(self, graph: Graph, layers: Sequence[int]) -> tuple[str, ...]:
        """Return the partners that compute the layers of a box, each once."""
        who = (self.elsewhere.get((id(graph), layer), "") for layer in layers)
        return tuple(dict.fromkeys(words for words in who if words))

    def fitting_nothing(self, model: Model) -> Iterator[str]:
        """Yield a sentence on each pattern of `only` and `hide` that no operation of a model fits."""
        layers = [layer for _, graph in model.graphs() for layer in graph.layers]
        for option, found in (("--only", self.only), ("--hide", self.hide)):
            for pattern in found:
                if not any(_fits(pattern, layer) for layer in layers):
                    yield f"{option} {pattern.text}: no operation has such a name or type"

    def highlights(self, graph: Graph, layers: Sequence[int], iteration: int | None = None) -> bool:
        """True if a box that stands for these layers is highlighted."""
        found = self.highlight
        if found is None or found.graph is not graph or found.layer not in layers:
            return False
        return found.iteration is None or iteration is None or found.iteration == iteration


def _fits(pattern: Pattern, layer: Layer) -> bool:
    return pattern.found_in(layer.name) or pattern.is_whole(layer.type)


def patterns(texts: Sequence[str]) -> tuple[Pattern, ...]:
    """Return the regular expressions of the command line. Raise UsageError for a text that is none."""
    found = []
    for text in texts:
        try:
            found.append(regex(text))
        except PatternError as error:
            raise UsageError(f"'{text}' is not a regular expression: {error}") from None
    return tuple(found)
