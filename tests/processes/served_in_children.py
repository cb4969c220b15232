"""A worker process that answers in children, each with what was loaded before the first."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.processes.process_messages import COMPILING, Definition
from stepper.processes.server import Announce, serve
from tests.processes.played_worker import Act, Fail, end_as

LOADED = os.getpid()


class Played:
    """Ends as it is asked to, or says in which process it is and which one has loaded this module."""

    acts = Act

    def __init__(self, announce: Announce) -> None:
        self._announce = announce

    def define(self, _definition: Definition, _arrays: list[Array]) -> None:
        """Nothing is defined."""

    def forget(self, _key: int) -> None:
        """Nothing is defined."""

    def perform(self, act: Act, arrays: list[Array]) -> tuple[Any, Sequence[Any]]:
        """Fail, or return the ids of both processes."""
        way = act.way if isinstance(act, Fail) else ""
        self._announce(COMPILING)
        if way == "no memory":
            print("terminate called after throwing an instance of 'std::bad_alloc'", file=sys.stderr, flush=True)
            way = "SIGABRT"
        end_as(way)
        return None, [np.array([os.getpid(), LOADED])]


def main() -> None:
    """Answer requests until there are no more."""
    serve(Played, in_children=True)
