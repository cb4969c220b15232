"""OpenVINO's side of its worker process: `main` performs the acts of `worker`."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from stepper.element_types import Array
from stepper.openvino import runtime
from stepper.openvino.layers import LayerInOpenVINO, function_of
from stepper.openvino.runtime import (
    AskOtherReader,
    CheckDevice,
    CompileFile,
    Convert,
    DefineLayer,
    DefineModel,
    NativeText,
    OpenVINOAct,
    Rewrite,
    Runtime,
    mapped,
)
from stepper.processes.process_messages import CallFunction
from stepper.processes.server import Announce, serve


class _Defined:
    """A function that is made when it is first called, and that several threads may call."""

    def __init__(self, make: Callable[[], Callable[..., Sequence[Any]]]) -> None:
        self._lock = threading.Lock()
        self._function: Callable[..., Any] = make
        self._is_made = False

    def __call__(self, *inputs: Array) -> Sequence[Any]:
        with self._lock:
            if not self._is_made:
                self._function, self._is_made = self._function(), True
            outputs: Sequence[Any] = self._function(*inputs)
            return outputs


class OpenVINOService:
    """Performs acts in OpenVINO; what was defined stays until it is forgotten."""

    acts = OpenVINOAct

    def __init__(self, announce: Announce) -> None:
        runtime.announce = announce
        with contextlib.suppress(Exception):  # what is wrong is said by the first act, which meets it again
            runtime.load()
        self._functions: dict[int, _Defined] = {}
        self._runtimes: dict[Runtime, Runtime] = {}

    def forget(self, key: int) -> None:
        """Drop what was defined under a key."""
        self._functions.pop(key, None)

    def define(self, definition: DefineModel | DefineLayer, arrays: list[Array]) -> None:
        """Take note of what a function is."""
        match definition:
            case DefineModel():
                make = partial(self._model, definition, arrays)
            case DefineLayer():
                make = partial(self._layer, definition, arrays)
        self._functions[definition.key] = _Defined(make)

    def perform(self, act: OpenVINOAct, arrays: list[Array]) -> tuple[Any, Sequence[Any]]:
        """Return what an act finds out, and the outputs of a call."""
        match act:
            case CheckDevice():
                self._loaded(act.runtime).check_here()
            case Convert():
                from stepper.openvino.conversion import convert  # most have nothing to convert

                convert(act.source, act.target, act.shapes)
            case AskOtherReader():
                from stepper.openvino import onnx_rewriting

                return onnx_rewriting.other_reader(act.path), ()
            case Rewrite():
                from stepper.openvino import onnx_rewriting

                values = dict(zip(act.names, arrays, strict=True))
                return onnx_rewriting.rewritten(act.source, act.target, act.shapes, values, act.types), ()
            case CompileFile():
                os.chdir(act.folder)
                self._loaded(act.runtime).compile_file(act.path)
            case CallFunction():
                found = self._functions[act.key](*arrays)
                return None, found if act.wanted else ()
        return None, ()

    def _model(self, act: DefineModel, arrays: Sequence[Array]) -> Callable[..., Sequence[Any]]:
        """Return a model as a function."""
        text = NativeText(act.text, mapped(act.weights) if act.weights else None)
        loaded, states = self._loaded(act.runtime), dict(zip(act.states, arrays, strict=True))
        return function_of(act.kind, loaded, text, states, lends=True)

    def _layer(self, act: DefineLayer, arrays: Sequence[Array]) -> Callable[..., Sequence[Any]]:
        """Return a layer as a function of those of its inputs that are not constants."""
        constants: list[Array | None] = [None] * len(act.layer.inputs)
        for place, array in zip(act.constants, arrays, strict=True):
            constants[place] = array
        layer = LayerInOpenVINO(self._loaded(act.runtime), act.layer, constants, is_last_resort=act.is_last_resort)

        def compute(*given: Array) -> Sequence[Any]:
            changing = iter(given)
            return layer(*[next(changing) if one is None else one for one in constants])

        return compute

    def _loaded(self, asked: Runtime) -> Runtime:
        """Return the runtime of these settings, loaded, so that what comes next is no longer its start."""
        found = self._runtimes.setdefault(asked, asked)
        assert found.core, "it has its device"
        return found


def main() -> None:
    """Serve until the other side is gone."""
    # A third of what importing openvino takes is its converter's command line, which nothing here uses: there is none.
    sys.modules.setdefault("openvino.tools.ovc", None)  # type: ignore[arg-type]
    serve(OpenVINOService)
