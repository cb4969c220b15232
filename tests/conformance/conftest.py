"""What tests of runtimes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stepper.processes import starting, worker
from tests.cli.conftest import call as call


@pytest.fixture
def ended_workers() -> Iterator[None]:
    """All processes are started by the test, with its environment, and none of them serves another one.

    A fault that was injected would else show in whatever test comes next.
    """
    starting.end_unused()
    worker.close_all()
    yield
    starting.end_unused()
    worker.close_all()
