"""A model where one is expected: the model itself, or the path of one, of any format that can be opened.

This package reads the .xml of an IR. For everything else there is an opener, which the public names of the package set;
nothing here knows of a runtime.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from stepper.errors import ArgumentTypeError
from stepper.ir import lowering
from stepper.ir.model import Model
from stepper.ir.reader import read

ModelSource: TypeAlias = Model | str | Path | Any
"""A model, the path of one, or a live `openvino.Model`."""

_opener: list[Callable[[Any], Model]] = []


def set_opener(opener: Callable[[Any], Model]) -> None:
    """Set the opener of what is not an IR: files of other formats, and models of other libraries."""
    _opener[:] = [opener]


def opened(source: ModelSource) -> Model:
    """Return the model that is meant. ModelError for a file that cannot be read, ArgumentTypeError for no model."""
    if isinstance(source, Model):
        return source
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if isinstance(source, str) and (not _opener or Path(source).suffix.lower() == ".xml"):
        return read(source)
    if not _opener or source is None:
        raise ArgumentTypeError(
            f"{type(source).__name__} is not a model: name a file, or give a stepper or OpenVINO model"
        )
    return _opener[0](source)


def open_sequences(model: ModelSource) -> Model:
    """Return the model with its recurrent sequences as loops; the model itself where it has none.

    Every LSTMSequence, GRUSequence and RNNSequence, at any depth, becomes the TensorIterator over its cell that it is,
    so that a run can stop in it. A loop has id, name and line of the sequence that it was; of the two of a
    bidirectional one NAME/forward has the id. A sequence that is not well-formed stays, for `compile_model` to say
    what is wrong with it.
    """
    model = opened(model)
    found = lowering.lowered(model, on_request=True)
    if found is model or model.reopen is None:
        return found
    return replace(found, reopen=_Opened(model.reopen))


class _Opened(Struct, frozen=True):
    """A model with its sequences opened, to be had in another process (see `Model.reopen`)."""

    reopen: Callable[[], Model]

    def __call__(self) -> Model:
        model = self.reopen()
        if model not in _already:
            _already[model] = open_sequences(model)
        return _already[model]


_already: Final[WeakKeyDictionary[Model, Model]] = WeakKeyDictionary()
