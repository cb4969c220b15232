"""How the tests of the engine run a graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepper
from stepper.engine.run import Outputs
from tests.models import Graph

Run = Callable[..., Outputs]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Writes a graph, reads it, and runs it once on inputs by position."""

    def once(graph: Graph, *inputs: Any, **options: Any) -> Outputs:
        return stepper.run(graph.read(tmp_path), dict(enumerate(inputs)), **options)

    return once
