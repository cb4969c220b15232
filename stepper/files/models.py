"""Files of models by their names; imports nothing, so that the command line can ask at once."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

IR_SUFFIX: Final = ".xml"

CONVERTED: Final = {
    ".onnx": "ONNX",
    ".pb": "TensorFlow",
    ".tflite": "TensorFlow Lite",
    ".pdmodel": "PaddlePaddle",
}
"""Suffixes of the formats that OpenVINO converts, and what each is called."""

WEIGHTS_SUFFIX: Final = ".bin"

WEIGHTS_BESIDE: Final = (".data", ".onnx_data", ".weights", ".pdiparams")
"""Suffixes of files with the weights of models of other formats."""

MODEL_SUFFIXES: Final = (IR_SUFFIX, WEIGHTS_SUFFIX, *CONVERTED, *WEIGHTS_BESIDE)
"""Suffixes of all files that belong to a model."""


def is_model_path(word: str) -> bool:
    """Return True if a word of the command line names a model's file rather than a command or an option."""
    suffix = PurePath(word).suffix.lower()
    return not word.startswith("-") and (suffix == IR_SUFFIX or suffix in CONVERTED)
