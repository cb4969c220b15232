"""What several tests of recordings need."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from stepper.engine.program import CompiledModel
from stepper.ir.model import Model
from stepper.recording import reading


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that nobody changes is read and compiled once for all recordings of it that one test opens."""
    compile_model = reading.compile_model
    found: dict[tuple[Any, ...], CompiledModel] = {}

    def compiled(model: Model, *options: Any) -> CompiledModel:
        key = (id(model), *options)
        if key not in found:
            found[key] = compile_model(model, *options)  # which holds the model, so that its id is not given again
        return found[key]

    monkeypatch.setattr(reading, "read", cache(reading.read))
    monkeypatch.setattr(reading, "compile_model", compiled)
