"""The plugin of pytest: fixtures that run, compare and check models; a failure says where, why and how to look.

pytest loads this at its start, of itself, in every project of the environment: so the rest of the product, numpy among
it, is loaded by the first fixture that is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stepper.integrations.pytest_plugin.running import AgreementCheck, GoldenCheck, ModelCheck, RunCheck


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("stepper", "loops of models (stepper)")
    group.addoption(
        "--stepper-trace",
        metavar="DIR",
        default=None,
        help="keep the inputs of runs that fail in this folder, and record them; else in pytest's temporary folder",
    )
    group.addoption(
        "--stepper-update",
        action="store_true",
        default=False,
        help="write the files of stepper_golden again instead of comparing with them",
    )


@pytest.fixture
def stepper_run(request: pytest.FixtureRequest) -> RunCheck:
    """Run a model under watch: stepper_run(model, inputs, never=("nan", "inf"), always="abs(h) < 10", iterations=7)."""
    from stepper.integrations.pytest_plugin.running import RunCheck

    return RunCheck(request)


@pytest.fixture
def stepper_agree(request: pytest.FixtureRequest) -> AgreementCheck:
    """Compare two runs, loops included: stepper_agree(model, "openvino", inputs, rtol=1e-4)."""
    from stepper.integrations.pytest_plugin.running import AgreementCheck

    return AgreementCheck(request)


@pytest.fixture
def stepper_golden(request: pytest.FixtureRequest) -> GoldenCheck:
    """Compare a run with a recorded one: stepper_golden("run.sqlite", model, inputs); --stepper-update records it."""
    from stepper.integrations.pytest_plugin.running import GoldenCheck

    return GoldenCheck(request)


@pytest.fixture
def stepper_check(request: pytest.FixtureRequest) -> ModelCheck:
    """Ask the rules of `stepper lint` and, with inputs, of `stepper check`: stepper_check(model, inputs)."""
    from stepper.integrations.pytest_plugin.running import ModelCheck

    return ModelCheck(request)
