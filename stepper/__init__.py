"""A debugger for the loops of a neural network: the public names.

    model = stepper.read_model("model.xml")
    outputs = stepper.run(model, {"x": array})            # by name, tensor name or position
    machine = stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, {"x": array}))
    for event in machine.run(stepper.Every.ITERATION):    # stops after each iteration of each loop
        print(event.kind, event.tick, event.frame.activation.iteration)

Names are resolved when they are first used, so that `import stepper` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger as Debugger
    from stepper.engine import Every as Every
    from stepper.engine import Machine as Machine
    from stepper.engine import compile_model as compile_model
    from stepper.engine.feeds import bind_inputs as bind_inputs
    from stepper.engine.run import run as run
    from stepper.engine.sequences import open_sequences as open_sequences
    from stepper.errors import StepperError as StepperError
    from stepper.export.exporter import draw as draw
    from stepper.ir import read as read_model
    from stepper.openvino.opening import debugger as open_debugger
    from stepper.openvino.opening import open_model as open_model
    from stepper.openvino.partner import OpenVINOPartner as OpenVINOPartner

__version__ = "0.1.0"

_HOMES = {
    "read_model": ("stepper.ir", "read"),
    "run": ("stepper.engine", "run"),
    "compile_model": ("stepper.engine", "compile_model"),
    "open_sequences": ("stepper.engine.sequences", "open_sequences"),
    "bind_inputs": ("stepper.engine.feeds", "bind_inputs"),
    "Machine": ("stepper.engine", "Machine"),
    "Every": ("stepper.engine", "Every"),
    "open_model": ("stepper.openvino.opening", "open_model"),
    "open_debugger": ("stepper.openvino.opening", "debugger"),
    "OpenVINOPartner": ("stepper.openvino.partner", "OpenVINOPartner"),
    "Debugger": ("stepper.debug.debugger", "Debugger"),
    "draw": ("stepper.export.exporter", "draw"),
    "StepperError": ("stepper.errors", "StepperError"),
}

_RUNNING = {"run", "compile_model", "Debugger", "open_debugger"}

__all__ = [
    "Debugger",
    "Every",
    "Machine",
    "OpenVINOPartner",
    "StepperError",
    "bind_inputs",
    "compile_model",
    "draw",
    "open_debugger",
    "open_model",
    "open_sequences",
    "read_model",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "debug":
        return import_module("stepper.debug")
    if name not in _HOMES:
        raise AttributeError(f"module 'stepper' has no attribute '{name}'")
    module, attribute = _HOMES[name]
    if name in _RUNNING:
        # What has no kernel is OpenVINO's, where it is installed; the engine itself knows of no OpenVINO.
        import_module("stepper.openvino.partner").install_default()
    return getattr(import_module(module), attribute)
