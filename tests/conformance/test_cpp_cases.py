"""The header and the program of docs/tasks/it-fails-in-cpp.md: compiled, run, and what they write opened.

What the program itself got of OpenVINO is the truth; it writes that beside the cases, without the header.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.cases.case import read_case
from stepper.cli import main
from stepper.engine.array_files import read_archive

pytest.importorskip("openvino")

import openvino

from tests.conformance.agreement import assert_agrees
from tests.conformance.applications import streams
from tests.test_docs import fences

TASKS = Path(__file__).parents[2] / "docs" / "tasks"
WHEEL = Path(openvino.__path__[0])


def compiled(text: str, folder: Path) -> Path:
    """The program of this text; skips where none can be made."""
    libraries = sorted((WHEEL / "libs").glob("libopenvino.so*"))
    if shutil.which("g++") is None or not libraries or not (WHEEL / "include").is_dir():
        pytest.skip("needs g++, and the headers and libraries of OpenVINO's wheel")
    source, program = folder / "application.cpp", folder / "application"
    source.write_text(text, encoding="utf-8")
    words = ["g++", "-std=c++17", "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-isystem", WHEEL / "include"]
    words += ["-I", TASKS, source, "-o", program, libraries[0], f"-Wl,-rpath,{WHEEL / 'libs'}"]
    made = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300, check=False)
    assert made.returncode == 0, made.stderr[:3000]
    return program


def test_the_lines_of_the_page_compile_run_and_stop_at_the_nan(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    sources, lines = (
        next(one.text for one in fences(TASKS / "it-fails-in-cpp.md") if one.language.startswith(language))
        for language in ("cpp", "text")
    )
    (tmp_path / "application.cpp").write_text(sources, encoding="utf-8")
    shutil.copy(TASKS / "stepper_case.hpp", tmp_path)
    openvino.save_model(streams.detector(is_stateful=True), tmp_path / "model.xml", compress_to_fp16=False)
    frames = np.concatenate([streams.frame_of(call) for call in range(1, streams.CALLS + 1)])
    frames.tofile(tmp_path / "frames.bin")
    names = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # as in an active environment
    words = ["bash", "-e", "-c", lines]
    done = subprocess.run(words, cwd=tmp_path, env=names, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done.stderr
    assert "NaN appears in Divide 'share' in iteration 2" in done.stdout


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that the page shows."""
    (text,) = (one.text for one in fences(TASKS / "it-fails-in-cpp.md") if one.language.startswith("cpp"))
    return compiled(text, tmp_path_factory.mktemp("application"))


def set_begin(model: openvino.Model) -> None:
    """Make a constant of the input that the program does not set: what is in its memory would be any numbers."""
    begin = model.inputs[1].node
    for target in begin.output(0).get_target_inputs():
        target.replace_source_output(openvino.opset13.constant(streams.BEGIN).output(0))
    model.remove_parameter(begin)


@pytest.mark.parametrize("is_stateful", [True, False])
def test_a_call_of_a_program_in_cpp_is_a_case(
    is_stateful: bool, application: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = streams.detector(is_stateful=is_stateful)
    if not is_stateful:
        set_begin(model)
    openvino.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    frames = np.concatenate([streams.frame_of(call) for call in range(1, streams.CALLS + 1)])
    frames.tofile(tmp_path / "frames.bin")
    words = [str(application), "model.xml", "frames.bin", "scores.bin"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=300)
    scores = np.fromfile(tmp_path / "scores.bin", np.float32).reshape(frames.shape)

    (folder,) = (tmp_path / "kept").iterdir()
    assert folder.name == f"case-{streams.BAD}"
    case = read_case(folder)
    assert case.inputs is not None and case.outputs is not None and (case.states is not None) == is_stateful
    inputs = read_archive(case.inputs)
    assert np.array_equal(inputs["frame"], streams.frame_of(streams.BAD))
    assert np.array_equal(read_archive(case.outputs)["out_0"].read()[0], scores[streams.BAD - 1], equal_nan=True)
    states = {} if case.states is None else read_archive(case.states)
    if states:
        whole = stepper.compile_model(stepper.read_model(folder / "model.xml"))
        before: dict[str, np.ndarray] = {}
        for call in range(1, streams.BAD):
            before = stepper.run(whole, {"frame": streams.frame_of(call)}, states=before).states
        assert_agrees(states["memory"], before["memory"], "the variable before the call")
    got = stepper.run(folder / "model.xml", inputs, states=states)
    assert_agrees(next(iter(got.values()))[0], scores[streams.BAD - 1], "the output of the case")
    assert main(["compare", str(folder)]) == 0
    assert main(["run", str(folder), "--break", "nan"]) == 1
    assert "NaN appears in Divide 'share' in iteration 2" in capsys.readouterr().out


ARRAYS = """
#include <iostream>
#include "openvino/runtime/core.hpp"
#include "stepper_case.hpp"

template <class Number> ov::Tensor numbers(ov::element::Type type, ov::Shape shape) {
    ov::Tensor made(type, shape);
    for (std::size_t index = 0; index < made.get_size(); ++index)
        static_cast<Number*>(made.data())[index] = static_cast<Number>(static_cast<float>(index));
    return made;
}

int main() {
    using namespace ov::element;
    ov::Tensor whole = numbers<float>(f32, {3, 4});
    std::vector<stepper::Named> arrays = {
        {"f32", numbers<float>(f32, {2, 3})}, {"f64", numbers<double>(f64, {1})},
        {"f16", numbers<ov::float16>(f16, {4})}, {"bf16", numbers<ov::bfloat16>(bf16, {5})},
        {"i8", numbers<std::int8_t>(i8, {2})},
        {"u16", numbers<std::uint16_t>(u16, {2})}, {"i64", numbers<std::int64_t>(i64, {2, 1, 2})},
        {"boolean", numbers<char>(boolean, {2})}, {"scalar", numbers<std::int32_t>(i32, {})},
        {"empty", numbers<float>(f32, {0, 7})}, {"é/name:0", ov::Tensor(whole, {1, 1}, {3, 3})}};
    for (auto& [name, tensor] : arrays)
        tensor = stepper::detail::copy_of(tensor);
    stepper::detail::write_npz("arrays.npz", arrays);
    try {
        stepper::detail::write_npz("texts.npz", {{"text", ov::Tensor(string, {1})}});
    } catch (const std::runtime_error& error) {
        std::cout << error.what();
    }
}
"""


def test_arrays_of_every_type_come_through(tmp_path: Path) -> None:
    program = compiled(ARRAYS, tmp_path)
    ended = subprocess.run([str(program)], cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True)
    assert ended.stdout == "'text' is string, which cannot be written as .npy"
    expected = {
        "f32": np.arange(6, dtype=np.float32).reshape(2, 3),
        "f64": np.zeros(1),
        "f16": np.arange(4, dtype=np.float16),
        "bf16": np.arange(5, dtype=np.float32),
        "i8": np.arange(2, dtype=np.int8),
        "u16": np.arange(2, dtype=np.uint16),
        "i64": np.arange(4).reshape(2, 1, 2),
        "boolean": np.array([False, True]),
        "scalar": np.array(0, np.int32),
        "empty": np.empty((0, 7), np.float32),
        "é/name:0": np.array([[5, 6], [9, 10]], np.float32),
    }
    for read in (read_archive(tmp_path / "arrays.npz"), dict(np.load(tmp_path / "arrays.npz"))):
        assert list(read) == list(expected)
        for name, value in expected.items():
            assert (read[name].dtype, read[name].shape) == (value.dtype, value.shape), name
            assert np.array_equal(read[name], value), name
