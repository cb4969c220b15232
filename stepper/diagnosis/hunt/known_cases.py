"""The smallest known case of each fault of the runtime, which comes with the program: does it show here?

A case is a folder of its own with the model and its inputs, as a reduction has left them.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Final

from msgspec import Struct

from stepper.diagnosis.hunt.faults import FAULTS, RuntimeFault, recognised
from stepper.diagnosis.hunt.recognition import shown_facts
from stepper.diagnosis.hunt.seeds import SETTINGS
from stepper.diagnosis.reduce.case import MODEL, read_case
from stepper.diagnosis.reduce.conditions import DisagreesWith, FoundFault
from stepper.diagnosis.reduce.listing import model_lines
from stepper.diagnosis.reduce.trial_acts import TrialFacts, TryModel, trial_worker
from stepper.diagnosis.reduce.trying import ended_fault
from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.processes.messages import ENDED
from stepper.processes.worker import Limits

CASES: Final = Path(__file__).parent / "cases"
ALL: Final = "all"
_MEMORY: Final = 2 * 2**30
_SECONDS: Final = 60.0


class KnownCase(Struct, frozen=True):
    """A fault of the catalogue with the folder of its case."""

    fault: RuntimeFault
    folder: Path


class CaseOutcome(Struct, frozen=True):
    """A case as it was run: what shows (None: nothing), by which name that is known, expected and given outputs.

    `model` has a line for each layer.
    """

    case: KnownCase
    found: FoundFault | None
    recognised: str
    expected: tuple[Array, ...]
    given: tuple[Array, ...]
    model: tuple[str, ...]

    @property
    def is_shown(self) -> bool:
        """True if the fault is there in the OpenVINO that is installed."""
        return self.recognised == self.case.fault.id


def known_cases(name: str) -> tuple[KnownCase, ...]:
    """Return the case of a fault, or those of `all`. UsageError where the catalogue has no such fault."""
    if name == ALL:
        return tuple(KnownCase(fault, CASES / fault.id) for fault in FAULTS)
    found = next((fault for fault in FAULTS if fault.id == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [fault.id for fault in FAULTS], 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(fault.id for fault in FAULTS)}"
        raise UsageError(f"--fault {name}: no known fault of the runtime; {hint}")
    return (KnownCase(found, CASES / name),)


def run_case(case: KnownCase) -> CaseOutcome:
    """Run a case here and in OpenVINO, in a process of its own, and hold what shows against the catalogue."""
    path, draft = case.folder / MODEL, read_case(case.folder)
    trial = TryModel(str(path), SETTINGS, DisagreesWith(), wants_outputs=True)
    worker = trial_worker(_MEMORY, with_openvino=True)
    facts, arrays = TrialFacts(None), list[Array]()
    try:
        facts, arrays = worker.ask_for(TrialFacts, trial, draft.inputs, subject=case.fault.id, limits=Limits(_SECONDS))
        found = facts.fault
    except ENDED as error:
        found = ended_fault(error.end, DisagreesWith())  # type: ignore[attr-defined]  # each of ENDED has it
        if found is None:
            raise
    finally:
        worker.close()
    known = None if found is None else recognised(found, shown_facts(draft, path, found, SETTINGS))
    return CaseOutcome(
        case,
        found,
        "" if known is None else known.id,
        tuple(arrays[: facts.expected]),
        tuple(arrays[facts.expected :]),
        tuple(model_lines(draft)),
    )
