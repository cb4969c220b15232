"""Tables of parameters: one test that walks through all rows, and rows that only `pytest -m slow` takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

Test = Callable[..., None]


def each_row(
    names: str | Sequence[str], table: Iterable[Any], ids: Any = None, quick: int | None = None
) -> Callable[[Test], Test]:
    """Run a test once per row, as one test; a failure names the row. Rows beyond `quick` are a slow test of their own.

    `names`, `table` and `ids` are those of `pytest.mark.parametrize`. Each row has a `tmp_path` and a `monkeypatch` of
    its own and shares the other fixtures. Use parametrize if rows change those, are skipped, or take seconds.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = [_cells(row, len(columns)) for row in table]
    titles = [""] * len(listed) if ids is None or callable(ids) else [str(title) for title in ids]
    assert len(listed) > (quick or 0), f"{len(listed)} rows of {names}"
    part = f"rows_of_{columns[0]}"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def each(**given: Any) -> None:
            numbers = given.pop(part, range(len(listed)))
            for number in numbers:
                row = dict(zip(columns, listed[number], strict=True))
                try:
                    with ExitStack() as stack:
                        test(**(given | _of_the_row(given, number, stack) | row))
                except BaseException as error:
                    cells = titles[number] or ", ".join(f"{name}={value!r:.300}" for name, value in row.items())
                    error.add_note(f"in row {number}: {cells}")
                    raise

        signature = inspect.signature(test)
        fixtures = [one for name, one in signature.parameters.items() if name not in columns]
        if quick is not None:
            fixtures.append(inspect.Parameter(part, inspect.Parameter.KEYWORD_ONLY))
        each.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        if quick is None:
            return each
        parts = [range(quick), pytest.param(range(quick, len(listed)), marks=pytest.mark.slow)]
        marked: Test = pytest.mark.parametrize(part, parts, ids=["first", "more"])(each)
        return marked

    return decorate


def few(count: int, table: Iterable[Any], columns: int = 1) -> list[Any]:
    """Return rows for `pytest.mark.parametrize`, those beyond the first `count` marked slow."""
    listed = [_cells(row, columns) for row in table]
    return [pytest.param(*cells, marks=[pytest.mark.slow] if at >= count else []) for at, cells in enumerate(listed)]


def _cells(row: Any, count: int) -> Sequence[Any]:
    assert not getattr(row, "marks", ()), "a row has no marks"
    if isinstance(row, tuple) and hasattr(row, "marks"):  # pytest.param
        return row.values
    return row if count > 1 else (row,)


def _of_the_row(given: dict[str, Any], number: int, stack: ExitStack) -> dict[str, Any]:
    """Return a folder and patches for one row, if the test asks for them."""
    own: dict[str, Any] = {}
    if "tmp_path" in given:
        own["tmp_path"] = given["tmp_path"] / str(number)
        own["tmp_path"].mkdir()
    if "monkeypatch" in given:
        own["monkeypatch"] = stack.enter_context(given["monkeypatch"].context())
    return own
