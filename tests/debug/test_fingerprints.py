"""What comes back is compared with what was: large values by pieces that are spread over them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import force_setattr

from stepper.debug.stop import _spread, _update, fingerprint, is_same_state
from stepper.engine.frames import EventKind, Every
from tests.debug.debugged import run_named
from tests.tables import each_row


def digest(array: np.ndarray) -> bytes:
    found = hashlib.blake2b()
    _update(found, array)
    return found.digest()


@each_row("shape", [(1 << 19,), (1 << 10, 1 << 9), (2, 1 << 18)])
@each_row("transposed", [False, True])
def test_a_large_value_that_is_another_throughout_has_another_fingerprint(
    shape: tuple[int, ...], transposed: bool
) -> None:
    one = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    one = one.T if transposed else one
    assert digest(one) == digest(one.copy(order="K")) and digest(one) != digest(one + np.float32(1))
    assert sum(piece.size for piece in _spread(one)) < one.size // 4


def test_of_a_value_of_up_to_a_megabyte_every_element_counts() -> None:
    one = np.zeros(1 << 18, np.float32)
    for place in (0, 1234, one.size - 1):
        other = one.copy()
        other[place] = 1
        assert digest(other) != digest(one)


def test_a_replay_that_gives_other_values_is_told_once_it_is_asked(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    body = next(program for program in debugger.machine.compiled.programs if program.path)
    function, calls = body.operations[1].function, []
    assert function is not None

    def other_each_time(*inputs: Any) -> Any:
        calls.append(1)
        return function(*inputs) + np.float32(len(calls))

    def there_and_back() -> list[str]:
        for tick in (6, 10, 6, 10):
            debugger.timeline.goto(tick)
            debugger.timeline.show()
        return list(debugger.timeline.warnings)

    assert there_and_back() == []
    force_setattr(body, "code", (body.code[0], (other_each_time, *body.code[1][1:])))
    assert any(warning.startswith("replay differs at tick ") for warning in there_and_back())


def test_a_stop_is_proved_before_the_run_goes_on(tmp_path: Path) -> None:
    timeline = run_named("sums", tmp_path).timeline
    timeline.goto(3)
    timeline.show()
    known = timeline._unproved
    assert known is not None and known.tick == 3 and 3 not in timeline._fingerprints
    timeline.goto(5)
    assert timeline._fingerprints[3] == fingerprint(known)


def test_a_state_without_values_that_were_no_longer_needed_is_the_same_as_one_with_them(tmp_path: Path) -> None:
    whole = run_named("sums", tmp_path).machine
    lean = whole.twin()
    lean.keep_values = False
    for machine in (whole, lean):
        for event in machine.run(Every.LOOP):
            if event.kind is EventKind.LEFT:
                break
    kept, now = lean.snapshot(), whole.snapshot()
    assert kept.tick == now.tick and fingerprint(kept) != fingerprint(now)
    assert is_same_state(kept, now) and not is_same_state(now, kept)
    slot = next(slot for slot, value in enumerate(kept.frames[0].values) if value is not None and np.size(value))
    now.frames[0].values[slot] = np.asarray(now.frames[0].values[slot]) + 1
    assert not is_same_state(kept, now)
