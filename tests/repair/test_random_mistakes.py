"""Random healthy loops with a random edit of the catalogue are repaired, and large networks with a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepper.repair.fix_texts import edits_text
from stepper.repair.repairing import repaired
from stepper.repair.replay import Replayer
from stepper.repair.search import candidates, tried
from stepper.tensors.tolerances import Tolerances
from tests.repair.faulty_networks import read, reference_of
from tests.repair.large_networks import body_of, network_of


def test_a_random_mistake_in_a_random_loop_is_repaired(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    from tests.repair.random_mistakes import outcomes

    found = list(outcomes(5, 5, tmp_path))
    assert sum(one.is_equal_elsewhere for one in found) >= 4, found


@pytest.mark.parametrize(("make", "blocks"), [(body_of, 8), (network_of, 16)])
def test_a_mistake_among_many_operations_is_repaired(make: object, blocks: int, tmp_path: Path) -> None:
    assert callable(make)
    wrong, right = read(make(blocks, "operands", 3), tmp_path, "faulty"), read(make(blocks), tmp_path, "healthy")
    found = repaired(wrong, reference_of(right, wrong), Tolerances(exact=False), seconds=240)
    texts = [edits_text(edits) for one in found.answer.repairs for edits in (one.edits, *one.equivalents)]
    assert any("Subtract 'b3/centred': operands 0 and 1 exchanged" in text for text in texts), texts


def test_a_trial_that_stops_at_the_first_wrong_slice_finds_what_others_find(tmp_path: Path) -> None:
    wrong, right = read(body_of(2, "operation", 1), tmp_path, "faulty"), read(body_of(2), tmp_path, "healthy")
    replayer = Replayer(wrong, reference_of(right, wrong).examples, Tolerances(exact=False))
    edits = [one for one in candidates(replayer) if one.unknowns is None and one.price < 2][::3]
    whole = [tried(replayer, edit)[1].agrees for edit in edits]
    replayer.stops_early = True
    assert whole == [tried(replayer, edit)[1].agrees for edit in edits] and any(whole)
