"""Where we are: one line a frame, its iteration or operation at the right end. u and d move the view along it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from tui.paint.link_pane import LinkPane
from tui.paint.links import Destination, linked
from tui.paint.names import operation_names, running_name
from tui.paint.rows import Row, clip, printable, spread
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepper.debug.inspection.views import ConditionView, FrameView, LevelView, LoopView

COUNTED: Final = 10**6
"""A limit above this is as good as none: exporters write the largest integer."""


class Frames(LinkPane):
    """The stack, from the model's own graph inwards."""

    follows_selection: ClassVar[bool] = False
    kind: ClassVar[str] = "frames"
    title = "frames"
    note = "u d"
    help_text: ClassVar[str] = (
        "The loops and branches in which the run stands; the iteration at the right. Enter looks at one."
    )

    def rows(self, width: int) -> list[Row]:
        """Return a row a frame."""
        view = self.state.view
        if view is None or not view.levels:
            return [[("  ", ""), ("the run has ended" if view is not None else "reading", "dim")], []]
        return [*(self._row(level, width) for level in view.levels), []]

    def _row(self, level: LevelView, width: int) -> Row:
        here = level.depth == self.state.depth
        what = self._what(level)
        indent = "  " * (level.depth - 1) + ("└ " if level.depth else "")
        name = "model" if level.depth == 0 else self._called(level)
        room = width - 3 - len(indent) - len(what)
        left: Row = [
            (GLYPHS["now"] if here else " ", "accent"),
            (indent, "faint"),
            (clip(name, max(room, 6)), "strong" if here else "dim"),
        ]
        row = spread(left, [(what, "" if here else "dim")], width)
        return linked(row, Destination(f"frame {level.depth}"))

    def _called(self, level: LevelView) -> str:
        name = running_name(self.state.frames[level.depth - 1])
        return name if name.startswith(level.kind) else f"{level.kind} {name}"

    def _what(self, level: LevelView) -> str:
        frame = self.state.frames[level.depth]
        if level.kind not in ("TensorIterator", "Loop"):
            return f"op {frame.moment + 1} of {len(frame.layers)}"
        if level.iteration is None:
            return "entered"
        return f"{level.iteration}{limit_text(level)}"


def limit_text(level: LevelView) -> str:
    """Return the text behind an iteration's number: ` of max 24`, or nothing where there is no limit to speak of."""
    most = level.limit if level.total is None else level.total
    if level.iteration is None or most is None or most > COUNTED:
        return ""
    return f" of {most}" if level.total is not None else f" of max {most}"


def loop_title(loop: LoopView, frames: Sequence[FrameView], room: int) -> str:
    """Return a loop's name, kind and id, for a heading's note: the whole name, with less room the part that tells."""
    layer, whole = loop.layer, printable(loop.layer.name)
    kind = f"{layer.type} {layer.id}"
    around = (frame.program for frame in frames)
    known = (zip(program.operations, operation_names(program), strict=True) for program in around)
    name = next((name for one in known for operation, name in one if operation.layer is layer), whole)
    forms = [f"{whole} · {kind}", f"{name} · {kind}", kind if name.startswith(layer.type) else name]
    if name == layer.type:
        del forms[1]
    return next((text for text in forms if len(text) <= room), clip(name, room))


def verdict_words(loop: LoopView, condition: ConditionView) -> tuple[str, str]:
    """Return what the condition of the iteration that runs says, and what follows from it; the verdict alone, too."""
    if not condition.upcoming:
        return "false: this is the last", "false"
    return "true, but this is the last" if loop.is_last_by_count else "true: there is another", "true"
