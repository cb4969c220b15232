"""The input at the cursor: what is wrong with its value, what is near, and all choices as a command line."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from stepper.engine.inputs import file_of
from stepper.session.input_choices import InputChoices, InputSource, Near, described
from stepper.tensors.number_text import fitted
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, clip_head, padded, printable
from tui.screens.inputs.table import loading_text
from tui.theme import key_text

_WANTED: Final[Mapping[InputSource | None, str]] = {
    InputSource.FILE: "a path to a .npy, or FILE.npz:KEY",
    InputSource.RANDOM: "a seed: a whole number",
    InputSource.LITERAL: "as in JSON: 3, [1,2], [[1],[2]]",
}
"""By source: how it is typed."""


class InputDetail(Pane, can_focus=False):
    """Help for the input at the cursor."""

    DEFAULT_CSS = "InputDetail { width: 1fr; height: 1fr; }"
    kind: ClassVar[str] = "input"

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.at = 0
        self.near: list[Near] = []
        self.typing: str | None = None

    def put(self, at: int, near: list[Near], typing: str | None) -> None:
        """This input; `typing` is the line under way."""
        self.at, self.near, self.typing = at, near, typing
        self.changed()

    def heading(self, width: int) -> list[Row]:
        """Return the input's name."""
        choices = self.host.inputs
        if choices is not None and choices.choices:
            self.title = clip(printable(choices.choices[self.at].parameter.name), max(width // 2, 8))
            self.note = "Tab completes " if self.typing is not None else "y copies the command line "
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Value, what is near, command line."""
        choices = self.host.inputs
        if choices is None or not choices.choices:
            return []
        rows = [*self._about(choices, width), *self._near_rows(width)]
        commands = _command_rows(choices, width)
        room = self.size.height - 1 - len(rows)
        if len(commands) < room:
            return [*rows, [], *commands]
        if len(commands) > room > 1:
            commands = [*commands[: room - 1], [("  … y copies all of it", "dim")]]
        return [*rows, *commands]

    def _about(self, choices: InputChoices, width: int) -> list[Row]:
        choice, outcome = choices.choices[self.at], choices.outcome(self.at)
        if self.typing is not None:
            return [[("  ", ""), (_WANTED.get(choice.source, _WANTED[InputSource.LITERAL]), "dim")]]
        if outcome.array is not None:
            row: Row = [("  ", ""), (described(outcome.array), "")]
            if outcome.span is not None:
                row.append((f"   {fitted(outcome.span[0])} to {fitted(outcome.span[1])}", "dim"))
            return [row]
        if outcome.loading is not None:
            total = outcome.loading.reading.total
            size = f" of {total / 2**20:,.0f} MB" if total else ""
            return [[("  ", ""), (f"{loading_text(outcome.loading)}{size}; Esc stops", "")]]
        proposed, arrows = choices.proposed.get(self.at), key_text("→ ←", ascii=self.look.ascii)
        if proposed is not None:
            row = [("  ", ""), (Path(file_of(proposed) or proposed).name, "strong"), (" beside the model fits", "")]
            return [[*row, (f": F5 runs on it, {arrows} choose something else", "dim")]]
        if choice.source is None:
            return [[("  ", ""), (f"{arrows} choose where its value comes from, Enter types a path", "dim")]]
        problem = outcome.problem
        if problem == "no such file":
            return [[("  ", ""), (clip_head(printable(choice.text), width // 2), "bad"), (" is not there.", "dim")]]
        return [
            [("  ", ""), (line, "bad" if not place else "")]
            for place, line in enumerate(textwrap.wrap(printable(problem), width - 4)[:3])
        ]

    def _near_rows(self, width: int) -> list[Row]:
        if not self.near:
            return []
        rows: list[Row] = [[("  near by:", "dim")]]
        room = max(min(max(len(near.spec) for near in self.near) + 2, width - 44), 12)
        for near in self.near[:6]:
            here = near.spec == self.typing
            size = "" if not near.bytes else f"{near.bytes / 1024:,.0f} KB" if near.bytes >= 1024 else f"{near.bytes} B"
            tone = "" if near.fits else "edit" if near.swapped is not None else "dim"
            rows.append(
                [
                    (" ▸ " if here else "   ", "accent"),
                    (padded(clip_head(printable(near.spec), room - 1), room), "" if near.fits else "dim"),
                    (padded(near.type, 16), "dim"),
                    (padded(size, 9, right=True), "dim"),
                    (f"  {near.verdict}", tone),
                ]
            )
        return rows


def _command_rows(choices: InputChoices, width: int) -> list[Row]:
    """Return the same on the command line, wrapped."""
    options = choices.command_line()
    if not options:
        return []
    lines: list[str] = []
    for option in options:
        if lines and len(lines[-1]) + len(option) + 3 <= width - 4:
            lines[-1] += f" {option}"
        else:
            lines.append(option)
    rows: list[Row] = [[("  the same on the command line", "dim")]]
    for place, line in enumerate(lines):
        more = " \\" if place < len(lines) - 1 else ""
        rows.append([("  ", ""), (clip(printable(line), width - 6), ""), (more, "dim")])
    return rows
