"""Every name and number that an answer shows can be typed, and gives that number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from stepper_tui.paint.rows import row_name

from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import Overview, RowKind, address_in_loop, programs_of
from stepper.errors import UsageError
from stepper.query.address_syntax import Address, exact_name, parse_address
from tests.cli.conftest import Call
from tests.debug.debugged import SAMPLES, sample
from tests.tables import each_row

NAMES = (
    "for_loop",
    "while_loop",
    "nested_loop",
    "date_normaliser",
    "specification_lstm",
    "onnx_moving_average",
    "rwkv_overflow",
    "reverse",
)
KINDS = (RowKind.BACK_EDGE, RowKind.SLICE, RowKind.CONCATENATED, RowKind.LAST_VALUE, RowKind.CONDITION)


def is_number(found: Any, shown: Any) -> bool:
    """True if what is typed gives what is shown, which may be shortened to the digits of single precision."""
    number = np.asarray(found).reshape(-1)
    return number.size == 1 and bool(np.allclose(float(number[0]), float(shown), rtol=1e-6, equal_nan=True))


@each_row("name", NAMES, quick=3)
def test_each_link_of_a_chain_and_each_operand(call: Call, name: str) -> None:
    path, debugger, count = SAMPLES / name / "model.xml", sample(name), 0
    debugger.continue_()
    debugger.reverse_step()  # the last operation, while the model still runs
    for output in [one for one in debugger.model.graph.layers if one.type == "Result"]:
        words = ("why", path, f"`{output.name}`", "--inputs", path.with_name("inputs.npz"), "--json")
        for link in json.loads(call(*words).out)["chain"]:
            if link["is_shape"] or link["value"] is None:
                continue
            assert is_number(debugger.value(link["address"]), link["value"]), link["address"]
            around = parse_address(link["address"])
            for part in link["parts"]:
                if part["is_shape"] or part["value"] is None:
                    continue
                typed = Address(
                    around.levels, exact_name(part["name"]), part["output"], around.iterations, tuple(part["index"])
                )
                assert is_number(debugger.value(typed), part["value"]), typed
                count += 1
    assert count or name == "reverse"


def shown_numbers(debugger: Debugger, overview: Overview) -> Iterator[tuple[str, str, float]]:
    """A name, the address of its column, and the number in it, of rows of the overview with single numbers."""
    compiled = debugger.machine.compiled
    for facts, program in zip(overview.loops, programs_of(compiled), strict=True):
        if program is None:
            continue
        for run in facts.activations:
            for row, history in zip(facts.rows, run.values, strict=False):
                if history is None or row.kind not in KINDS or row.appends or history.numbers.shape[-1] != 1:
                    continue
                if history.changes_shape:  # what is shown is the rms of its elements
                    continue
                for (begin, end), number in zip(history.spans.tolist(), history.numbers[-1].tolist(), strict=True):
                    if end - begin == 1:
                        yield row_name(row), address_in_loop(program, run.outer, begin, compiled), number[0]


@each_row("name", NAMES)
def test_each_name_and_number_of_the_overview(name: str) -> None:
    debugger, count = sample(name), 0
    overview = debugger.run_overview(seconds=20)
    debugger.continue_()
    for label, column, number in shown_numbers(debugger, overview):
        try:
            found = debugger.value(f"{column}::{label}")
        except UsageError as error:
            raise AssertionError(f"{label} at {column}: {error}") from error
        assert is_number(found, number), f"{label} at {column}: {found}, not {number}"
        count += 1
    assert count or name in ("reverse", "specification_lstm", "rwkv_overflow", "onnx_moving_average")
