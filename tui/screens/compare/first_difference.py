"""Where the run first leaves the reference, in three lines: which value, made here or not, what agrees before."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from stepper.compare.stops import FirstDifference, Standing, ValueDifference
from stepper.tensors.number_text import fitted
from stepper.wording import counted
from tui.paint.pane import Pane
from tui.paint.rows import Row, clip, clip_head, printable
from tui.theme import GLYPHS


class FirstDifferencePane(Pane, can_focus=False):
    """The verdict in a sentence."""

    DEFAULT_CSS = "FirstDifferencePane { height: auto; margin-top: 1; }"
    kind: ClassVar[str] = "verdict"
    title = "first difference"

    def heading(self, width: int) -> list[Row]:
        """Return the title, with the reference at the right."""
        comparison = self.state.comparison
        title = "" if comparison is None else clip_head(printable(comparison.title), max(width // 2, 10))
        self.note = f"against {title} " if title else "nothing to compare with "
        self.title = "first difference"
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return the sentence."""
        comparison = self.state.comparison
        if comparison is None or comparison.problem:
            return [[]]
        first = comparison.first
        if first is None:
            return [[("  looking for it", "dim")], [], [], []]
        if first.difference is None:
            return [_none(first), [], [], []]
        return [*_about(first, first.difference, width), []]


def _agreeing(count: int) -> str:
    return f"{counted(count, 'value')} {'agrees' if count == 1 else 'agree'}"


def _none(first: FirstDifference) -> Row:
    if not first.compared:
        if first.complete:
            return [("  ", ""), ("the reference has no value of this run", "edit")]
        return [("  ", ""), (f"no value of the reference up to {printable(first.place)}", "edit")]
    within = f"none is further off than {fitted(first.before, 8)}" if first.before else "bit for bit"
    agree = f"{_agreeing(first.compared)}, {within}"
    end = "" if first.complete else f"; looked as far as {printable(first.place)}"
    return [("  = ", "accent"), (agree, ""), (end, "dim")]


def _about(first: FirstDifference, one: ValueDifference, width: int) -> list[Row]:
    name = clip(printable(one.layer.name), 40 if width >= 100 else 22)
    where = "" if first.iteration is None else f"  iteration {first.iteration}"
    row: Row = [(f"  {GLYPHS['diff']} {name}", "bad"), (where, "strong")]
    found = one.measure
    if found is not None and found.problem:
        return [[*row, (f"   {printable(found.problem)}", "")], *_rest(first, one, width)]
    row += [("   largest difference ", "dim"), (fitted(one.distance, 8), "strong")]
    if found is not None:
        at = "" if not found.index else f" at [{','.join(map(str, found.index))}]"
        row += [(at, ""), ("  tolerance ", "dim"), (fitted(one.allowed, 8), "")]
        if width >= 140:
            row += [
                ("   ours ", "dim"),
                (_digits(found.ours), ""),
                ("   reference ", "dim"),
                (_digits(found.theirs), ""),
            ]
    return [row, *_rest(first, one, width)]


def _rest(first: FirstDifference, one: ValueDifference, width: int) -> list[Row]:
    rows: list[Row] = [[("    ", ""), (str(one.standing), "strong")]]
    if one.is_born:
        rows[0].append((_made(one, wide=width >= 100), "dim"))
    elif one.standing is Standing.CARRIED:
        rows[0].append(("   on the reference's own inputs this operation agrees", "dim"))
    elif one.standing is Standing.ABOVE:
        rows[0].append(("   its inputs are not known to the reference, so where it is made is open", "dim"))
    agree = "nothing was compared"
    if first.compared:
        within = f"within {fitted(first.before, 8)}" if first.before else "bit for bit"
        agree = f"{_agreeing(first.compared)} {within}"
    rows.append([("    before it   ", "dim"), (agree, "")])
    if first.iteration:
        rows[-1].append((f" · iteration{'s' if first.iteration > 1 else ''} 0{_up_to(first.iteration)} whole", ""))
    return rows


def _up_to(iteration: int) -> str:
    return "" if iteration == 1 else f" to {iteration - 1}"


def _made(one: ValueDifference, *, wide: bool) -> str:
    if one.made_here is None:
        return ""
    text = "   fed with the reference's own inputs it still differs by " if wide else "   on its inputs still "
    own = one.share_made_here
    share = "" if own is None or not wide else f": {own:.0%} is made in this operation"
    return f"{text}{fitted(one.made_here, 8)}{share}"


def _digits(value: Any) -> str:
    if value is None:
        return "–"
    return f"{float(value):.6g}" if np.asarray(value).dtype.kind == "f" else clip(printable(str(value)), 12)
