"""Writing arrays as .npz: keys in order, the same bytes for the same values."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.files.kinds import ARRAYS
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.plain_values import write_arrays


def write_npz(target: OutputFile | None, arrays: Mapping[str, Array]) -> None:
    """Write an .npz to a file, which appears whole or not at all, or to stdout for None. Raises OutputError."""
    if target is None:
        write_arrays(sys.stdout.buffer, arrays)
        return
    with target.writing() as file:
        write_arrays(file, arrays)


def states_target(options: Namespace, protected: ProtectedFiles) -> OutputFile | None:
    """Return where `--save-states` writes; None where it is not given. Raises UsageError for stdout, OutputError."""
    if options.save_states is None:
        return None
    if options.save_states == "-":
        raise UsageError("--save-states writes a file, not stdout; name one")
    target = OutputFile(Path(options.save_states), ARRAYS, protected, "--save-states")
    target.check()
    return target


def state_arrays(states: Mapping[str, Any]) -> dict[str, Array]:
    """Return the variables of a run as arrays; how far a random stream has come is a number."""
    return {name: np.asarray(value) for name, value in states.items()}
