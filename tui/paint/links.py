"""Links: texts in rows that answer. A pane with a cursor on them is a LinkPane; a button is pressed in any pane.

rows.append(linked(row, Destination("up")))                                 # a whole row
row = [("born in ", "dim"), (LinkText(name, Destination("goto ...")), "")]       # a word of a sentence
row += key_button(key, "explain")                                      # a key with its word: one click presses it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from stepper.records import Record
from tui.keys.keymap import Keymap, key_for
from tui.keys.keys import NAMES, shown
from tui.paint.rows import Row, Token, cell_len

if TYPE_CHECKING:
    from stepper.debug.inspection.views import ValueView
    from stepper.engine.program import CompiledModel, Program
    from stepper.ir.model import Layer


class LinkedValue(Record, eq=False):
    """Value that a link stands for: an output of a layer of a program."""

    program: Program
    layer: Layer
    output: int = 0

    def address(self, compiled: CompiledModel) -> str:
        """Return how it is written at the prompt, wherever the run stands."""
        slot = self.program.slots.get((self.layer.id, self.output), -1)
        steps = (None,) * len(self.program.path)
        from stepper.query.address_resolution import Target, address_of

        target = Target(self.program, self.layer, self.output, slot, self.layer, steps)
        return str(address_of(target, compiled))


class Destination(Record, eq=False):
    """Destination of a link: a line that Enter carries out ({op} is the address of `value`), or the key of a button.

    `at_once`: one click carries the line out.
    """

    line: str = ""
    value: LinkedValue | None = None
    key: str = ""
    at_once: bool = False


def value_destination(program: Program | None, value: ValueView) -> Destination:
    """Return a target that opens a value of a program's graph; one that leads nowhere for what is not connected."""
    if program is None or value.layer is None:
        return Destination()
    return Destination("open {op}", LinkedValue(program, value.layer, value.output))


class LinkText(str):
    """Text of a cell that leads somewhere. It is equal to the same text without a target."""

    __slots__ = ("target",)
    target: Destination

    def __new__(cls, text: str, target: Destination) -> LinkText:
        """Return the text with its target."""
        made = super().__new__(cls, text)
        made.target = target
        return made

    def __reduce__(self) -> tuple[type[LinkText], tuple[str, Destination]]:
        return LinkText, (str(self), self.target)


def linked(row: Row, target: Destination) -> Row:
    """Return a row of which every cell leads to the target, but those that lead somewhere already.

    A target without a line leads nowhere.
    """
    if not target.line:
        return row
    return [(text if isinstance(text, LinkText) else LinkText(text, target), token) for text, token in row]


def link_in(row: Row, x: int) -> Destination | None:
    """Return where the cell of a row at a column leads."""
    end = 0
    for text, _ in row:
        end += cell_len(text)
        if x < end:
            return text.target if isinstance(text, LinkText) else None
    return None


def destinations_in(rows: Iterable[Row]) -> list[tuple[int, Destination]]:
    """Return the targets of links in the order of reading, each once, with its row; buttons are none."""
    found: dict[int, tuple[int, Destination]] = {}
    for index, row in enumerate(rows):
        for text, _ in row:
            if isinstance(text, LinkText) and not text.target.key:
                found.setdefault(id(text.target), (index, text.target))
    return list(found.values())


def key_button(keys: str, word: str, keymap: Keymap, tone: Token = "dim") -> Row:
    """Return keys as they are written, such as `n N`, with a word: a click presses the key, on the word the first."""
    names = _names_in(keymap)
    parts = keys.split(" ")
    targets = [Destination(key=names.get(part, part.lower())) for part in parts]
    if keys in names:
        parts, targets = [keys], [Destination(key=names[keys])]
    row: Row = []
    for part, target in zip(parts, targets, strict=True):
        row += [(" ", "")] if row else []
        row.append((LinkText(part, target), "key"))
    return [*row, (LinkText(f" {word}", targets[0]), tone)]


_KNOWN: Final[dict[int, tuple[Keymap, Mapping[str, str]]]] = {}
"""By the identity of a table of keys: its keys as they are written, and their names. There are few tables in a run."""


def _names_in(keymap: Keymap) -> Mapping[str, str]:
    known = _KNOWN.get(id(keymap))
    if known is None or known[0] is not keymap:
        names = {shown(name): name for key in keymap for name in key.keys}
        known = _KNOWN[id(keymap)] = keymap, names | {text: name for name, text in NAMES.items()}
    return known[1]


def key_words(commands: Iterable[tuple[str, str]], pane: str, keymap: Keymap) -> list[Row]:
    """Return a button for each of the commands that has a key in the pane; the word is said with the command."""
    keys = ((key_for(command, pane, keymap), word) for command, word in commands)
    return [key_button(key.shown, word, keymap) for key, word in keys if key is not None]
