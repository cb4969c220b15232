"""How a user gives inputs: `--input` in every form, `--inputs`, `--shape`; and files that are no tensors."""

from __future__ import annotations

import os
import pickle
import re
import shlex
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from stepper.engine import array_files
from tests.cli.conftest import Call, ended, program
from tests.models import Graph
from tests.tables import each_row


def adding(folder: Path) -> Path:
    """sum = a + b, both f32[?]; a is also `first`, b also `second`."""
    net = Graph()
    a, b = net.parameter("a", dims=(-1,), names="first"), net.parameter("b", dims=(-1,), names="second")
    net.result(net.apply("Add", a, b), "sum")
    return net.write(folder)


def single(folder: Path, type: str = "f32", dims: tuple[int, ...] = (-1,)) -> Path:
    net = Graph()
    net.result(net.parameter("x", type, dims), "out")
    return net.write(folder)


def shown(call: Call, path: Path, *words: object) -> str:
    """The line of the one output."""
    called = call("run", path, *words)
    assert (called.code, called.err) == (0, "")
    return re.sub(" +", " ", called.out.splitlines()[1].strip())


@each_row(("a", "b"), [("a", "b"), ("first", "second"), ("0", "1"), ("a", "1")])
def test_an_input_is_meant_by_name_tensor_name_or_position(call: Call, tmp_path: Path, a: str, b: str) -> None:
    path = adding(tmp_path)
    assert shown(call, path, "--input", f"{a}=[1,2]", "--input", f"{b}=[10,20]") == "sum f32[2] 11 22"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.parametrize(
    "words",
    [
        ("run", "m.xml", "--inputs", "p.npz"),
        ("run", "m.xml", "--input", "x=p.npy"),
        ("run", "m.xml", "--input", "x=p.npz:x"),
        ("run", "m.xml", "--calls", "p.npz"),
        ("compare", "m.xml", "--input", "x=ones", "--shape", "x=2", "--with", "p.npz"),
        ("sweep", "m.xml", "--inputs", "p.npz", "--leading-axis", "--out", "s.sqlite"),
        ("run", "p.xml"),
        ("run", "weights.xml", "--input", "x=ones", "--shape", "x=2"),
    ],
    ids=lambda words: " ".join(words),
)
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(words: tuple[str, ...], tmp_path: Path) -> None:
    single(tmp_path).rename(tmp_path / "m.xml")
    shutil.copyfile(tmp_path / "m.xml", tmp_path / "weights.xml")
    for name in ("p.npz", "p.npy", "p.xml", "weights.bin"):
        os.mkfifo(tmp_path / name)
    found = ended(program(*words, cwd=tmp_path))
    assert found.code in (2, 3) and found.err.count("\n") == 1 and "it is a pipe, not a file" in found.err


def test_inputs_come_from_arrays_and_archives(call: Call, tmp_path: Path) -> None:
    path = adding(tmp_path)
    np.save(tmp_path / "one.npy", np.array([1, 2], np.float32))
    np.savez(tmp_path / "some.npz", key=np.array([10, 20], np.float32))
    words = ("--input", f"a={tmp_path / 'one.npy'}", "--input", f"b={tmp_path / 'some.npz'}:key")
    assert shown(call, path, *words) == "sum f32[2] 11 22"


@each_row("keys", [("a", "b"), ("first", "second"), ("0", "1"), ("second", "0")])
def test_an_archive_holds_inputs_by_any_of_their_names(call: Call, tmp_path: Path, keys: tuple[str, str]) -> None:
    arrays = dict(zip(keys, (np.array([1, 2], np.float32), np.array([10, 20], np.float32)), strict=True))
    np.savez(tmp_path / "all.npz", **arrays)  # type: ignore[arg-type]
    assert shown(call, adding(tmp_path), "--inputs", tmp_path / "all.npz") == "sum f32[2] 11 22"


def test_an_input_goes_before_the_archive_and_a_star_fills_what_is_missing(call: Call, tmp_path: Path) -> None:
    path = adding(tmp_path)
    np.savez(tmp_path / "all.npz", a=np.array([1, 2], np.float32), b=np.array([10, 20], np.float32))
    archive = ("--inputs", tmp_path / "all.npz")
    assert shown(call, path, *archive, "--input", "first=[5,5]") == "sum f32[2] 15 25"
    assert shown(call, path, "--input", "a=[1,2]", "--input", "*=ones", "--shape", "b=2") == "sum f32[2] 2 3"
    assert shown(call, path, *archive, "--input", "*=zeros") == "sum f32[2] 11 22"


@each_row(
    ("type", "dims", "spec", "line"),
    [
        ("f32", (3,), "zeros", "out f32[3] 0 0 0"),
        ("i64", (2, 1), "ones", "out i64[2,1] 1 1"),
        ("boolean", (2,), "ones", "out boolean[2] true true"),
        ("f32", (), "1.5", "out f32[] 1.5"),
        ("f32", (), "-2", "out f32[] -2"),
        ("f32", (), "nan", "out f32[] NaN"),
        ("f32", (), "-inf", "out f32[] -Inf"),
        ("f32", (), "1e3", "out f32[] 1000"),
        ("i64", (), "-2147483648", "out i64[] -2147483648"),
        ("boolean", (), "true", "out boolean[] true"),
        ("string", (), '"a=b: c"', "out string[] 'a=b: c'"),
        ("f32", (2, 2), "[[1, 2], [3, 4]]", "out f32[2,2] 1 2 3 4"),
        ("f16", (1,), "[0.1]", "out f16[1] 0.0999756"),
        ("f32", (0,), "[]", "out f32[0]"),
    ],
)
def test_every_kind_of_value(
    call: Call, tmp_path: Path, type: str, dims: tuple[int, ...], spec: str, line: str
) -> None:
    assert shown(call, single(tmp_path, type, dims), "--input", f"x={spec}") == line


@each_row("type", ["f32", "f16", "bf16", "i64", "u8", "i4", "u1", "boolean", "f8e4m3"])
def test_random_values_are_the_same_for_the_same_seed(call: Call, tmp_path: Path, type: str) -> None:
    path = single(tmp_path, type, (50,))
    first, again, other = (call("run", path, "--json", "--input", f"x=rand:{seed}") for seed in (1, 1, 2))
    assert first.code == 0 and first == again != other


@each_row(("shape", "found"), [("3", "3"), ("2,2", None), ("0", "0"), ("[4]", "4")])
def test_an_open_shape_is_chosen_by_an_option(call: Call, tmp_path: Path, shape: str, found: str | None) -> None:
    called = call("run", single(tmp_path), "--input", "x=ones", "--shape", f"x={shape}")
    if found is None:
        assert called.code == 3 and "has shape [2,2], expected f32[?]" in called.err
    else:
        assert f"out  f32[{found}]" in called.out


def test_what_misses_its_inputs_names_the_file_of_them_beside_the_model(call: Call, tmp_path: Path) -> None:
    """The way that it says is taken as it is, and leads to a run."""
    path = single(tmp_path, "f32", (2,))
    assert "beside" not in call("run", path).err
    np.savez(path.with_suffix(".npz"), x=np.array([3, 4], np.float32), expected=np.array([3, 4], np.float32))
    assert "beside" not in call("run", path).err, "it has more than inputs, which --inputs refuses"
    np.savez(tmp_path / "inputs.npz", x=np.array([3, 4], np.float32))
    *_, last = call("run", path).err.splitlines()
    words = shlex.split(last.removeprefix("beside the model lies one: "))
    assert call("run", path, "--json", *words).code == 0


@each_row(
    ("words", "message"),
    [
        ([], "1 of the model's 1 inputs are missing:\n  x: f32[?]\ngive each with --input 'x=FILE.npy'"),
        (["--input", "y=1"], "the model has no input 'y'; its inputs are x: f32[?] (position 0)"),
        (["--input", "x"], "--input x: NAME=VALUE is expected, such as x=[1,2,3]"),
        (["--input", "=1"], "--input =1: NAME=VALUE is expected"),
        (["--input", "x=1", "--input", "x=2"], "--input gives 'x' twice"),
        (["--input", "x=[1]", "--input", "0=[2]"], "input '0' is given twice, by two of its names"),
        (["--input", "x=zeros"], "input 'x' has the open shape [?]: say which one with --shape 'x=...'"),
        (["--input", "x=rand", "--shape", "x=1"], "'rand:' has no seed; write for example rand:0"),
        (["--input", "x=rand:a", "--shape", "x=1"], "'rand:a' has no seed"),
        (["--input", f"x=rand:{2**64}", "--shape", "x=1"], f"'rand:{2**64}' is larger than {2**64 - 1}"),
        (["--input", "x=ones", "--shape", "x=a"], "--shape 'a' is not a list of sizes, such as 1,5,4"),
        (["--input", "x=ones", "--shape", "x=-1"], "--shape '-1' is not a list of sizes"),
        (["--input", "x=ones", "--shape", "y=1"], "the model has no input 'y'"),
        (["--input", "x=ones", "--shape", "x=1", "--shape", "0=2"], "input '0' is given twice"),
        (["--input", "x=ones", "--shape", f"x={10**12}"], "input 'x': a tensor of shape [1000000000000] takes"),
        (
            ["--input", "x=what"],
            "input 'x': 'what' is not a value; expected FILE.npy, FILE.npz:KEY, zeros, ones, rand:SEED",
        ),
        (["--input", "x=[1,"], "input 'x': '[1,' is not a JSON literal, such as [1,2,3]: it ends too early"),
        (["--input", "x=" + "[" * 9999], "nested too deeply"),
        (["--input", "x=[[1],[2,3]]"], "is not a tensor: element [1] has 2 elements, and element [0] has 1"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_code_2(
    call: Call, tmp_path: Path, words: list[str], message: str
) -> None:
    called = call("run", single(tmp_path), *words)
    assert called.code == 2 and called.err.startswith("stepper: ") and message in called.err


@each_row("spec", ["[1,2]", "1", "[1.5]", "[true]", "[]"])
def test_a_value_that_does_not_fit_is_refused_with_code_3(call: Call, tmp_path: Path, spec: str) -> None:
    called = call("run", single(tmp_path, "string", (3,)), "--input", f"x={spec}")
    assert called.code == 3 and called.err.startswith("stepper: input 'x' ")


def array_file(folder: Path, content: bytes) -> Path:
    path = folder / "bad.npy"
    path.write_bytes(content)
    return path


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


PICKLED = np.array([{"a": 1}], object)


@each_row(
    "content",
    [
        b"",
        b"\x93NUM",
        b"no array at all",
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}") + b"\0" * 7,
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': ("),
        header("{'descr': 'O', 'fortran_order': False, 'shape': (1,)}") + pickle.dumps(PICKLED),
        header("{'descr': 'nothing', 'fortran_order': False, 'shape': (1,)}"),
        header("__import__('os').system('true')"),
        b"\x93NUMPY\x02\x00" + (10**9).to_bytes(4, "little") + b"{",
        b"\x93NUMPY\x09\x00\x00\x00",
    ],
)
def test_a_file_that_is_no_array_is_refused_with_code_3(call: Call, tmp_path: Path, content: bytes) -> None:
    path = array_file(tmp_path, content)
    called = call("run", single(tmp_path), "--input", f"x={path}")
    assert called.code == 3 and called.err.startswith(f"stepper: {path}: cannot be read as .npy: ")
    assert called.err.count("\n") == 1


def damaged(path: Path, how: str) -> None:
    """An archive that something is wrong with."""
    np.savez_compressed(path, x=np.arange(1000, dtype=np.float32))
    content = bytearray(path.read_bytes())
    if how == "truncated":
        content = content[: len(content) // 2]
    elif how == "without its directory":
        content = content[:-30]
    elif how == "wrong bytes":
        content[len(content) // 2 : len(content) // 2 + 9] = b"\xff" * 9
    elif how == "empty":
        content = bytearray()
    elif how == "an array":
        content = bytearray(header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}") + b"\0" * 4)
    path.write_bytes(content)
    if how == "pickled":
        np.savez(path, x=PICKLED)  # type: ignore[arg-type]
    elif how == "huge":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}"))


@each_row("how", ["truncated", "without its directory", "wrong bytes", "empty", "an array", "pickled", "huge"])
def test_a_file_that_is_no_archive_is_refused_with_code_3(call: Call, tmp_path: Path, how: str) -> None:
    path = tmp_path / "bad.npz"
    damaged(path, how)
    for words in (("--inputs", path), ("--input", f"x={path}:x")):
        called = call("run", single(tmp_path), *words)
        assert called.code == 3 and called.err.startswith(f"stepper: {path}: cannot be read as .npz: ")
        assert called.err.count("\n") == 1


def test_files_that_are_not_there_are_named(call: Call, tmp_path: Path) -> None:
    path = single(tmp_path)
    for words in (("--input", "x=none.npy"), ("--inputs", "none.npz"), ("--input", "x=none.npz:a")):
        called = call("run", path, *words)
        assert called.code == 3 and ": cannot be read: there is no such file" in called.err
    np.savez(tmp_path / "some.npz", a=np.ones(1), b=np.ones(1))
    called = call("run", path, "--input", f"x={tmp_path / 'some.npz'}:c")
    assert called.code == 2 and called.err.endswith("some.npz has no array 'c'; it has a, b\n")


def test_an_archive_with_a_key_that_is_no_input_is_refused(call: Call, tmp_path: Path) -> None:
    np.savez(tmp_path / "more.npz", x=np.ones(1, np.float32), y=np.ones(1))
    called = call("run", single(tmp_path), "--inputs", tmp_path / "more.npz")
    assert called.code == 2 and "the model has no input 'y'" in called.err


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No numbers of an archive are read."""

    def read(*_given: object) -> None:
        raise AssertionError("numbers were read")

    monkeypatch.setattr(array_files, "_numbers", read)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    ("arrays", "words", "message"),
    [
        ({"a": np.ones(3), "y": np.ones(3)}, ("--inputs", "a.npz"), "the model has no input 'y'"),
        ({"b": np.ones(3)}, ("--inputs", "a.npz"), "1 of the model's 2 inputs are missing"),
        ({"a": np.ones(9), "b": np.ones(3)}, ("--inputs", "a.npz"), "input 'a' has shape [9], expected f32[3]"),
        ({"a": np.ones(3), "b": np.ones(9)}, ("--inputs", "a.npz"), "input 'b' has shape [9], expected f32[3]"),
        ({"a": np.ones(3), "b": np.array(["1", "2", "3"])}, ("--inputs", "a.npz"), "input 'b' is string, expected f32"),
        ({"k": np.ones(9)}, ("--input", "a=a.npz:k", "--input", "b=ones"), "input 'a' has shape [9], expected f32[3]"),
        ({"a": np.ones((9, 4))}, ("--calls", "a.npz", "--input", "b=ones"), "have the shape [9,4]"),
        ({"a": np.ones(10)}, ("--calls", "a=a.npz:a", "--input", "b=ones"), "not parts of 3 each"),
    ],
)
def test_what_does_not_fit_is_told_by_the_headers_of_an_archive(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    arrays: dict[str, np.ndarray], words: tuple[str, ...], message: str,
) -> None:  # fmt: skip
    net = Graph()
    net.result(net.apply("Add", net.parameter("a", dims=(3,)), net.parameter("b", dims=(3,))), "sum")
    path = net.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", **arrays)  # type: ignore[arg-type]
    called = call("run", path, *words)
    assert called.code in (2, 3) and message in called.err


def test_an_array_of_an_open_shape_is_read_up_to_a_limit(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_files, "MOST_READ", 1000)
    np.savez(tmp_path / "a.npz", x=np.ones(1000, np.float32))
    words = ("--inputs", tmp_path / "a.npz")
    assert call("run", single(tmp_path, dims=(1000,)), *words).code == 0, "it is as large as the model says"
    called = call("run", single(tmp_path), *words)
    assert called.code == 3 and "a.npz: 'x' takes 3.9 KB, more than the 1000 bytes that are read" in called.err


def member(content: bytes, name: str = "x.npy", method: int = zipfile.ZIP_STORED) -> tuple[zipfile.ZipInfo, bytes]:
    entry = zipfile.ZipInfo(name)
    entry.compress_type = method
    return entry, content


SOUND = header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}") + b"\0" * 4
LONG = header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}")[10:]


@each_row(
    ("members", "message"),
    [
        ([member(SOUND), member(SOUND, "x")], "it has two arrays 'x'"),
        ([member(SOUND, f"m{index}.npy") for index in range(10_001)], "it has 10,001 arrays, at most 10,000 are read"),
        ([member(SOUND, f"{index}{'m' * 60_000}.npy") for index in range(80)], "too much for 10,000 arrays"),
        ([member(b"\x93NUMPY\3\0" + len(LONG).to_bytes(4, "little") + LONG + bytes(4))], "a header of another version"),
        ([member(b"\x93NUMPY\2\0" + (2**28).to_bytes(4, "little") + bytes(2**20))], "its header takes 256 MB"),
        ([member(SOUND + b"\0")], "its header promises 69 bytes, it has 70 bytes"),
        ([member(SOUND, method=zipfile.ZIP_LZMA)], "compressed in a way that numpy never writes"),
    ],
    ids=["twice", "members", "names", "version", "header", "size", "lzma"],
)
def test_an_archive_that_numpy_would_not_write_is_refused(
    call: Call, tmp_path: Path, members: list[tuple[zipfile.ZipInfo, bytes]], message: str
) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for entry, content in members:
            archive.writestr(entry, content)
    called = call("run", single(tmp_path), "--inputs", tmp_path / "a.npz")
    assert called.code == 3 and called.err.startswith(f"stepper: {tmp_path / 'a.npz'}: cannot be read as .npz: ")
    assert message in called.err and called.err.count("\n") == 1


def test_arrays_of_every_order_and_version_are_read_as_numpy_reads_them(tmp_path: Path) -> None:
    values = np.arange(6, dtype=">i2").reshape(2, 3)
    np.savez_compressed(tmp_path / "a.npz", rows=values, columns=np.asfortranarray(values), none=values[:0])
    with np.load(tmp_path / "a.npz") as expected:
        for key, stored in array_files.read_archive(tmp_path / "a.npz").items():
            np.testing.assert_array_equal(np.asarray(stored), expected[key], strict=True)
