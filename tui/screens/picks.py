"""PickList: what a line may become, or may have meant, over the rest of the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from tui.paint.columns import TableColumn, written
from tui.paint.list_pane import ListPane
from tui.paint.rows import Row, cell_len, clip, clip_end, printable

if TYPE_CHECKING:
    from stepper.commands.completion import Completion
    from tui.paint.pane import Host
    from tui.state import State

_MOST_WORD: Final = 48


class PickList(ListPane["Completion"]):
    """Each with its kind, its type and shape, and what it is now. While one types the prompt keeps the focus."""

    DEFAULT_CSS = """
    PickList {
        layer: over; dock: bottom; display: none; height: auto; max-height: 12; margin-bottom: 3;
        background: $surface; border-top: solid $primary;
    }
    PickList.open { display: block; }
    PickList.below-a-rule { border-top: blank; }
    """
    kind: ClassVar[str] = "picks"
    follows_selection: ClassVar[bool] = False
    help_text: ClassVar[str] = "What the line may become, or may have meant. Enter takes the chosen one, Esc none."

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._picks: Sequence[Completion] = ()
        self._word = 0

    def put(self, title: str, picks: Sequence[Completion], *, is_focused: bool = False) -> None:
        """Show these, the first of them chosen; none closes the list. While one types the prompt has the focus."""
        self.can_focus = is_focused
        self._picks, self.title, self.cursor, self.top = picks, title, 0, 0
        self._word = min(max((cell_len(one.word) for one in picks), default=0) + 2, _MOST_WORD)
        self.note = f"{len(picks)} " if picks else ""
        self.update_classes({"open": bool(picks), "below-a-rule": bool(picks) and self._lies_below_a_rule()})
        self.changed()

    def _lies_below_a_rule(self) -> bool:
        """True if the line above another part of the screen is left to be seen just above the line of the list."""
        room, most = self.screen.size, self.styles.max_height
        height = len(self._picks) + 2 if most is None else min(len(self._picks) + 2, int(most.value))
        y = room.height - self.styles.margin.bottom - height - 1
        parts = (part for part in self.screen.query("*") if part.display and part is not self)
        return any(
            (part.region.y, part.region.width) == (y, room.width) and part.styles.border_top[0] for part in parts
        )

    @property
    def is_open(self) -> bool:
        """True if there is anything to pick."""
        return bool(self._picks)

    def entries(self) -> Sequence[Completion]:
        """Return what there is to pick."""
        return self._picks

    def columns(self) -> Sequence[TableColumn[Completion]]:
        """Return the word, its type and shape, what it is now, and its kind."""
        return (
            TableColumn("", lambda width: min(self._word, width // 2), _word),
            TableColumn("", 16 if any(one.form for one in self._picks) else 0, _form),
            TableColumn("", lambda width: max((width - self._word - 16) // 2, 0) if self._has_values else 0, _value),
            TableColumn("", None, lambda one, width: written(clip_end(printable(one.what), width), width, "dim")),
        )

    @property
    def _has_values(self) -> bool:
        return any(one.array is not None for one in self._picks)

    def update(self, state: State) -> None:
        """Keep what was put."""
        self.state = state

    def open_chosen(self) -> None:
        """Carry out the chosen line."""
        chosen = self.chosen
        self.put("", ())
        if chosen is not None:
            self.host.submit(chosen.line)

    def clicked(self, index: int, x: int, *, again: bool) -> None:
        """While one types, the prompt takes what is clicked."""
        self.host.take_completion(self._picks[index])


def _word(one: Completion, width: int) -> Row:
    return written(clip(printable(one.word), width - 1), width, "strong")


def _form(one: Completion, width: int) -> Row:
    return written(clip_end(one.form, width - 1), width, "dim")


def _value(one: Completion, width: int) -> Row:
    return written(clip_end(printable(one.value_text(width - 2)), width - 2), width)
