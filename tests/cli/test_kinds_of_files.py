"""Each kind of file is told from what is in it: opened, or refused with what it is and the lines that convert it."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.errors import ModelError
from stepper.files.recognition import folder_sentence, not_a_model, opened_in
from tests.cli.conftest import ROOT, Call
from tests.tables import each_row

SAMPLE = ROOT / "sample_models" / "for_loop"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345678\n"
PAGE = b"<!DOCTYPE html>\n<html><head><title>silero_vad.onnx</title></head></html>"
SAFETENSORS = (2).to_bytes(8, "little") + b"{}"


def archive(*names: str) -> tuple[str, ...]:
    return names


@each_row(
    ("name", "content", "said"),
    [
        (
            "a.pt",
            archive("a/data.pkl", "a/code/__torch__.py", "a/constants.pkl"),
            "is a TorchScript module; convert it",
        ),
        ("a.pt2", archive("a/models/model.json", "a/archive_format"), "is a program that torch.export wrote; convert"),
        ("old.pt2", archive("serialized_exported_program.json"), "is a program that torch.export wrote; convert it"),
        ("a.pth", archive("a/data.pkl", "a/data/0"), "holds weights or objects of PyTorch, no graph; load them"),
        ("old.pth", b"\x80\x02\x8a\nl\xfc", "is a pickle, as torch.save wrote them long ago, and is not opened"),
        (
            "a.keras",
            archive("metadata.json", "config.json", "model.weights.h5"),
            "is a Keras model; save it as a Saved",
        ),
        ("a.h5", b"\x89HDF\r\n\x1a\n" + b"\0" * 5000 + b"model_config", "is a Keras model; save it as a SavedModel"),
        ("weights.h5", b"\x89HDF\r\n\x1a\n" + b"\0" * 5000, "is an HDF5 file, such as weights of Keras"),
        ("a.safetensors", SAFETENSORS, "holds weights alone (safetensors), no graph"),
        ("a.gguf", b"GGUF\3\0\0\0", "holds the weights of a language model (GGUF), no graph"),
        ("a.onnx", POINTER, "is a Git LFS pointer, not the file itself (12,345,678 bytes)"),
        ("a.xml", POINTER, "is a Git LFS pointer, not the file itself (12,345,678 bytes)"),
        ("a.onnx", PAGE, "is a web page ('silero_vad.onnx'), not a model: download the file itself"),
        ("a.xml", b"\n" + PAGE, "is a web page ('silero_vad.onnx'), not a model: download the file itself"),
        ("a.onnx", b"Entry not found", "is a text ('Entry not found'), not a model: copy or download it again"),
        ("a.onnx", b"", "is empty: copy or download it again"),
        ("a.onnx.gz", b"\x1f\x8b\x08", "is compressed (gzip)"),
        ("a.onnx", b"\xfd7zXZ\0", "is compressed (xz)"),
        ("a.zip", archive("models/a.onnx"), "is an archive with 'models/a.onnx' in it: unpack it, and open that"),
        ("a.npz", archive("x.npy"), "is not a model, it is an archive, such as .npz: values for inputs"),
        (
            "inference.json",
            b'{"base_code":{"magic":"pir"}}',
            "is a PaddlePaddle model in JSON, which OpenVINO does not",
        ),
        ("a.pdiparams", b"\1\2\3", "holds the weights of PaddlePaddle alone: name the .pdmodel beside it"),
        ("a.ort", b"\x18\0\0\0ORTM", "is in onnxruntime's own format: open the .onnx that it was made from"),
        ("a.tflite", b"\x08\0\0\0TFL2", "is not a TensorFlow Lite model: its bytes 4 to 7 are not TFL3"),
        ("a.mlmodel", b"\x08\1", "is a Core ML model, which OpenVINO does not read"),
        ("a.blob", b"\x08\1", "is a model that OpenVINO has compiled, which has no graph"),
    ],
)
def test_what_is_no_model_is_called_by_its_name(
    tmp_path: Path, name: str, content: bytes | tuple[str, ...], said: str
) -> None:
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as file:
            for one in content:
                file.writestr(one, b"")
    assert str(not_a_model(path)).startswith(said)
    with pytest.raises(ModelError, match="^" + str(path).replace("\\", "\\\\")) as refused:
        stepper.open_model(path)
    assert said in str(refused.value)


@each_row("cut", [*range(0, 400, 7)])
def test_a_damaged_archive_is_still_told(tmp_path: Path, cut: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as file:
        file.writestr("a/data.pkl", b"")
        file.writestr("a/code/__torch__.py", b"")
    whole = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "a.pt").write_bytes(whole[: max(4, len(whole) - cut)])
    assert not_a_model(tmp_path / "a.pt") is not None


def test_an_ir_and_what_openvino_converts_are_left_to_their_readers(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"\x08\x0a\x12\x07pytorch")
    assert not_a_model(SAMPLE / "model.xml") is None
    assert not_a_model(tmp_path / "a.onnx") is None
    assert not_a_model(tmp_path / "none") is None


@each_row("command", ["inspect", "run", "lint", "check"])
def test_weights_that_are_a_pointer_are_told_first(call: Call, tmp_path: Path, command: str) -> None:
    shutil.copy(SAMPLE / "model.xml", tmp_path)
    (tmp_path / "model.bin").write_bytes(POINTER)
    said = call(command, tmp_path / "model.xml")
    assert "model.bin: is a Git LFS pointer, not the file itself (12,345,678 bytes): git -C" in said.out + said.err
    assert "axis" not in said.out + said.err


def put_models(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLE / "model.xml", folder / name)


@each_row(
    ("names", "first"),
    [
        (("openvino_model.xml", "openvino_tokenizer.xml", "openvino_detokenizer.xml"), "openvino_model.xml"),
        (("openvino_language_model.xml", "openvino_vision_embeddings_model.xml"), "openvino_language_model.xml"),
        (("one.xml",), "one.xml"),
        (("one.xml", "two.xml"), None),
        (("unet/openvino_model.xml", "text_encoder/openvino_model.xml"), None),
    ],
)
def test_a_folder_opens_its_model(tmp_path: Path, names: tuple[str, ...], first: str | None) -> None:
    put_models(tmp_path, *names)
    assert opened_in(tmp_path) == (None if first is None else tmp_path / first)
    if first is None:
        assert folder_sentence(tmp_path) == (
            f"is a folder with models ({', '.join(sorted(names))}): name one, such as stepper {tmp_path / min(names)}"
        )


def test_a_folder_is_a_model_in_every_command(call: Call, tmp_path: Path) -> None:
    put_models(tmp_path, "openvino_model.xml", "openvino_tokenizer.xml")
    shutil.copy(SAMPLE / "model.bin", tmp_path / "openvino_model.bin")
    said = call("inspect", tmp_path)
    assert said.code == 0
    assert said.err == f"stepper: {tmp_path}: opens openvino_model.xml; there is also openvino_tokenizer.xml\n"
    given = ("--inputs", SAMPLE / "inputs.npz")
    assert call("run", tmp_path, *given).out == call("run", SAMPLE / "model.xml", *given).out
    assert call("lint", tmp_path, SAMPLE / "model.xml").out == "nothing is wrong in 2 models\n"
    assert "no difference" in call("compare", SAMPLE / "model.xml", "--with", tmp_path, *given).out


def test_a_folder_of_weights_alone_is_exported(tmp_path: Path) -> None:
    (tmp_path / "my llm").mkdir()
    (tmp_path / "my llm" / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (tmp_path / "my llm" / "model.safetensors").write_bytes(SAFETENSORS)
    folder, target = shlex.quote(str(tmp_path / "my llm")), shlex.quote(str(tmp_path / "my llm-openvino"))
    assert folder_sentence(tmp_path / "my llm").split("\n  ")[1:] == [
        f"optimum-cli export openvino --model {folder} {target}",
        f"stepper {target}",
    ]


FAKES = {
    "torch.py": "class jit:\n load = staticmethod(open)\nexport = jit\n",
    "openvino.py": "def convert_model(a): return a.name\ndef save_model(a, to, **_): open(to, 'w').write(a)\n",
    "keras.py": "import os\nclass models:\n def load_model(path): return models\n def export(to): os.mkdir(to)\n",
}


@each_row(
    ("names", "name", "target"),
    [
        (("a/data.pkl", "a/code/__torch__.py"), "it's $HOME.pt", "it's $HOME.xml"),
        (("a/archive_format", "a/models/model.json"), "a b.pt2", "a b.xml"),
        (("config.json", "metadata.json"), 'my "model".keras', 'my "model"'),
    ],
)
def test_the_lines_that_convert_run_as_they_are_printed(
    tmp_path: Path, names: tuple[str, ...], name: str, target: str
) -> None:
    """From another folder; what they import is played."""
    (tmp_path / "elsewhere").mkdir()
    for module, text in FAKES.items():
        (tmp_path / "elsewhere" / module).write_text(text)
    with zipfile.ZipFile(tmp_path / name, "w") as file:
        for one in names:
            file.writestr(one, b"")
    found = not_a_model(tmp_path / name)
    assert found is not None
    line = found.lines[0].replace("python ", f"{shlex.quote(sys.executable)} ", 1)
    subprocess.run(line, shell=True, cwd=tmp_path / "elsewhere", check=True, env={"PATH": "/usr/bin:/bin"})
    assert (tmp_path / target).exists()
    assert shlex.split(found.lines[1]) == ["stepper", str(tmp_path / target)]


@pytest.mark.skipif(shutil.which("gzip") is None, reason="needs gzip")
def test_a_compressed_model_opens_after_the_line_that_is_printed(tmp_path: Path, call: Call) -> None:
    import gzip

    packed = tmp_path / "my model.xml.gz"
    packed.write_bytes(gzip.compress((SAMPLE / "model.xml").read_bytes()))
    found = not_a_model(packed)
    assert found is not None
    subprocess.run(found.lines[0], shell=True, cwd="/", check=True)
    assert call("inspect", *shlex.split(found.lines[1])[1:]).code == 0


def test_arrays_beside_are_no_models(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(3))
    assert "--input NAME=FILE.npy" in str(not_a_model(tmp_path / "a.npy"))
