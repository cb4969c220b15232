"""The keys as data: each is a named command, which the prompt, the palette, the footer and the help know as well.

A command is a line for the prompt with holes: {n} the count that was typed before the key (1 without), {op} the address
of the selected operation, {row} the chosen row of a list, {letter} the key that is typed next. The first word is a
debugger's command or one of actions/. A small letter goes forward in time, its capital the same way back.
"""

from __future__ import annotations

from typing import Final

from stepper.records import Record


class Key(Record):
    """One or several keys for a command. `word` is for the footer, `panes` where it holds (empty: everywhere)."""

    keys: tuple[str, ...]
    command: str
    word: str
    help: str
    panes: tuple[str, ...] = ()

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
        """The first key as it is written on a keyboard."""
        return shown(self.keys[0])


def shown(name: str) -> str:
    """Return a key, or several that are pressed one after another, as they are written on a keyboard."""
    return " ".join(_one_shown(part) for part in name.split(" "))


def _one_shown(name: str) -> str:
    if name in NAMES or "+" not in name:
        return NAMES.get(name, name)
    *held, last = name.split("+")
    last = NAMES.get(last, last)
    return "+".join((*(word.capitalize() for word in held), last.upper() if len(last) == 1 else last))


NAMES: Final = {
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

LISTS: Final = ("breakpoints", "watches", "events", "findings", "variables", "picks")
BREAKS: Final = ("breakpoints",)
IN_TIME: Final = ("operations", "timeline", "moments")
"""Panes in which the arrows move the moment itself."""

OVERVIEW: Final = ("overview",)
SHEET: Final = ("sheet",)

IN_ROWS: Final = ("edges", "scans")
"""Panes of values over the iterations."""
TENSOR: Final = ("tensor",)

SELECTING: Final = ("operations", "graph", "tensor", "moments")
LINKS: Final = ("frames", "loop", "edges", "scans", "stop", "end", "node")
"""Panes with links to choose from."""
CHOOSING: Final = ("inputs", "dimensions")
"""Panes of the inputs screen."""

KEYS: Final = (
    # forward and backward in time
    Key(("n", "f10"), "next {n}", "op", "next operation, a nested loop or branch as one"),
    Key(("N",), "reverse-next {n}", "op back", "the operation before"),
    Key(("down", "j"), "next {n}", "op", "next operation", ("operations", "moments")),
    Key(("up", "k"), "reverse-next {n}", "op back", "the operation before", ("operations", "moments")),
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
    Key(("t",), "run-to {op}", "run to", "on to the selected operation; of a loop into its first iteration"),
    Key(("T",), "back-to {op}", "back to", "back to where the selected operation ran last"),
    Key(("g", "home"), "edge first", "first", "the same place in the first iteration; outside of loops the start"),
    Key(("G", "end"), "edge last", "last", "the same place in the last iteration; outside of loops the end"),
    Key(("escape", "ctrl+c"), "pause", "pause", "stop a movement where it is; else close what is open"),
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
    *(
        Key(keys, f"pan {way} {{n}}", "scroll", f"see what is {where}, without moving", ("graph",))
        for keys, way, where in (
            (("shift+down",), "down", "below"),
            (("shift+up",), "up", "above"),
            (("shift+left", "H"), "left", "to the left"),
            (("shift+right", "L"), "right", "to the right"),
        )
    ),
    Key(("v",), "look next", "only", "only what the selected reads, what reads it, its cycle; and back", ("graph",)),
    Key(("space",), "fold", "open", "open a loop, an If or shape arithmetic in place; close it", ("graph",)),
    Key(("down",), "scroll {n}", "scroll", "scroll", ("value", "card")),
    Key(("up",), "scroll -{n}", "scroll", "scroll", ("value", "card")),
    Key(("home",), "scroll first", "top", "scroll to the beginning", ("card",)),
    Key(("end",), "scroll last", "bottom", "scroll to the end", ("card",)),
    *(Key((way,), f"choose {way}", "input", "another input or dimension", CHOOSING) for way in ("down", "up")),
    *(Key((way,), f"choose {way}", "from", "another source for the value", ("inputs",)) for way in ("right", "left")),
    Key(("enter",), "edit-input", "type", "type a path, a literal, a seed, a size", CHOOSING),
    Key(("f5", "c"), "start", "run", "run the model on these inputs", CHOOSING),
    Key(("y",), "copy-inputs", "copy", "copy the choices as options of the command line", CHOOSING),
    Key(("equals_sign",), "A next", "A", "A is: off, the iteration before, the original branch, the reference"),
    Key(("x", "f8"), "difference next", "difference", "the next operation that differs", ("differences", "moments")),
    Key(("X",), "difference previous", "difference back", "the one before", ("differences", "moments")),
    Key(("down",), "select +{n}", "op", "the operation below", ("differences",)),
    Key(("up",), "select -{n}", "op", "the operation above", ("differences",)),
    Key(
        ("enter",),
        "beside-reference",
        "two moments",
        "the operation beside the reference, which A is",
        ("differences",),
    ),
    Key(("D",), "compare", "compare view", "the run beside a reference, op by op"),
    Key(("i",), "rows carried", "ports", "what goes into the loop, what it carries, what comes out, by iterations"),
    Key(("escape",), "pause", "close", "close the answer, or the help", ("card",)),
    Key(("pagedown",), "scroll page", "scroll", "scroll a page"),
    Key(("pageup",), "scroll -page", "scroll", "scroll a page back"),
    Key(("enter",), "open", "value", "open what is selected full screen; step into a loop"),
    Key(("space",), "fold", "fold", "fold, unfold"),
    Key(("v",), "look next", "view", "the next view of this pane, such as another statistic"),
    Key(("V",), "look previous", "view back", "the view before"),
    Key(("v",), "centre", "graph", "the graph in place of the two moments; V there shows these again", ("moments",)),
    Key(
        ("V",),
        "centre",
        "two moments",
        "while A is held against now, the two moments in place of the graph",
        ("graph",),
    ),
    Key(("V",), "look next", "differing", "those alone that differ, or all", ("moments",)),
    Key(("v",), "rows all", "sheet", "all iterations of the operations", ("operations", "timeline")),
    Key(("V",), "look next", "statistic", "the next statistic", ("operations",)),
    Key(("V",), "look previous", "mean, max, rms", "which number of several elements stands for them", TENSOR),
    Key(("v",), "look next", "mean, max, rms", "which number of several elements stands for them", IN_ROWS),
    Key(
        ("V",), "look previous", "scale", "the scale of the chosen row: by itself, linear, logarithmic, robust", IN_ROWS
    ),
    Key(("e",), "explain", "explain", "all that there is to say about this stop, with the rules"),
    Key(("O",), "uses {op}", "where to", "where the selected value goes: who reads it, which back edge carries it on"),
    Key(("x", "f8"), "to-anomaly", "anomaly", "on to where NaN or Inf is made, or a carried shape changes"),
    Key(("X", "shift+f8", "f20"), "reverse-to-anomaly", "anomaly back", "back to the one before"),
    Key(("o",), "why {op}", "origin", "where the selected value comes from or goes to"),
    Key(("p",), "prompt print ", "print", "print a value, with slices"),
    Key(("at",), "prompt goto ", "go to", "go to an operation, an iteration, a mark"),
    Key(("slash",), "prompt search ", "search", "search an operation of any level by name or type"),
    Key(("full_stop",), "search-next", "next found", "the next one found"),
    Key(("comma",), "search-previous", "previous found", "the one found before"),
    Key(("plus",), "zoom in", "larger", "larger boxes, more digits"),
    Key(("minus",), "zoom out", "smaller", "smaller boxes, fewer digits"),
    Key(("z",), "zoom-pane", "zoom pane", "this pane alone, and back"),
    # the overview
    Key(("0",), "view overview", "overview", "the whole run: each loop a card, iterations from left to right"),
    *(
        Key(keys, f"overview {way} {{n}}", word, help, OVERVIEW)
        for keys, way, word, help in (
            (("right", "l"), "right", "iteration", "the next column"),
            (("left", "h"), "left", "iteration back", "the column before"),
            (("right_square_bracket",), "on", "iteration", "the next iteration"),
            (("left_square_bracket",), "back", "iteration back", "the iteration before"),
            (("down", "j"), "down", "row", "the row below"),
            (("up", "k"), "up", "row back", "the row above"),
            (("home",), "home", "first", "the first iteration"),
            (("end",), "end", "last", "the last iteration; of a run under way the newest, always"),
            (("x", "f8"), "finding", "found", "the next that was found: a NaN or Inf, another shape, the last change"),
            (("X",), "finding-back", "found before", "the one before"),
        )
    ),
    Key(("0",), "view main", "moment", "the moment at which the run stands; 0 there leads back", OVERVIEW),
    Key(("enter",), "overview open", "goes there", "go to the moment of the cursor, after the operation", OVERVIEW),
    Key(("t",), "overview into", "first iteration", "into the first iteration of the loop of the cursor", OVERVIEW),
    Key(("e",), "overview ending", "why it ended", "why the loop of the cursor ended, step by step", OVERVIEW),
    Key(("o",), "overview why", "causes", "where the value of the cursor comes from", OVERVIEW),
    Key(("c", "f5"), "overview run", "go on", "go on with a run of the overview that was paused", OVERVIEW),
    Key(("m",), "overview mark {letter}", "mark", "m A: the iteration of the cursor is A, held against now", OVERVIEW),
    Key(("tab",), "focus next", "card", "the next card", OVERVIEW),
    Key(("shift+tab",), "focus previous", "card back", "the card before", OVERVIEW),
    Key(("plus",), "zoom in", "taller", "more lines for the selected row", OVERVIEW),
    Key(("minus",), "zoom out", "less tall", "fewer lines for the selected row", OVERVIEW),
    Key(("v",), "look next", "mean, max, rms", "which number of several stands for them", OVERVIEW),
    Key(("V",), "look previous", "scale", "the scale of the selected row: by itself, linear, log, robust", OVERVIEW),
    Key(
        ("space",), "fold", "open", "show the rows that are only counted; open sequences as loops; close them", OVERVIEW
    ),
    # links
    Key(("down", "j"), "row +{n}", "choose", "the next link", LINKS),
    Key(("up", "k"), "row -{n}", "choose back", "the link before", LINKS),
    Key(("enter",), "open-row", "look at", "look at the chosen frame", ("frames",)),
    Key(("enter",), "open-row", "value", "open the chosen value full screen; go to the chosen column", IN_ROWS),
    Key(("right",), "column right {n}", "column", "the next iteration of the picture", IN_ROWS),
    Key(("left",), "column left {n}", "column back", "the iteration before, of the picture", IN_ROWS),
    Key(("enter",), "open-row", "select", "select the chosen operation; open a value that none computes", ("node",)),
    Key(("enter",), "open-row", "go there", "go where the chosen link leads", ("loop", "stop", "end")),
    # the sheet
    Key(("number_sign",), "sheet {op}", "sheet", "the selected value over the iterations, an element a row"),
    Key(("v",), "sheet {op}", "sheet", "the value over the iterations, an element a row", ("watches",)),
    *(
        Key(keys, f"sheet-move {way} {{n}}".rstrip(), word, help, SHEET)
        for keys, way, word, help in (
            (("right", "l"), "right", "iteration", "the next iteration"),
            (("left", "h"), "left", "iteration back", "the iteration before"),
            (("down", "j"), "down", "row", "the row below"),
            (("up", "k"), "up", "row back", "the row above"),
            (("pagedown",), "page", "page", "a page further down"),
            (("pageup",), "-page", "page back", "a page further up"),
            (("home",), "home", "first", "the first iteration"),
            (("end",), "end", "last", "the last iteration"),
            (("ctrl+home",), "first", "first row", "the first row"),
            (("ctrl+end",), "last", "last row", "the last row"),
        )
    ),
    Key(
        ("enter",),
        "sheet-open",
        "in",
        "go into the loop, the If or the tensor; to the moment of a single number",
        SHEET,
    ),
    Key(("escape",), "pause", "out", "stop a movement; else come out of the loop, the If or the tensor", SHEET),
    Key(("space",), "sheet-go", "go there", "go to the moment of the cell", SHEET),
    Key(("f", "tab"), "rows", "rows", "other rows: carried, all, why, changed, watched, elements", SHEET),
    Key(("o",), "sheet-why", "cause", "the path that made the value of the cell", SHEET),
    Key(("plus",), "sheet-wider 1", "operands", "follow one more operand of the value on its path", SHEET),
    Key(("minus",), "sheet-wider -1", "fewer", "follow one operand less", SHEET),
    Key(("greater_than_sign",), "sheet-sort down", "order", "order by the row, the largest first; again: not", SHEET),
    Key(("less_than_sign",), "sheet-sort up", "order up", "order by the row, the least first; again: not", SHEET),
    Key(("vertical_line",), "filter-prompt", "filter", "show only the iterations where a condition holds", SHEET),
    Key(("slash",), "prompt sheet-search ", "search", "go to a row, or to the next iteration of a condition", SHEET),
    Key(("full_stop",), "sheet-found next", "next found", "the next iteration found", SHEET),
    Key(("comma",), "sheet-found previous", "previous found", "the iteration found before", SHEET),
    Key(("x", "f8"), "sheet-anomaly next", "NaN, Inf", "the next iteration with NaN or Inf", SHEET),
    Key(("X",), "sheet-anomaly previous", "NaN, Inf back", "the iteration with NaN or Inf before", SHEET),
    Key(("m",), "sheet-mark {letter}", "mark", "m A: the iteration of the cursor is A, held against now", SHEET),
    Key(("y",), "sheet-copy", "copy CSV", "copy the rows as CSV", SHEET),
    Key(("Y",), "sheet-copy address", "copy address", "copy the address of the cell", SHEET),
    Key(("P",), "prompt save ", "save", "write the rows into a .npy or .csv file", SHEET),
    # lists
    Key(("down", "j"), "row +{n}", "row", "the row below", LISTS),
    Key(("up", "k"), "row -{n}", "row back", "the row above", LISTS),
    Key(("pagedown",), "row page", "page", "a page further down", LISTS),
    Key(("pageup",), "row -page", "page", "a page further up", LISTS),
    Key(("home",), "row first", "first row", "the first row", LISTS),
    Key(("end",), "row last", "last row", "the last row", LISTS),
    Key(("enter",), "open-row", "this one", "take the chosen line", ("picks",)),
    Key(("escape",), "pause", "none", "close the list", ("picks",)),
    Key(("enter",), "open-row", "change", "change what the chosen breakpoint waits for", ("breakpoints",)),
    Key(("enter",), "open-row", "value", "the chosen value in full", ("watches", "variables")),
    Key(("enter",), "open-row", "go there", "go to the moment of the chosen event", ("events",)),
    Key(("enter",), "open-row", "go there", "go to the moment at which the chosen finding shows", ("findings",)),
    Key(("space",), "toggle-enabled {row}", "on, off", "switch the chosen breakpoint off, or on again", BREAKS),
    Key(("delete", "backspace"), "delete {row}", "delete", "take the chosen breakpoint away", BREAKS),
    Key(("i",), "prompt ignore {row} ", "ignore", "pass the chosen breakpoint by for the next K times", BREAKS),
    Key(("a",), "prompt break ", "add", "set a breakpoint", BREAKS),
    Key(("delete", "backspace"), "unwatch {row}", "delete", "watch it no longer", ("watches",)),
    Key(("a",), "prompt watch ", "add", "watch an expression", ("watches",)),
    # stopping
    Key(("b", "f9"), "toggle-break", "break", "set a breakpoint on the selected operation, or take it away"),
    Key(("B",), "view breakpoints", "breaks", "the list of breakpoints"),
    Key(("w",), "watch {value}", "watch", "watch the selected value at every stop"),
    Key(("W",), "view watches", "watches", "the list of watches"),
    Key(("M",), "view findings", "findings", "what is wrong with the file and the run: the list of findings"),
    Key(("E",), "view events", "events", "the log: what was done, what stopped the run, what failed"),
    Key(("dollar_sign",), "view variables", "variables", "variables of the model, values of the frame"),
    Key(("asterisk",), "edit-value", "change", "type another value for the element that stands out, or the cursor's"),
    Key(("m",), "mark {letter}", "mark", "give this moment a letter; m A makes it A, which is held against now"),
    Key(("apostrophe",), "goto '{letter}", "to mark", "go to a mark; ' A goes to A, and A becomes where one was"),
    # the screen
    Key(("y",), "copy value", "copy", "copy the selected value"),
    Key(("Y",), "copy address", "copy name", "copy the address of the selected value"),
    Key(("colon",), "prompt", "prompt", "type a command; Tab completes"),
    Key(("exclamation_mark",), "prompt ! ", "Python", "Python on the values here: vals, it, np"),
    Key(("ctrl+s",), "save-session", "save", "keep breakpoints, watches, marks, layout and this place"),
    Key(("ctrl+e",), "export", "export", "write what is on the screen into a file"),
    Key(("ctrl+r",), "rerun", "rerun", "read model and inputs anew; place, breakpoints and watches stay"),
    Key(("tab",), "focus next", "pane", "the next pane"),
    Key(("shift+tab",), "focus previous", "pane back", "the pane before"),
    Key(("ctrl+p",), "palette", "palette", "every action by name"),
    Key(("question_mark", "f1"), "help-keys", "help", "the keys of this pane, then all"),
    Key(("q",), "back", "back", "close what is open; on the main screen, leave"),
    Key(("ctrl+q",), "quit", "quit", "leave"),
    Key(("ctrl+z",), "suspend", "shell", "back to the shell for a while; fg there comes back"),
)

TYPING: Final = {
    "prompt": (
        ("Enter", "run"), ("Tab", "complete"), ("→", "take the suggestion"), ("↑ ↓", "history"), ("Esc", "leave"),
    ),
    "completing": (("Enter", "run"), ("Tab", "the next"), ("↑ ↓", "choose"), ("Esc", "as it was")),
    "letter": (("a", "to z or 0 to 9: its name"), ("Esc", "none")),
    "line": (("Enter", "keep"), ("Tab", "complete"), ("Ctrl+U", "clear"), ("Esc", "as it was")),
}  # fmt: skip
"""Keys of the prompt, and of a line in a pane, while one types; they cannot be changed."""
FOOTERS: Final = {
    "overview": (
        "overview right",
        "overview down",
        "overview open",
        "overview ending",
        "focus next",
        "zoom in",
        "look next",
        "overview finding",
        "fold",
        "view main",
        "prompt",
        "help-keys",
    ),
    "moments": ("difference next", "A next", "goto '{letter}", "centre", "look next", "iter +", "open", "help-keys"),
    "differences": ("difference next", "select +", "iter +", "open", "look next", "A next", "back", "help-keys"),
    "operations": (
        "next",
        "iter +",
        "continue",
        "toggle-break",
        "open",
        "rows all",
        "prompt",
        "help-keys",
    ),
    "graph": (
        "wire down",
        "zoom in",
        "fold",
        "zoom-pane",
        "look next",
        "next",
        "iter +",
        "continue",
        "prompt",
        "help-keys",
    ),
    "timeline": ("iter +", "edge first", "continue", "watch {value}", "prompt", "help-keys"),
    "end": (
        "open-row",
        "row +",
        "reverse-step",
        "edge first",
        "view overview",
        "rerun",
        "prompt",
        "help-keys",
    ),
    "frames": ("open-row", "row +", "next", "iter +", "prompt", "help-keys"),
    "loop": ("open-row", "row +", "next", "iter +", "prompt", "help-keys"),
    "node": ("open-row", "row +", "next", "iter +", "prompt", "help-keys"),
    "edges": ("open-row", "row +", "iter +", "why {op}", "watch {value}", "toggle-break", "help-keys"),
    "scans": ("open-row", "row +", "iter +", "why {op}", "watch {value}", "prompt", "help-keys"),
    "stop": (
        "open-row",
        "why {op}",
        "reverse-next",
        "explain",
        "reverse-continue",
        "continue",
        "prompt",
        "help-keys",
    ),
    "value": ("open", "scroll", "next", "iter +", "continue", "toggle-break", "prompt", "help-keys"),
    "sheet": (
        "sheet-move right",
        "sheet-move down",
        "sheet-open",
        "pause",
        "rows",
        "sheet-why",
        "sheet-anomaly next",
        "sheet-go",
        "prompt sheet-search",
        "filter-prompt",
        "back",
        "help-keys",
    ),
    "tensor": (
        "element down",
        "look next",
        "A next",
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
    "breakpoints": (
        "toggle-enabled {row}",
        "open-row",
        "prompt break",
        "prompt ignore {row}",
        "delete {row}",
        "continue",
        "back",
        "help-keys",
    ),
    "watches": ("open-row", "prompt watch", "unwatch {row}", "iter +", "continue", "back", "help-keys"),
    "events": ("open-row", "row +", "continue", "back", "help-keys"),
    "findings": ("open-row", "row +", "view overview", "back", "help-keys"),
    "variables": ("open-row", "fold", "next", "iter +", "back", "help-keys"),
    "card": ("scroll", "pause", "prompt", "help-keys"),
    "picks": ("open-row", "row +", "pause", "help-keys"),
    "": ("next", "iter +", "continue", "toggle-break", "prompt", "help-keys"),
}
"""By pane: which commands the last line names, by how they begin."""

FOLLOWING: Final = ("operations", "graph", "timeline", "value", "")
"""Panes of the main screen whose footer follows the run."""
SITUATIONS: Final = {
    "start": ("step", "iter +", "continue", "to-anomaly", "toggle-break", "open", "prompt", "help-keys"),
    "stop": (
        "why {op}",
        "explain",
        "reverse-next",
        "to-anomaly",
        "continue",
        "open",
        "prompt",
        "help-keys",
    ),
    "ended": (
        "iter -",
        "reverse-step",
        "reverse-to-anomaly",
        "edge first",
        "view overview",
        "rerun",
        "export",
        "prompt",
        "help-keys",
    ),
}
"""By situation of the run: the same for the panes of FOLLOWING, in place of their own."""
OVERVIEW_SITUATIONS: Final = {
    "making": (
        "pause",
        "overview right",
        "overview down",
        "overview end",
        "overview open",
        "view main",
        "prompt",
        "help-keys",
    ),
    "paused": (
        "overview run",
        "overview right",
        "overview down",
        "overview open",
        "focus next",
        "look next",
        "overview finding",
        "prompt",
        "help-keys",
    ),
    "without loops": ("view main", "overview run", "prompt", "help-keys"),
    "found": ("overview open", "overview why", "view main", "overview run", "prompt", "help-keys"),
    "branches": ("overview down", "overview open", "overview why", "view main", "overview run", "prompt", "help-keys"),
    "sequences": ("fold", "view main", "overview run", "prompt", "help-keys"),
    "without inputs": ("overview down", "focus next", "prompt", "back", "help-keys"),
}
"""By situation of the run that the overview shows: the same for it."""
LOOKS: Final = (*OVERVIEW, *IN_ROWS)
"""Panes in which v chooses which number stands for several, and V the scale."""
RUNNING: Final = ("pause", "view overview", "view events", "help-keys")
"""The same for all panes while a movement is under way."""

STAYING: Final = ("prompt", "back", "help-keys")
"""Those that stay in sight at the end of the line, whatever its width."""

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
