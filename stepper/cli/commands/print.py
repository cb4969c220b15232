"""`stepper print TRACE ADDR...`: recorded values, as text, JSON, CSV, or one array in an .npy."""

from __future__ import annotations

import csv
import itertools
import sys
from argparse import Namespace
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stepper import element_types
from stepper.cli.printing import output_width, print_json
from stepper.cli.specs import protected_files
from stepper.debug.inspection.text import by_text, titled_lines, value_lines
from stepper.errors import UsageError
from stepper.files.file_kinds import ARRAY
from stepper.files.output import OutputFile
from stepper.ops.operands import form_text, shape_text
from stepper.plain_values import cell, json_number, storable, tensor_json
from stepper.recording import open_recording
from stepper.recording.queries import RecordedValue, ValueSelection, nothing_there, select
from stepper.recording.reading import Recording
from stepper.tensors.number_text import in_columns, number_text
from stepper.tensors.statistics import RECORDED
from stepper.tensors.summaries import Summary
from stepper.terminal import say
from stepper.wording import printable

_MOST_SHOWN = 100
_MOST_IN_REPORT = 10_000
_DIGITS = 8


def execute(options: Namespace) -> int:
    """Show what the addresses mean in the recording; 0."""
    chosen = [name for name in ("csv", "json", "npy") if getattr(options, name)]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} are two forms of the same; choose one")
    target = OutputFile(Path(options.npy), ARRAY, protected_files(options), "--npy") if options.npy else None
    if target is not None:
        target.check()
    with open_recording(options.trace) as recording:
        selections = select(recording, options.addresses)
        _ensure_there(recording, selections, options.addresses)
        if target is not None:
            _write_array(selections, options, target)
        elif options.csv:
            _write_rows(selections, options)
        elif options.json:
            print_json({"trace": options.trace, "values": [_report(one, options) for one in selections]})
        else:
            _print(selections, options)
    return 0


def _ensure_there(recording: Recording, selections: list[ValueSelection], addresses: list[str]) -> None:
    if not any(selection.count() for selection in selections):
        raise UsageError(nothing_there(recording, selections[0], " ".join(addresses)))
    if all(next(iter(selection.walk(statistics=True)), None) is None for selection in selections):
        raise UsageError(f"{' '.join(addresses)}: no value is recorded there: the recording ends before it is computed")


# --- text -----------------------------------------------------------------------------------------------------------


def _print(selections: list[ValueSelection], options: Namespace) -> None:
    titled = len(selections) > 1 or not selections[0].is_single or bool(selections[0].computed_by)
    unrecorded: list[str] = []
    for selection in selections:
        shown, left_out, is_whole = _ends(selection, statistics=options.stats)
        if titled:
            say(f"{selection.name}{_loops_text(selection)}{by_text(selection.computed_by)}")
        lines = _table(shown, options) if options.stats else [_value_lines(found, options) for found in shown]
        for number, group in enumerate(lines):
            if left_out and number == len(lines) - _MOST_SHOWN // 2:
                say(f"  ... {left_out:,} more: name fewer iterations, as in @0:50, or write them with --csv or --npy")
            for line in group:
                say(f"  {line}" if titled else line)
        if not is_whole and not options.stats:
            unrecorded.append(selection.name)
    if unrecorded:
        sys.stdout.flush()
        say(_how_to_record(unrecorded), file=sys.stderr)


def _loops_text(selection: ValueSelection) -> str:
    return f"  (@ {', @ '.join(selection.loops)})" if len(selection.loops) > 1 else ""


def _ends(selection: ValueSelection, *, statistics: bool) -> tuple[list[RecordedValue], int, bool]:
    """Yield the first and last moments, how many are between them, and whether all had values."""
    walk = selection.walk(statistics=statistics)
    is_whole = True

    def seen() -> Iterator[RecordedValue]:
        nonlocal is_whole
        for found in walk:
            is_whole &= found.value is not None
            yield found

    moments = seen()
    first = list(itertools.islice(moments, _MOST_SHOWN // 2))
    last: deque[RecordedValue] = deque(maxlen=_MOST_SHOWN // 2)
    rest = 0
    for found in moments:
        last.append(found)
        rest += 1
    return [*first, *last], rest - len(last), is_whole


def _value_lines(found: RecordedValue, options: Namespace) -> list[str]:
    width = output_width() - 2
    if found.value is None:
        return titled_lines(found.at, [_summary_text(found.statistics(), options.digits)], width)
    lines = titled_lines(found.at, value_lines(found.value, width, options.digits or _DIGITS), width)
    return [*lines, f"  (recorded as {found.source})"] if found.source else lines


def _summary_text(summary: Summary, digits: int | None) -> str:
    numbers = [f"{name} {number_text(number, digits or 6)}" for name, number in summary.numbers.items()]
    return f"{form_text(summary)}  {'  '.join(numbers)}"


def _table(shown: list[RecordedValue], options: Namespace) -> list[list[str]]:
    """Return statistics, one line a moment; the first group has the heading, too."""
    rows = [["@", "type", *RECORDED]]
    for found in shown:
        summary = found.statistics()
        numbers = [number_text(number, options.digits or 6) for number in summary.numbers.values()]
        rows.append([found.at, form_text(summary), *numbers])
    lines = in_columns(rows)
    return [lines[:2], *([line] for line in lines[2:])]


def _how_to_record(names: list[str]) -> str:
    what = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"stepper: of {what} not all values were recorded, only statistics; "
        "stepper run MODEL --trace FILE --record all records them"
    )


# --- JSON and CSV ---------------------------------------------------------------------------------------------------


def _report(selection: ValueSelection, options: Namespace) -> dict[str, Any]:
    walk = selection.walk(statistics=options.stats)
    moments = [_moment(found, options) for found in itertools.islice(walk, _MOST_IN_REPORT)]
    more = sum(1 for _ in walk)
    report = {"address": selection.name, "loops": list(selection.loops), "moments": moments, "more": more}
    return {**report, "computed_by": selection.computed_by} if selection.computed_by else report


def _moment(found: RecordedValue, options: Namespace) -> dict[str, Any]:
    numbers = [number for number in found.numbers if number is not None]
    report: dict[str, Any] = {"iterations": numbers, "tick": found.tick}
    if options.stats or found.value is None:
        summary = found.statistics()
        form = {"type": element_types.name_of(summary.dtype), "shape": list(summary.shape), "values": None}
        return report | form | {"statistics": {name: json_number(number) for name, number in summary.numbers.items()}}
    return report | tensor_json(found.value) | ({"recorded_as": found.source} if found.source else {})


def _write_rows(selections: list[ValueSelection], options: Namespace) -> None:
    """Write rows element by element, or of statistics moment by moment."""
    columns = ["type", "shape", *RECORDED] if options.stats else ["index", "value"]
    heading = ["address", "at", "tick", *columns]
    write = csv.writer(sys.stdout, lineterminator="\n").writerow
    for selection in selections:
        for found in selection.walk(statistics=options.stats):
            if not options.stats:
                _ensure_recorded(found, selection)
            if heading:
                write(heading)
                heading = []
            begin = [_cell(selection.name), found.at, "" if found.tick is None else found.tick]
            if options.stats:
                write([*begin, *_statistics_row(found, options.digits)])
                continue
            plain = storable(found.value)
            for index, number in zip(np.ndindex(plain.shape), plain.reshape(-1), strict=True):
                write([*begin, " ".join(map(str, index)), _element_text(number, options.digits)])


def _statistics_row(found: RecordedValue, digits: int | None) -> list[Any]:
    summary = found.statistics()
    texts = ["" if number is None else _element_text(number, digits) for number in summary.numbers.values()]
    return [element_types.name_of(summary.dtype), " ".join(map(str, summary.shape)), *texts]


def _element_text(number: Any, digits: int | None) -> str:
    is_float = isinstance(number, float | np.floating)
    return f"{number:.{digits}g}" if digits and is_float else _cell(number) if isinstance(number, str) else str(number)


def _cell(text: str) -> str:
    return cell(printable(text) if sys.stdout.isatty() else text)


def _ensure_recorded(found: RecordedValue, selection: ValueSelection) -> None:
    if found.value is None:
        where = f" {found.at}" if found.at else ""
        what = f"of {selection.name}{where} only statistics were recorded"
        raise UsageError(f"{what}: ask for --stats, or record the run again with --record all")


# --- .npy -----------------------------------------------------------------------------------------------------------


def _write_array(selections: list[ValueSelection], options: Namespace, target: OutputFile) -> None:
    """Write one array while it is read; several moments are stacked along a new first dimension."""
    if options.stats or len(selections) != 1:
        names = ", ".join(selection.name for selection in selections[:5])
        what = "writes values, not statistics" if options.stats else f"writes one value, these are several: {names}"
        raise UsageError(f"--npy {what}")
    (selection,) = selections
    with target.writing() as file:
        count = selection.count()
        written, form = 0, None
        for found in selection.walk():
            _ensure_recorded(found, selection)
            plain = np.ascontiguousarray(storable(found.value)).reshape(found.value.shape)
            if form is None:
                form = plain
                _write_header(file, plain, selection, count)
            elif (plain.shape, plain.dtype) != (form.shape, form.dtype):
                raise UsageError(
                    f"{selection.name} has the shape {shape_text(form.shape)} at first and {shape_text(plain.shape)} "
                    f"at {found.at}, so they are not one array; name fewer iterations, or a part that is always there"
                )
            file.write(plain.tobytes())
            written += 1
        if form is None:
            raise UsageError(f"{selection.name} was never computed in these iterations")
        if written != count:
            file.seek(0)
            _write_header(file, form, selection, written)
    shape = form.shape if selection.is_single else (written, *form.shape)
    say(f"{options.npy}  {form.dtype}{shape_text(shape)}  {selection.name}", file=sys.stderr)


def _write_header(file: Any, plain: np.ndarray[Any, Any], selection: ValueSelection, count: int) -> None:
    """Write the header, of the same length whatever the count is: numpy leaves room for it."""
    shape = plain.shape if selection.is_single else (count, *plain.shape)
    header = {"descr": np.lib.format.dtype_to_descr(plain.dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
