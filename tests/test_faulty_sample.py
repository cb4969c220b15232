"""The sample with a fault: where it is born, and that the change which the README's tour makes heals the whole run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.commands import Interpreter
from stepper.debug.debugger import Debugger
from stepper.openvino.partner import OpenVINOPartner

FOLDER = Path(__file__).parents[1] / "sample_models" / "rwkv_overflow"


def debugged() -> tuple[Debugger, Interpreter]:
    """The sample, not yet run."""
    debugger = Debugger(stepper.read_model(FOLDER / "model.xml"), dict(np.load(FOLDER / "inputs.npz")))
    return debugger, Interpreter(debugger)


def test_the_first_nan_is_born_in_iteration_8_of_a_division_of_two_infinities() -> None:
    _, interpreter = debugged()
    interpreter.execute("break nan")
    text = "\n".join(interpreter.execute("continue").lines)
    assert "Divide 'wkv' in iteration 8" in text and "[0,3]" in text
    for name in ("numerator_now", "denominator_now"):
        assert "inf" in interpreter.execute(f"print {name}[0,3]").lines[-1]


def test_the_first_infinity_is_born_one_iteration_before_in_the_exponential_of_the_key() -> None:
    _, interpreter = debugged()
    interpreter.execute("break inf")
    text = "\n".join(interpreter.execute("continue").lines)
    assert "Exp 'exp_key' in iteration 7" in text
    assert float(interpreter.execute("print max(key)").lines[-1].split()[-1]) > np.log(np.finfo(np.float32).max)


@pytest.mark.parametrize("engine", ["numpy-f16", "numpy-bf16"])
def test_in_a_narrower_type_too_each_link_of_the_way_back_is_at_the_element_where_the_nan_is(engine: str) -> None:
    debugger = stepper.open_debugger(
        FOLDER / "model.xml", dict(np.load(FOLDER / "inputs.npz")), partner=OpenVINOPartner(engine)
    )
    debugger.break_when("nan")
    debugger.continue_()
    links = debugger.chain_of("wkv").links
    assert links[-1].location.operation is not None and links[-1].location.operation.type == "Exp"
    assert [link.element for link in links] == [(0, 3)] * len(
        links
    )  # every operation from Exp to Divide is elementwise


def test_a_smaller_key_heals_the_run_up_to_the_rounding_of_the_formula_that_cannot_overflow() -> None:
    debugger, interpreter = debugged()
    for line in ("break inf", "continue", "reverse-next", "set key[0,3] = 80", "continue"):
        interpreter.execute(line)
    outputs = debugger.machine.outputs
    assert outputs is not None
    with np.load(FOLDER / "healthy.npz") as healthy:
        for value, name in zip(outputs, healthy, strict=True):
            np.testing.assert_allclose(value, healthy[name], rtol=1e-4, atol=1e-5, err_msg=name)
