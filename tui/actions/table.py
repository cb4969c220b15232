"""Actions of the table: opening it, its cursor, sorting, filtering, searching, what is copied and written."""

from __future__ import annotations

from typing import Final

from stepper.debug.table.conditions import about_column
from stepper.debug.table.sheets import NON_FINITE
from stepper.errors import UsageError
from stepper.query.address_syntax import without_element
from stepper.wording import counted
from tui.actions.registry import action
from tui.application import Application
from tui.screens.table.screen import TableScreen
from tui.screens.table.topic import TableTopic

_WAYS: Final = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
_FAR: Final = 2**40
_MOST_COPIED: Final = 2**21
"""Letters of a table that are copied."""


def _topic(app: Application) -> TableTopic:
    front = app.front
    if not isinstance(front, TableScreen):
        raise UsageError("no table is open (table x, P opens one)")
    return front.topic


@action("table", syntax="[ADDR, ...]", help="values over the iterations as a table: x, P, h[0,:8]@10:20, rms(*)")
def _table(app: Application, text: str) -> None:
    app.open_table(text)


@action("table-move", syntax="WAY [N]", help="another cell of the table: up, down, left, right, page, first, last, ...")
def _move(app: Application, text: str) -> None:
    topic = _topic(app)
    word, _, count = text.partition(" ")
    times = _integer(count) if count else 1
    page = max(topic.room - 1, 1)
    ends = {"home": (0, -_FAR), "end": (0, _FAR), "first": (-_FAR, 0), "last": (_FAR, 0)}
    if word in _WAYS:
        topic.move(_WAYS[word][0] * times, _WAYS[word][1] * times)
    elif word in ("page", "-page"):
        topic.move((page if word == "page" else -page) * times, 0)
    elif word in ends:
        topic.move(*ends[word])
    else:
        raise UsageError(f"'{word}' is not a direction; there are {', '.join((*_WAYS, 'page', '-page', *ends))}")


@action("table-sort", syntax="down|up [COLUMN]", help="sort the rows of the table by a column; once more: as they ran")
def _sort(app: Application, text: str) -> None:
    word, _, name = text.partition(" ")
    if word not in ("down", "up"):
        raise UsageError("sort down or up")
    topic, column = _topic(app), None
    if name.strip():
        view = topic.view
        names = [] if view is None else [one.name for one in view.columns]
        if name.strip() not in names:
            raise UsageError(f"there is no column '{name.strip()}'")
        column = names.index(name.strip())
    topic.sort(descending=word == "down", column=column)


@action(
    "filter",
    syntax="[CONDITION|off]",
    help="only the rows of the table where it holds: > 5, abs > 10, x[0] < 2, nan; off: all rows",
)
def _filter(app: Application, text: str) -> None:
    topic = _topic(app)
    column = topic.at
    if column is None and text.startswith(("<", ">", "=", "!", "abs ")):
        raise UsageError("choose the column that is meant, or write it: x[0] > 5")
    topic.filter(text if column is None else about_column(text, column.name))


@action("filter-prompt", help="type the filter of the table")
def _filter_prompt(app: Application, _text: str) -> None:
    app.open_prompt(f"filter {_topic(app).level.filter}")


@action(
    "table-search",
    syntax="COLUMN|CONDITION",
    help="the column of a name, or the next row of the table with > 5, x[0] < 2, nan",
)
def _search(app: Application, text: str) -> None:
    _topic(app).search(text)


@action("table-found", syntax="next|previous", help="the next row of the table that was sought, or the one before")
def _found(app: Application, text: str) -> None:
    _topic(app).search("", backward=text == "previous")


@action("table-anomaly", syntax="next|previous", help="the next row of the table with NaN or Inf, or the one before")
def _anomaly(app: Application, text: str) -> None:
    _topic(app).search(NON_FINITE, backward=text == "previous")


@action("table-hide", help="hide the column of the cursor; Space shows what is hidden")
def _hide(app: Application, _text: str) -> None:
    _topic(app).hide()


@action("table-open", help="open the bucket of the cursor; else go to the moment of the cell")
def _open(app: Application, _text: str) -> None:
    topic = _topic(app)
    if not topic.open_bucket():
        topic.address(lambda address: app.perform(f"goto {without_element(address)}"))


@action("table-why", help="where the value of the cell comes from")
def _why(app: Application, _text: str) -> None:
    def go_and_ask(address: str) -> None:
        app.perform(f"goto {without_element(address)}")
        app.perform(f"why {address}")

    _topic(app).address(go_and_ask)


@action("table-mark", syntax="LETTER", help="A is the iteration of the cursor; other letters mark the moment")
def _mark(app: Application, text: str) -> None:
    if text != "A":
        app.perform(f"mark {text}")
        return
    _topic(app).address(lambda address: app.perform(f"A {without_element(address)}"))


@action(
    "table-copy", syntax="[address]", help="copy the table as CSV, without what is hidden; or the address of the cell"
)
def _copy(app: Application, text: str) -> None:
    topic = _topic(app)

    def copy_address(address: str) -> None:
        app.copy_to_clipboard(address)
        app.say(f"copied {address}")

    def copy_lines(lines: str) -> None:
        if len(lines) > _MOST_COPIED:
            app.say("the table is too large to be copied; save FILE.csv writes it", "bad")
            return
        app.copy_to_clipboard(lines)
        app.say(f"copied {counted(lines.count(chr(10)) - 1, 'row')} as CSV")

    if text == "address":
        topic.address(copy_address)
    else:
        topic.copy(copy_lines)


@action("table-save", syntax="FILE.npy|FILE.csv", help="write the table; on its screen `save FILE` is enough")
def _save(app: Application, text: str) -> None:
    _topic(app).save(text, lambda rows: app.say(f"{counted(rows, 'row')} written into {text}"))


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"a number is expected, not '{text}'") from None
