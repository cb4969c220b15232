"""A debugger for the loops of a neural network: runs OpenVINO models with numpy, and opens TensorIterator, Loop and If.

Read. Wherever a model is expected, its path will do.

    model = stepper.read_model("model.xml")             # open_model: also .onnx, .pb, .tflite, .pdmodel, openvino.Model
    model = stepper.open_sequences(model)               # LSTMSequence, GRUSequence, RNNSequence as loops
    model, inputs = stepper.over_calls(model, {"x": frames}, carry={"hn": "h"})    # many calls as the outermost loop

Run.

    outputs = stepper.run(model, {"x": array})          # inputs by name, tensor name or position; outputs by name
    outputs = stepper.run(model, {"x": array}, states=outputs.states)         # the variables go on
    compiled = stepper.compile_model(model)             # once, for many runs: stepper.run(compiled, inputs)
    machine = stepper.Machine(compiled, stepper.bind_inputs(model, {"x": array}))
    for event in machine.run(stepper.Every.ITERATION):  # stops after each iteration of each loop
        print(event.kind, event.tick, event.frame.activation.iteration)

Debug.

    debugger = stepper.Debugger(model, {"x": array})
    debugger.break_at("h_next", condition="max(h_next) > 2")
    stop = debugger.continue_()                         # where it stopped, and why; each verb goes backward, too
    debugger.evaluate("max(h_next)"), debugger.value("h@2:5")

Draw.

    stepper.draw(model, {"x": array}, values="stats")   # shows itself in a notebook; .written("svg") makes a file

Compare.

    comparison = stepper.compare_models(model, other, {"x": array})          # the first place where they part, and why
    stepper.set_reference(debugger, other)              # a model's path, "openvino", a recording, an .npz
    debugger.difference().operations                    # at this stop: how far each is
    debugger.spread().first                             # where the two runs part

Bring in a failing call of an application; each is written as a folder that every command takes for a model.

    with stepper.capture(when="nan", to="cases"):       # or "inf", "error", a function; around any use of openvino
        application()

Errors are `StepperError`s with one clear message: `UsageError` (a ValueError) for what cannot be asked, of it
`ArgumentTypeError` (a TypeError), `MissingInputs` and `OutputError`; `ModelError`, `InputError`, `SessionError`,
`ExecutionError`, `LimitReached`, `Paused`, `UnsupportedOperation`. They, models, compiled models, stops, snapshots and
outputs can be pickled, so that a pool of processes runs one model on many inputs.

Names are resolved when they are first used, so that `import stepper` costs nothing.
"""

from __future__ import annotations

from functools import cache as _cache
from importlib import import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from typing import Any as _Any

    from stepper.cases.capturing import Capture as capture  # noqa: F401, N813  # entered as if it were a function
    from stepper.compare.comparison import compare_models as compare_models
    from stepper.compare.references.reference_opening import set_reference as set_reference
    from stepper.debug.debugger import Debugger as Debugger
    from stepper.debug.debugger import open_debugger as open_debugger
    from stepper.engine.compiler import compile_model as compile_model
    from stepper.engine.frames import Every as Every
    from stepper.engine.inputs import bind_inputs as bind_inputs
    from stepper.engine.machine import Machine as Machine
    from stepper.engine.run import Outputs as Outputs
    from stepper.engine.run import over_calls as over_calls
    from stepper.engine.run import run as run
    from stepper.errors import ArgumentTypeError as ArgumentTypeError
    from stepper.errors import ExecutionError as ExecutionError
    from stepper.errors import InputError as InputError
    from stepper.errors import LimitReached as LimitReached
    from stepper.errors import MissingInputs as MissingInputs
    from stepper.errors import ModelError as ModelError
    from stepper.errors import OutputError as OutputError
    from stepper.errors import Paused as Paused
    from stepper.errors import SessionError as SessionError
    from stepper.errors import StepperError as StepperError
    from stepper.errors import UnsupportedOperation as UnsupportedOperation
    from stepper.errors import UsageError as UsageError
    from stepper.export.exporter import draw as draw
    from stepper.ir.reader import open_sequences as open_sequences
    from stepper.ir.reader import read as read_model
    from stepper.openvino.opening import open_model as open_model
    from stepper.openvino.partner import OpenVINOPartner as OpenVINOPartner

__version__ = "0.2.0"

_HOMES = {
    "read_model": ("stepper.ir.reader", "read"),
    "run": ("stepper.engine.run", "run"),
    "compile_model": ("stepper.engine.compiler", "compile_model"),
    "open_sequences": ("stepper.ir.reader", "open_sequences"),
    "over_calls": ("stepper.engine.run", "over_calls"),
    "bind_inputs": ("stepper.engine.inputs", "bind_inputs"),
    "Machine": ("stepper.engine.machine", "Machine"),
    "Every": ("stepper.engine.frames", "Every"),
    "Outputs": ("stepper.engine.run", "Outputs"),
    "open_model": ("stepper.openvino.opening", "open_model"),
    "open_debugger": ("stepper.debug.debugger", "open_debugger"),
    "OpenVINOPartner": ("stepper.openvino.partner", "OpenVINOPartner"),
    "Debugger": ("stepper.debug.debugger", "Debugger"),
    "compare_models": ("stepper.compare.comparison", "compare_models"),
    "set_reference": ("stepper.compare.references.reference_opening", "set_reference"),
    "draw": ("stepper.export.exporter", "draw"),
    "capture": ("stepper.cases.capturing", "Capture"),
    "StepperError": ("stepper.errors", "StepperError"),
    "UsageError": ("stepper.errors", "UsageError"),
    "ArgumentTypeError": ("stepper.errors", "ArgumentTypeError"),
    "MissingInputs": ("stepper.errors", "MissingInputs"),
    "ModelError": ("stepper.errors", "ModelError"),
    "InputError": ("stepper.errors", "InputError"),
    "OutputError": ("stepper.errors", "OutputError"),
    "Paused": ("stepper.errors", "Paused"),
    "SessionError": ("stepper.errors", "SessionError"),
    "ExecutionError": ("stepper.errors", "ExecutionError"),
    "LimitReached": ("stepper.errors", "LimitReached"),
    "UnsupportedOperation": ("stepper.errors", "UnsupportedOperation"),
}
"""Each public name, and the module and the name there under which it lives."""

_OPENING = {
    "run",
    "compile_model",
    "open_sequences",
    "over_calls",
    "Debugger",
    "open_debugger",
    "compare_models",
    "draw",
    "bind_inputs",
}
"""The names that take a model of any kind, and compute in OpenVINO (where it is installed) what has no kernel here."""

__all__ = [
    "ArgumentTypeError",
    "Debugger",
    "Every",
    "ExecutionError",
    "InputError",
    "LimitReached",
    "Machine",
    "MissingInputs",
    "ModelError",
    "OpenVINOPartner",
    "OutputError",
    "Outputs",
    "Paused",
    "SessionError",
    "StepperError",
    "UnsupportedOperation",
    "UsageError",
    "bind_inputs",
    "compare_models",
    "compile_model",
    "draw",
    "open_debugger",
    "open_model",
    "open_sequences",
    "over_calls",
    "read_model",
    "run",
    "set_reference",
]


def load_ipython_extension(shell: _Any) -> None:
    """Register `%stepper MODEL` in IPython, for `%load_ext stepper`."""
    import_module("stepper.integrations.notebook.magic").register(shell)


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__name__", "__version__"]


def __getattr__(name: str) -> _Any:
    if name in ("debug", "errors"):
        return import_module(f"stepper.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'stepper' has no attribute '{name}'")
    module, attribute = _HOMES[name]
    if name in _OPENING:
        _open_seams()
    return getattr(import_module(module), attribute)


@_cache
def _open_seams() -> None:
    """Once: a model keeps what was compiled for a partner."""
    # The engine itself knows of no OpenVINO and of no other format; it hears of them here.
    import_module("stepper.openvino.partner").install_default()
    import_module("stepper.ir.reader").set_opener(_open)


def _open(source: _Any) -> _Any:
    return import_module("stepper.openvino.opening").open_model(source)
