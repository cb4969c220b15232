"""Actions of the sheet: opening it, its rows and cursor, order, filter, search, what is copied and written."""

from __future__ import annotations

from typing import Final

from stepper.debug.table.conditions import about_column
from stepper.debug.table.row_sets import RowSet
from stepper.errors import UsageError
from stepper.query.address_syntax import without_element
from stepper.wording import counted
from tui.actions.registry import action
from tui.application import Application
from tui.screens.sheet.model import SheetModel
from tui.screens.sheet.screen import SheetScreen

_WAYS: Final = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
_FAR: Final = 2**40
_MOST_COPIED: Final = 2**21
"""Letters of rows that are copied."""


def _model(app: Application) -> SheetModel:
    front = app.front
    if not isinstance(front, SheetScreen):
        raise UsageError("no sheet is open (# opens it)")
    return front.model


@action(
    "sheet",
    syntax="[ADDR, ...]",
    help="values over the iterations: x, P, h[0,:8]@10:20, rms(*); else what the loop carries",
)
def _sheet(app: Application, text: str) -> None:
    app.open_sheet(text)


@action("rows", syntax=f"[{'|'.join(RowSet)}]", help="which rows the sheet has; without a word the next set")
def _rows(app: Application, text: str) -> None:
    sets = list(RowSet)
    if text and text not in sets:
        raise UsageError(f"'{text}' is no set of rows; there are {', '.join(sets)}")
    if not isinstance(app.front, SheetScreen):
        app.open_sheet("", text or RowSet.CARRIED)
        return
    if text:
        _model(app).show_rows(RowSet(text))
    else:
        _model(app).show_next_rows()


@action("sheet-move", syntax="WAY [N]", help="another cell of the sheet: up, down, left, right, page, first, last, ...")
def _move(app: Application, text: str) -> None:
    model = _model(app)
    word, _, count = text.partition(" ")
    times = _integer(count) if count else 1
    page = max(model.room - 1, 1)
    ends = {"home": (0, -_FAR), "end": (0, _FAR), "first": (-_FAR, 0), "last": (_FAR, 0)}
    if word in _WAYS:
        model.move(_WAYS[word][0] * times, _WAYS[word][1] * times)
    elif word in ("page", "-page"):
        model.move((page if word == "page" else -page) * times, 0)
    elif word in ends:
        model.move(*ends[word])
    else:
        raise UsageError(f"'{word}' is not a direction; there are {', '.join((*_WAYS, 'page', '-page', *ends))}")


@action("sheet-sort", syntax="down|up [ROW]", help="order the iterations by a row; once more: as they ran")
def _sort(app: Application, text: str) -> None:
    word, _, name = text.partition(" ")
    if word not in ("down", "up"):
        raise UsageError("sort down or up")
    model, row = _model(app), None
    if name.strip():
        view = model.view
        names = [] if view is None else [one.name for one in view.columns]
        if name.strip() not in names:
            raise UsageError(f"there is no row '{name.strip()}'")
        row = names.index(name.strip())
    model.sort(descending=word == "down", row=row)


@action(
    "filter",
    syntax="[CONDITION|off]",
    help="only the iterations where it holds: > 5, abs > 10, x[0] < 2, nan; off: all of them",
)
def _filter(app: Application, text: str) -> None:
    model = _model(app)
    column = model.at
    model.filter(text if column is None else about_column(text, column.name))


@action("filter-prompt", help="type the filter of the sheet")
def _filter_prompt(app: Application, _text: str) -> None:
    app.open_prompt(f"filter {_model(app).level.filter}")


@action(
    "sheet-search",
    syntax="ROW|CONDITION",
    help="the row of a name, or the next iteration with > 5, x[0] < 2, nan",
)
def _search(app: Application, text: str) -> None:
    _model(app).search(text)


@action("sheet-found", syntax="next|previous", help="the next iteration that was sought, or the one before")
def _found(app: Application, text: str) -> None:
    _model(app).search("", backward=text == "previous")


@action(
    "sheet-anomaly",
    syntax="next|previous",
    help="the next cell of the sheet where NaN or Inf begins, or the one before",
)
def _anomaly(app: Application, text: str) -> None:
    _model(app).seek_bad(backward=text == "previous")


@action("sheet-open", help="go into the loop, the If or the tensor of the row; of a single number to its moment")
def _open(app: Application, _text: str) -> None:
    if not _model(app).go_into():
        _go(app, "")


@action("sheet-go", help="go to the moment of the cell")
def _go(app: Application, _text: str) -> None:
    def go(address: str) -> None:
        app.perform(f"goto {without_element(address)}")
        app.open_view("main")

    _model(app).address(go)


@action("sheet-why", help="the path of the cell in the rows")
def _why(app: Application, _text: str) -> None:
    _model(app).show_rows(RowSet.WHY)


@action("sheet-wider", syntax="N|-N", help="follow so many operands more of the value of the cursor on its path")
def _wider(app: Application, text: str) -> None:
    _model(app).widen(_integer(text or "1"))


@action("sheet-mark", syntax="LETTER", help="A is the iteration of the cursor; other letters mark the moment")
def _mark(app: Application, text: str) -> None:
    if text != "A":
        app.perform(f"mark {text}")
        return
    _model(app).address(lambda address: app.perform(f"A {without_element(address)}"))


@action("sheet-copy", syntax="[address]", help="copy the rows as CSV, an iteration a line; or the address of the cell")
def _copy(app: Application, text: str) -> None:
    model = _model(app)

    def copy_address(address: str) -> None:
        app.copy_to_clipboard(address)
        app.say(f"copied {address}")

    def copy_lines(lines: str) -> None:
        if len(lines) > _MOST_COPIED:
            app.say("the sheet is too large to be copied; save FILE.csv writes it", "bad")
            return
        app.copy_to_clipboard(lines)
        app.say(f"copied {counted(lines.count(chr(10)) - 1, 'iteration')} as CSV")

    if text == "address":
        model.address(copy_address)
    elif model.story is not None:
        app.perform("story-copy")
    else:
        model.copy(copy_lines)


@action("sheet-save", syntax="FILE.npy|FILE.csv", help="write the rows; on the sheet `save FILE` is enough")
def _save(app: Application, text: str) -> None:
    _model(app).save(text, lambda rows: app.say(f"{counted(rows, 'iteration')} written into {text}"))


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"a number is expected, not '{text}'") from None
