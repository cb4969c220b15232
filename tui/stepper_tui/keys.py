"""Keys: what each is called, where it holds, and what it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stepper.records import Record

Bindings = Mapping[str, str]
"""Keys as one writes them, and the command of each; an empty one takes the key away."""

PRESETS: Final[Mapping[str, Bindings]] = {
    "default": {},
    "vscode": {
        "F10": "next {n}",
        "F11": "step {n}",
        "Shift+F11": "finish",
        "F5": "continue {n}",
        "Shift+F5": "quit",
        "F9": "toggle-break",
        "F8": "to-anomaly",
        "Shift+F8": "reverse-to-anomaly",
        "F12": "why {op}",
        "Shift+F12": "uses {op}",
        "Ctrl+F": "prompt search ",
        "F3": "search-next",
        "Shift+F3": "search-previous",
        "Ctrl+G": "prompt goto ",
        "F1": "palette",
    },
    "vim": {
        "j": "next {n}",
        "k": "reverse-next {n}",
        "l": "iter +{n}",
        "h": "iter -{n}",
        "G": "sheet-move end",
        "n": "search-next",
        "N": "search-previous",
        "Ctrl+D": "scroll page",
        "Ctrl+F": "scroll page",
        "Ctrl+U": "scroll -page",
        "Ctrl+B": "scroll -page",
        "Ctrl+W w": "focus next",
        "Ctrl+W W": "focus previous",
        "Z Z": "quit",
    },
    "emacs": {
        "Ctrl+N": "next {n}",
        "Ctrl+P": "reverse-next {n}",
        "Ctrl+F": "iter +{n}",
        "Ctrl+B": "iter -{n}",
        "Ctrl+V": "scroll page",
        "Alt+v": "scroll -page",
        "Alt+<": "sheet-move home",
        "Alt+>": "sheet-move end",
        "Ctrl+S": "prompt search ",
        "Ctrl+R": "search-previous",
        "Ctrl+G": "pause",
        "Alt+x": "palette",
        "Ctrl+X Space": "toggle-break",
        "Ctrl+X o": "focus next",
        "Ctrl+X Ctrl+S": "save-session",
        "Ctrl+X Ctrl+R": "rerun",
        "Ctrl+X Ctrl+E": "export",
        "Ctrl+X Ctrl+C": "quit",
    },
}


class Key(Record):
    """Keys for a command. `word` is for the footer, `panes` where it holds (empty: everywhere).

    `rare`: nobody needs to know it; the page of help says it in a word.
    """

    keys: tuple[str, ...]
    command: str
    word: str
    help: str
    panes: tuple[str, ...] = ()
    rare: bool = False

    @property
    def plain(self) -> str:
        """The command as footers name it."""
        return self.command.removesuffix("{n}").strip()

    @property
    def takes_letter(self) -> bool:
        """True if it waits for another key."""
        return "{letter}" in self.command

    @property
    def shown(self) -> str:
        """The first key, as on a keyboard."""
        return shown(self.keys[0])


Keymap = tuple[Key, ...]
"""Keys as in KEYS, perhaps with others in their place (see keymap.py)."""


def shown(name: str) -> str:
    """Return a key, or several that are pressed one after another, as they are written on a keyboard."""
    return " ".join(_one_shown(part) for part in name.split(" "))


def _one_shown(name: str) -> str:
    if name in NAMES or "+" not in name:
        return NAMES.get(name, name)
    *held, last = name.split("+")
    last = NAMES.get(last, last)
    return "+".join((*(word.capitalize() for word in held), last.upper() if len(last) == 1 else last))


NAMES = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "colon": ":",
    "question_mark": "?",
    "number_sign": "#",
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
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "dollar_sign": "$",
    "asterisk": "*",
    "exclamation_mark": "!",
    "delete": "Delete",
    "backspace": "Backspace",
    "home": "Home",
    "end": "End",
    "ctrl+home": "Ctrl+Home",
    "ctrl+end": "Ctrl+End",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "vertical_line": "|",
    "pagedown": "PgDn",
    "pageup": "PgUp",
} | {f"f{number}": f"F{number}" for number in range(1, 13)}

SHEET = ("sheet",)
GRAPH = ("graph",)
TENSOR = ("tensor",)
CHOOSING = ("inputs", "dimensions")
"""Panes of the inputs screen."""
PICKS = ("picks",)

_FAR = ("page", "-page", "first", "last")

KEYS = (
    # the sheet: the cursor is the moment
    *(
        Key(keys, f"sheet-move {way} {{n}}".rstrip(), word, help, SHEET, rare=way in _FAR)
        for keys, way, word, help in (
            (("right", "l", "right_square_bracket"), "right", "iteration", "the next iteration"),
            (("left", "h", "left_square_bracket"), "left", "iteration back", "the iteration before"),
            (("down", "j"), "down", "row", "the row below"),
            (("up", "k"), "up", "row back", "the row above"),
            (("pagedown",), "page", "page", "a page further down"),
            (("pageup",), "-page", "page back", "a page further up"),
            (("home",), "home", "first", "the first iteration"),
            (("end",), "end", "last", "the last iteration; of a run under way the newest, always"),
            (("ctrl+home",), "first", "first row", "the first row"),
            (("ctrl+end",), "last", "last row", "the last row"),
        )
    ),
    Key(("enter",), "sheet-open", "in", "into the loop, the branch that ran, the tensor", SHEET),
    Key(("escape", "ctrl+c"), "pause", "out", "stop a movement; close an answer; come out", SHEET),
    Key(("f", "tab"), "rows", "rows", "other rows: carried, all, why, ...", SHEET),
    Key(("t",), "tree", "loops", "the tree of loops and branches", SHEET, rare=True),
    Key(("v", "space"), "value", "value", "the whole value of the cell", SHEET),
    Key(("g",), "view graph", "graph", "the graph of the body", SHEET),
    Key(("o",), "sheet-why", "cause", "where the value comes from, and goes to", SHEET),
    Key(("O",), "uses {op}", "effect", "where the value goes: what reads it", SHEET),
    Key(("x", "f8"), "sheet-finding next", "found", "the next finding: NaN, Inf, rules", SHEET),
    Key(("X", "shift+f8", "f20"), "sheet-finding previous", "found before", "the finding before", SHEET),
    Key(("e",), "why end", "why it ended", "why the loop ended", SHEET, rare=True),
    Key(("plus",), "sheet-wider 1", "operands", "one operand more of the path, or less", SHEET, rare=True),
    Key(("minus",), "sheet-wider -1", "fewer", "one operand less of the path", SHEET, rare=True),
    Key(("greater_than_sign",), "sheet-sort down", "order", "order by the row; again: as it ran", SHEET, rare=True),
    Key(("less_than_sign",), "sheet-sort up", "order up", "order by the row, the least first", SHEET, rare=True),
    Key(("vertical_line",), "filter-prompt", "filter", "only iterations where a condition holds", SHEET, rare=True),
    Key(("slash",), "prompt search ", "find", "find a name, a type or a condition", SHEET),
    Key(("full_stop",), "search-next", "next found", "the next one found", SHEET),
    Key(("comma",), "search-previous", "found before", "the one found before", SHEET),
    Key(("y",), "sheet-copy", "copy CSV", "copy the rows, or the address", SHEET, rare=True),
    Key(("Y",), "sheet-copy address", "copy address", "copy the address of the cell", SHEET, rare=True),
    # forward and backward in time
    Key(("n", "f10"), "next {n}", "op", "the next operation, a loop as one"),
    Key(("N",), "reverse-next {n}", "op back", "the operation before"),
    Key(("s", "f11"), "step {n}", "into", "the next operation, into bodies"),
    Key(("S",), "reverse-step {n}", "into, back", "the operation before, in nested bodies too"),
    Key(("shift+f11", "f23"), "finish", "finish", "to the end of this loop", rare=True),
    Key(("right_square_bracket",), "iter +{n}", "iteration", "the same place in the next iteration"),
    Key(("left_square_bracket",), "iter -{n}", "iteration back", "the same place in the iteration before"),
    Key(("c", "f5"), "continue {n}", "continue", "to the next stop, or the end"),
    Key(("C",), "reverse-continue {n}", "last stop", "back to the stop before, or to the start"),
    Key(("escape", "ctrl+c"), "pause", "back", "stop a movement where it is; else close what is open"),
    # what holds at the cursor
    Key(("b", "f9"), "toggle-break", "break", "a breakpoint here, or none any more"),
    Key(("w",), "watch {value}", "watch", "watch the value"),
    Key(("asterisk",), "edit-value", "change", "type another value"),
    Key(("equals_sign",), "A next", "baseline", "the baseline: none, before, original, ..."),
    Key(("m",), "mark {letter}", "mark", "name this position; m A: the baseline"),
    Key(("apostrophe",), "goto '{letter}", "to mark", "go to a mark", rare=True),
    # one value
    *(
        Key(keys, f"element {way} {{n}}".rstrip(), word, help, TENSOR, rare=way in _FAR)
        for keys, way, word, help in (
            (("down", "j"), "down", "element", "the element below"),
            (("up", "k"), "up", "element", "the element above"),
            (("left", "h"), "left", "element", "the element to the left"),
            (("right", "l"), "right", "element", "the element to the right"),
            (("home",), "home", "row's first", "the first element of the row"),
            (("end",), "end", "row's last", "the last element of the row"),
            (("ctrl+home",), "first", "first", "the first element of the value"),
            (("ctrl+end",), "last", "last", "the last element of the value"),
            (("pagedown",), "page", "page", "a page further down"),
            (("pageup",), "-page", "page", "a page further up"),
        )
    ),
    Key(("at",), "prompt @", "go to", "go to an element: @ 0,3", TENSOR),
    Key(("x", "f8"), "non-finite next", "next NaN", "the next NaN or Inf", TENSOR),
    Key(("X",), "non-finite previous", "NaN before", "the NaN or Inf before", TENSOR),
    Key(("a",), "axis next", "axis", "pick the next axis", TENSOR),
    Key(("greater_than_sign",), "axis +{n}", "index", "the next index of the picked axis", TENSOR),
    Key(("less_than_sign",), "axis -{n}", "index", "the index of the picked axis before", TENSOR),
    Key(("r",), "axis rows", "axis down", "show the picked axis down the rows", TENSOR, rare=True),
    Key(("R",), "axis columns", "axis across", "show the picked axis across the columns", TENSOR, rare=True),
    Key(
        ("i",), "other-value next", "input", "another output of the operation, or one of its inputs", TENSOR, rare=True
    ),
    Key(("I",), "other-value previous", "input back", "the output or input before", TENSOR, rare=True),
    Key(("y",), "copy-element value", "copy", "copy the element with all its digits", TENSOR, rare=True),
    Key(("Y",), "copy-element address", "copy address", "copy the address of the element", TENSOR, rare=True),
    Key(("P",), "save-value", "save", "write the value into a .npy file", TENSOR, rare=True),
    Key(("v",), "look next", "view", "colours, numbers, differences", TENSOR),
    Key(
        ("V",), "look previous", "mean, max, rms", "which number of several elements stands for them", TENSOR, rare=True
    ),
    Key(("enter",), "back", "back", "close the value", TENSOR),
    # the graph
    Key(("down",), "wire down", "along wires", "the operation that reads this one", GRAPH),
    Key(("up",), "wire up", "along wires", "the operation that this one reads", GRAPH),
    Key(("left",), "wire left", "along wires", "the box to the left", GRAPH),
    Key(("right",), "wire right", "along wires", "the box to the right", GRAPH),
    *(
        Key(keys, f"pan {way} {{n}}", "scroll", f"see what is {where}, without moving", GRAPH, rare=True)
        for keys, way, where in (
            (("shift+down",), "down", "below"),
            (("shift+up",), "up", "above"),
            (("shift+left", "H"), "left", "to the left"),
            (("shift+right", "L"), "right", "to the right"),
        )
    ),
    Key(("v",), "look next", "only", "only what the selected reads, what reads it, its cycle; and back", GRAPH),
    Key(("space",), "fold", "open", "open a loop, an If or shape arithmetic in place; close it", GRAPH),
    Key(("plus",), "zoom in", "larger", "larger boxes", GRAPH),
    Key(("minus",), "zoom out", "smaller", "smaller boxes", GRAPH),
    Key(("slash",), "prompt search ", "search", "search an operation of any level by name or type", GRAPH),
    Key(("full_stop",), "search-next", "next found", "the next one found", GRAPH),
    Key(("comma",), "search-previous", "found before", "the one found before", GRAPH),
    Key(("enter",), "back", "to the sheet", "back to the sheet, at the operation", GRAPH),
    # inputs, answers, lists
    *(Key((way,), f"choose {way}", "input", "another input or dimension", CHOOSING) for way in ("down", "up")),
    *(Key((way,), f"choose {way}", "from", "another source for the value", ("inputs",)) for way in ("right", "left")),
    Key(("enter",), "edit-input", "type", "type a path, a literal, a seed, a size", CHOOSING),
    Key(("f5", "c"), "start", "run", "run the model on these inputs", CHOOSING),
    Key(("y",), "copy-inputs", "copy", "copy the choices as options of the command line", CHOOSING, rare=True),
    Key(("down",), "scroll {n}", "scroll", "scroll", ("card",)),
    Key(("up",), "scroll -{n}", "scroll", "scroll", ("card",)),
    Key(("home",), "scroll first", "top", "scroll to the beginning", ("card",)),
    Key(("end",), "scroll last", "bottom", "scroll to the end", ("card",)),
    Key(("pagedown",), "scroll page", "page", "scroll a page", ("card",)),
    Key(("pageup",), "scroll -page", "page", "scroll a page back", ("card",)),
    Key(("down", "j"), "row +{n}", "row", "the row below", PICKS),
    Key(("up", "k"), "row -{n}", "row back", "the row above", PICKS),
    Key(("enter",), "open-row", "this one", "take the chosen line", PICKS),
    Key(("escape",), "pause", "none", "close the list", PICKS),
    # the application
    Key(("tab",), "focus next", "pane", "the next pane"),
    Key(("shift+tab",), "focus previous", "pane back", "the pane before", rare=True),
    Key(("colon",), "prompt", "prompt", "type a command, Tab completes"),
    Key(("exclamation_mark",), "prompt ! ", "Python", "Python on the values: vals, it, np", rare=True),
    Key(("ctrl+s",), "save-session", "save", "save breakpoints, watches, this place", rare=True),
    Key(("ctrl+e",), "export", "export", "write the screen into a file", rare=True),
    Key(("ctrl+r",), "rerun", "rerun", "read model and inputs again", rare=True),
    Key(("ctrl+p",), "palette", "palette", "everything by name"),
    Key(("question_mark", "f1"), "help-keys", "help", "this page"),
    Key(("q",), "back", "back", "close what is open, or leave"),
    Key(("ctrl+q",), "quit", "quit", "leave", rare=True),
    Key(("ctrl+z",), "suspend", "shell", "to the shell; fg comes back", rare=True),
)

TYPING = {
    "prompt": (
        ("Enter", "run"), ("Tab", "complete"), ("→", "take the suggestion"), ("↑ ↓", "history"), ("Esc", "leave"),
    ),
    "completing": (("Enter", "run"), ("Tab", "the next"), ("↑ ↓", "choose"), ("Esc", "as it was")),
    "letter": (("a", "to z or 0 to 9: its name"), ("Esc", "none")),
    "line": (("Enter", "keep"), ("Tab", "complete"), ("Ctrl+U", "clear"), ("Esc", "as it was")),
}  # fmt: skip
"""Keys of the prompt, and of a line in a pane, while one types; they cannot be changed."""
FOOTERS = {
    "sheet": (
        "sheet-move right",
        "sheet-move down",
        "sheet-open",
        "pause",
        "sheet-why",
        "sheet-finding next",
        "edit-value",
        "A next",
        "rows",
        "view graph",
        "prompt search",
        "prompt",
        "help-keys",
    ),
    "graph": ("wire down", "zoom in", "fold", "look next", "prompt search", "back", "prompt", "help-keys"),
    "tensor": (
        "element down",
        "look next",
        "A next",
        "axis next",
        "axis +",
        "iter +",
        "prompt @",
        "non-finite next",
        "other-value next",
        "copy-element value",
        "save-value",
        "help-keys",
    ),
    "inputs": (
        "choose down",
        "choose right",
        "edit-input",
        "start",
        "focus next",
        "copy-inputs",
        "prompt",
        "help-keys",
    ),
    "dimensions": ("choose down", "edit-input", "focus next", "start", "prompt", "help-keys"),
    "card": ("scroll", "pause", "prompt", "help-keys"),
    "picks": ("open-row", "row +", "pause", "help-keys"),
    "": ("next", "iter +", "continue", "toggle-break", "prompt", "help-keys"),
}
"""By pane: which commands the last line names, by how they begin."""
RUNNING = ("pause", "help-keys")
"""The same for all panes while a movement is under way."""

STAYING = ("prompt", "back", "help-keys")
"""Commands that stay in sight at the end of the line, whatever its width."""

PAIRS = {
    "n": "N",
    "]": "[",
    "c": "C",
    "s": "S",
    "o": "O",
    "+": "-",
    "↓": "↑",
    "→": "←",
    ">": "<",
    "x": "X",
    "L": "H",
    "i": "I",
    "y": "Y",
    "r": "R",
    ".": ",",
    "PgDn": "PgUp",
    "Home": "End",
    "Ctrl+Home": "Ctrl+End",
    "Tab": "Shift+Tab",
    "Shift+↓": "Shift+↑",
    "Shift+→": "Shift+←",
}
"""Keys that are shown together with the way back."""
