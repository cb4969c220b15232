"""The tests behave alike however they were started, and each time.

HYPOTHESIS_PROFILE=search in the environment has hypothesis look for new examples, and ten times as many.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from stepper.processes.starting import cores
from tests.slow import is_slow

settings.register_profile(
    "same", derandomize=True, deadline=None, database=None, max_examples=100, suppress_health_check=list(HealthCheck)
)
settings.register_profile("search", settings.get_profile("same"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


for _name in ("CI", "FORCE_COLOR", "FORCE_COLOUR", "CLICOLOR_FORCE", "PY_COLORS"):
    os.environ.pop(_name, None)  # with them programs write colours into what is read here
os.environ.pop("PYTHONUNBUFFERED", None)  # with it nobody would see that a program keeps what is read from a pipe
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # with it each worker and each program of a test compiles all anew
sys.dont_write_bytecode = False


_USUAL_THRESHOLDS: Final = gc.get_threshold()
gc.disable()  # until all tests are found: nothing of them is garbage


def pytest_configure() -> None:
    """Ctrl+C is heeded, here and in every program that a test starts, also where the shell had us ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before marks choose among them
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that only the second part of `.ci/run` takes. A file that the command line names runs whole."""
    named = (one.removeprefix("tests/") for one in config.args)
    if config.option.markexpr == "not slow" and any(".py" in one or is_slow(one) for one in named):
        config.option.markexpr = ""
    for item in items:
        name = item.originalname if isinstance(item, pytest.Function) else item.name
        if is_slow(item.path.relative_to(Path(__file__).parent).as_posix(), name):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What all tests are stays: the collector searches what they make, a tenth less work in all.

    Another tenth less it is because it searches more rarely: an application is many objects that go together.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.hookimpl(optionalhook=True)  # where the plugin is not in use
def pytest_xdist_auto_num_workers() -> int:
    """Every seventh moment of a test is spent waiting, for a pause or another program."""
    return cores() + (cores() + 1) // 2


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    """As in a program of its own: the collector searches everything, and as often."""
    gc.unfreeze()
    rarely = gc.get_threshold()
    gc.set_threshold(*_USUAL_THRESHOLDS)
    yield
    gc.set_threshold(*rarely)
    gc.freeze()  # what is garbage stays, too: to search for it takes seconds
