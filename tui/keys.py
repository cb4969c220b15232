"""The keys as data: each is a named command, which the prompt, the palette, the footer and the help know as well.

A command is a line for the prompt with holes: {n} the count that was typed before the key (1 without), {op} the address
of the selected operation, {letter} the key that is typed next. The first word is a debugger's command or one of
actions.py. A small letter goes forward in time, its capital the same way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from textual import events


@dataclass(frozen=True, slots=True)
class Key:
    """One or several keys for a command. `word` is for the footer, `panes` where it holds (empty: everywhere)."""

    keys: tuple[str, ...]
    command: str
    word: str
    help: str
    panes: tuple[str, ...] = ()

    @property
    def takes_letter(self) -> bool:
        """Whether it waits for another key."""
        return "{letter}" in self.command

    @property
    def shown(self) -> str:
        """The first key as it is written on a keyboard."""
        return NAMES.get(self.keys[0], self.keys[0])


NAMES: Final = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "colon": ":",
    "question_mark": "?",
    "slash": "/",
    "at": "@",
    "apostrophe": "'",
    "equals_sign": "=",
    "plus": "+",
    "minus": "-",
    "full_stop": ".",
    "comma": ",",
    "enter": "Enter",
    "space": "Space",
    "escape": "Esc",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "home": "Home",
    "end": "End",
    "ctrl+home": "Ctrl+Home",
    "ctrl+end": "Ctrl+End",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "ctrl+p": "Ctrl+P",
    "ctrl+q": "Ctrl+Q",
    "ctrl+c": "Ctrl+C",
} | {f"f{number}": f"F{number}" for number in range(1, 13)}

IN_TIME: Final = ("operations", "timeline", "grid", "chart")
"""Panes in which the arrows move the moment itself."""

WITH_ANOMALIES: Final = ("grid", "chart")
"""Panes in which iterations are seen side by side."""

TENSOR: Final = ("tensor",)

SELECTING: Final = ("operations", "graph", "grid", "tensor")
CHOOSING: Final = ("inputs", "dimensions")
"""Panes of the inputs screen."""

KEYS: Final = (
    # forward and backward in time
    Key(("n", "f10"), "next {n}", "op", "next operation, a nested loop or branch as one"),
    Key(("N",), "reverse-next {n}", "op back", "the operation before"),
    Key(("down", "j"), "next {n}", "op", "next operation", ("operations", "grid")),
    Key(("up", "k"), "reverse-next {n}", "op back", "the operation before", ("operations", "grid")),
    Key(("s", "f11"), "step {n}", "into", "next operation, into nested bodies"),
    Key(("S",), "reverse-step {n}", "into, back", "the operation before, in nested bodies too"),
    Key(("f", "shift+f11", "f23"), "finish", "finish", "after the last iteration of this loop; from there, out of it"),
    Key(("F",), "reverse-finish", "entry", "before the first iteration of this loop; from there, out of it"),
    Key(("right_square_bracket",), "iter +{n}", "iteration", "the same place in the next iteration"),
    Key(("left_square_bracket",), "iter -{n}", "iteration back", "the same place in the iteration before"),
    Key(("right", "l"), "iter +{n}", "iteration", "the same place in the next iteration", IN_TIME),
    Key(("left", "h"), "iter -{n}", "iteration back", "the same place in the iteration before", IN_TIME),
    Key(("c", "f5"), "continue {n}", "continue", "on to the next stop, or to the end"),
    Key(("C",), "reverse-continue {n}", "last stop", "back to the stop before, or to the start"),
    Key(("t",), "run-to {op}", "run to", "on to the selected operation"),
    Key(("T",), "back-to {op}", "back to", "back to where the selected operation ran last"),
    Key(("g", "home"), "edge first", "first", "the same place in the first iteration; outside of loops the start"),
    Key(("G", "end"), "edge last", "last", "the same place in the last iteration; outside of loops the end"),
    Key(("escape", "ctrl+c"), "pause", "pause", "stop a movement where it is; close what is open"),
    # looking
    Key(("u",), "up", "outwards", "look at the frame around this one"),
    Key(("d",), "down", "inwards", "look at the frame inside this one"),
    Key(("J",), "select +{n}", "select", "select the operation below, without moving", SELECTING),
    Key(("K",), "select -{n}", "select", "select the operation above, without moving", SELECTING),
    # one value
    Key(("down", "j"), "element down {n}", "element", "the element below", TENSOR),
    Key(("up", "k"), "element up {n}", "element", "the element above", TENSOR),
    Key(("left", "h"), "element left {n}", "element", "the element to the left", TENSOR),
    Key(("right", "l"), "element right {n}", "element", "the element to the right", TENSOR),
    Key(("home",), "element home", "row's first", "the first element of the row", TENSOR),
    Key(("end",), "element end", "row's last", "the last element of the row", TENSOR),
    Key(("ctrl+home",), "element first", "first", "the first element of the value", TENSOR),
    Key(("ctrl+end",), "element last", "last", "the last element of the value", TENSOR),
    Key(("pagedown",), "element page {n}", "page", "a page further down", TENSOR),
    Key(("pageup",), "element -page {n}", "page", "a page further up", TENSOR),
    Key(("at",), "prompt @", "go to", "go to an element: @ 0,3", TENSOR),
    Key(
        ("equals_sign",),
        "element-against",
        "against before",
        "the difference from the iteration before, and back",
        TENSOR,
    ),
    Key(("x", "f8"), "non-finite next", "next NaN", "the next NaN or Inf", TENSOR),
    Key(("X",), "non-finite previous", "NaN before", "the NaN or Inf before", TENSOR),
    Key(("a",), "axis next", "axis", "pick the next axis", TENSOR),
    Key(("greater_than_sign",), "axis +{n}", "index", "the next index of the picked axis", TENSOR),
    Key(("less_than_sign",), "axis -{n}", "index", "the index of the picked axis before", TENSOR),
    Key(("r",), "axis rows", "axis down", "show the picked axis down the rows", TENSOR),
    Key(("R",), "axis columns", "axis across", "show the picked axis across the columns", TENSOR),
    Key(("i",), "other-value next", "input", "another output of the operation, or one of its inputs", TENSOR),
    Key(("I",), "other-value previous", "input back", "the output or input before", TENSOR),
    Key(("y",), "copy-element value", "copy", "copy the element with all its digits", TENSOR),
    Key(("Y",), "copy-element address", "copy address", "copy the address of the element", TENSOR),
    Key(("P",), "save-value", "save", "write the value into a .npy file", TENSOR),
    Key(("enter",), "back", "back", "close the value", TENSOR),
    Key(("down",), "wire down", "along wires", "the operation that reads this one", ("graph",)),
    Key(("up",), "wire up", "along wires", "the operation that this one reads", ("graph",)),
    Key(("left",), "wire left", "along wires", "the box to the left", ("graph",)),
    Key(("right",), "wire right", "along wires", "the box to the right", ("graph",)),
    Key(("down",), "scroll {n}", "scroll", "scroll", ("value", "scans", "card")),
    Key(("up",), "scroll -{n}", "scroll", "scroll", ("value", "scans", "card")),
    *(Key((way,), f"port {way}", "entry", "another entry of the port map", ("ports",)) for way in ("down", "up")),
    *(Key((way,), f"port {way}", "side", "into the body, or out of it", ("ports",)) for way in ("left", "right")),
    Key(("enter",), "open-port", "value", "the value of the chosen entry", ("ports",)),
    *(Key((way,), f"choose {way}", "input", "another input or dimension", CHOOSING) for way in ("down", "up")),
    *(Key((way,), f"choose {way}", "from", "another source for the value", ("inputs",)) for way in ("right", "left")),
    Key(("enter",), "edit-input", "type", "type a path, a literal, a seed, a size", CHOOSING),
    Key(("f5", "c"), "start", "run", "run the model on these inputs", CHOOSING),
    Key(("y",), "copy-inputs", "copy", "copy the choices as options of the command line", CHOOSING),
    Key(("equals_sign",), "against", "compare", "compare with: nothing, the iteration before, a reference"),
    Key(("x", "f8"), "difference next", "difference", "the next operation above its tolerance", ("differences",)),
    Key(("X",), "difference previous", "difference back", "the one before", ("differences",)),
    Key(("down",), "select +{n}", "op", "the operation below", ("differences",)),
    Key(("up",), "select -{n}", "op", "the operation above", ("differences",)),
    Key(("D",), "compare", "compare view", "the run beside a reference, op by op"),
    Key(("i",), "view ports", "port map", "the port map: into the body, out of it, the next iteration"),
    Key(("pagedown",), "scroll page", "scroll", "scroll a page"),
    Key(("pageup",), "scroll -page", "scroll", "scroll a page back"),
    Key(("enter",), "open", "value", "open what is selected full screen; step into a loop"),
    Key(("space",), "fold", "fold", "fold, unfold"),
    Key(("v",), "look next", "view", "the next view of this pane, such as another statistic"),
    Key(("V",), "look previous", "view back", "the view before"),
    Key(("v",), "view grid", "grid", "all iterations of the operations, unrolled", ("operations",)),
    Key(("v",), "back", "list", "back to the list of operations", ("grid",)),
    Key(("v",), "view timeline", "full size", "the timeline on a screen of its own", ("timeline",)),
    Key(("v",), "back", "back", "back to the main screen", ("chart",)),
    Key(("V",), "look next", "statistic", "the next statistic", ("operations", "grid")),
    Key(("enter",), "go-to-cell", "go there", "go to the selected cell; open the value of the moment", ("grid",)),
    Key(("x", "f8"), "anomaly next", "anomaly", "to where NaN, Inf or another shape begins next", WITH_ANOMALIES),
    Key(("X",), "anomaly previous", "anomaly back", "to the one before", WITH_ANOMALIES),
    Key(("H", "shift+left"), "pan -{n}", "scroll", "see earlier iterations, without moving", WITH_ANOMALIES),
    Key(("L", "shift+right"), "pan {n}", "scroll", "see later iterations, without moving", WITH_ANOMALIES),
    Key(("e",), "explain", "explain", "all that there is to say about this stop, with the rules"),
    Key(("o",), "why {op}", "origin", "where the selected value comes from or goes to"),
    Key(("p",), "prompt print ", "print", "print a value, with slices"),
    Key(("at",), "prompt goto ", "go to", "go to an operation, an iteration, a mark"),
    Key(("slash",), "prompt search ", "search", "search an operation by name"),
    Key(("full_stop",), "search-next", "next found", "the next one found"),
    Key(("comma",), "search-previous", "previous found", "the one found before"),
    Key(("plus",), "zoom in", "larger", "larger boxes, more digits"),
    Key(("minus",), "zoom out", "smaller", "smaller boxes, fewer digits"),
    Key(("z",), "zoom-pane", "zoom pane", "this pane alone, and back"),
    # stopping
    Key(("b", "f9"), "toggle-break", "break", "set a breakpoint on the selected operation, or take it away"),
    Key(("B",), "info breaks", "breaks", "the list of breakpoints"),
    Key(("w",), "watch {op}", "watch", "watch the selected value at every stop"),
    Key(("W",), "info watches", "watches", "the list of watches"),
    Key(("m",), "mark {letter}", "mark", "give this moment a letter"),
    Key(("apostrophe",), "goto '{letter}", "to mark", "go to a mark"),
    # the screen
    Key(("y",), "copy value", "copy", "copy the selected value"),
    Key(("Y",), "copy address", "copy name", "copy the address of the selected value"),
    Key(("colon",), "prompt", "prompt", "type a command; Tab completes"),
    Key(("tab",), "focus next", "pane", "the next pane"),
    Key(("shift+tab",), "focus previous", "pane back", "the pane before"),
    Key(("ctrl+p",), "palette", "palette", "every action by name"),
    Key(("question_mark", "f1"), "help-keys", "help", "the keys of this pane, then all"),
    Key(("q",), "back", "back", "close what is open; on the main screen, leave"),
    Key(("ctrl+q",), "quit", "quit", "leave"),
)

FOOTERS: Final = {
    "differences": ("difference next", "select +", "iter +", "open", "look next", "against", "back", "help-keys"),
    "operations": ("next", "iter +", "continue", "toggle-break", "open", "view grid", "prompt", "help-keys"),
    "graph": ("next", "iter +", "wire down", "continue", "toggle-break", "zoom in", "prompt", "help-keys"),
    "grid": (
        "next",
        "iter +",
        "anomaly next",
        "why {op}",
        "back",
        "look next",
        "edge first",
        "toggle-break",
        "help-keys",
    ),
    "chart": ("iter +", "anomaly next", "zoom in", "pan", "edge first", "continue", "watch {op}", "back", "help-keys"),
    "timeline": ("iter +", "edge first", "edge last", "continue", "watch {op}", "prompt", "help-keys"),
    "stop": ("why {op}", "reverse-next", "explain", "reverse-continue", "continue", "prompt", "help-keys"),
    "tensor": (
        "element down",
        "look next",
        "element-against",
        "axis next",
        "axis +",
        "iter +",
        "prompt @",
        "non-finite next",
        "zoom in",
        "other-value next",
        "copy-element value",
        "save-value",
        "help-keys",
    ),
    "ports": ("port down", "port left", "iter +", "next", "open-port", "explain", "back", "help-keys"),
    "inputs": (
        "choose down",
        "choose right",
        "edit-input",
        "focus next",
        "copy-inputs",
        "start",
        "prompt",
        "help-keys",
    ),
    "dimensions": ("choose down", "edit-input", "focus next", "start", "prompt", "help-keys"),
    "card": ("scroll", "pause", "prompt", "help-keys"),
    "": ("next", "iter +", "continue", "toggle-break", "focus next", "prompt", "help-keys"),
}
"""By pane: which commands the last line names, by how they begin."""

PAIRS: Final = {
    "n": "N",
    "]": "[",
    "c": "C",
    "s": "S",
    "f": "F",
    "+": "-",
    "↓": "↑",
    ">": "<",
    "x": "X",
    "g": "G",
    "L": "H",
    "i": "I",
    "←": "→",
    "→": "←",
}
"""Keys that are shown together with the way back."""


def keys_of(pane: str) -> Iterator[Key]:
    """The keys that hold in a pane, its own before those that hold everywhere."""
    yield from (key for key in KEYS if pane in key.panes)
    yield from (key for key in KEYS if not key.panes)


def footer(pane: str) -> list[tuple[str, str]]:
    """What the last line says: keys and words."""
    found = []
    own = {name for key in KEYS if pane in key.panes for name in key.keys}
    for command in FOOTERS.get(pane, FOOTERS[""]):
        known = [key for key in keys_of(pane) if key.command.removesuffix("{n}").strip() == command]
        general = (key for key in known if not key.panes and key.keys[0] not in own)
        key = known[0] if command.startswith(("wire", "scroll")) else next(general, known[0] if known else None)
        if key is not None:
            shown = key.shown
            found.append((f"{shown} {PAIRS[shown]}" if shown in PAIRS else shown, key.word))
    return found


class Dispatcher:
    """Puts keys together: a count, a key, and where it wants one a letter."""

    def __init__(self) -> None:
        self._count = ""
        self._waits_for: Key | None = None

    @property
    def pending(self) -> str:
        """What was typed and waits for more."""
        return self._count + ("" if self._waits_for is None else self._waits_for.shown)

    def forget(self) -> None:
        """Begin anew."""
        self._count, self._waits_for = "", None

    def feed(self, event: events.Key, pane: str) -> str | None:
        """A key was pressed: the command with all but {op} filled in; empty where more is to come, None for no key."""
        if self._waits_for is not None:
            command = self._waits_for.command
            self.forget()
            letter = event.character or ""
            return command.replace("{letter}", letter) if letter.isalnum() else ""
        digit = event.character or ""
        if digit in "0123456789" and digit and (self._count or digit != "0") and len(self._count) < 9:
            self._count += digit
            return ""
        key = next((key for key in keys_of(pane) if event.key in key.keys), None)
        if key is None:
            had = bool(self.pending)
            self.forget()
            return "" if had else None
        if key.takes_letter:
            self._waits_for = key
            return ""
        command = key.command.replace("{n}", self._count or "1")
        if command.endswith(" 1") and "{n}" in key.command and "+" not in command and "-1" not in command:
            command = command[:-2]
        self.forget()
        return command
