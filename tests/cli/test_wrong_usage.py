"""Wrong usages: one line on stderr that says what is wrong, what is near, what to type; nothing on stdout."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import ROOT, Call, ended, program

SAMPLE = ROOT / "sample_models" / "for_loop"
GIVEN = "--inputs inputs.npz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with two inputs of f32[3], its inputs, a recording, a script and other files."""
    folder = tmp_path_factory.mktemp("usage")
    for name in ("model.xml", "model.bin", "inputs.npz"):
        shutil.copy(SAMPLE / name, folder / name)
    shutil.copy(ROOT / "sample_models" / "nested_loop" / "model.xml", folder / "nested.xml")
    shutil.copy(ROOT / "sample_models" / "nested_loop" / "model.bin", folder / "nested.bin")
    np.save(folder / "rate.npy", np.ones(3, np.float32))
    (folder / "script.txt").write_text("step\nsteq\n")
    (folder / "broken.json").write_text('{"a": "b"')
    (folder / "keys.toml").write_text("preset = vim\n")
    (folder / "utf16.txt").write_bytes("step\n".encode("utf-16"))
    return folder


CASES = [
    # the first word
    ("", 2, "name a model, or a command: stepper MODEL, stepper run MODEL; stepper --help lists them all"),
    ("rnu model.xml", 2, "there is no command 'rnu'; near is run"),
    ("compaer model.xml", 2, "there is no command 'compaer'; near are compare, completion"),
    ("Inspect model.xml", 2, "there is no command 'Inspect'; near is inspect"),
    ("modle", 2, "there is no command 'modle'; near is model.xml"),
    ("whatever", 2, "there is no command 'whatever'; there are run, debug, dap, inspect, lint, check, why, compare, "),
    ("inputs.npz", 2, "'inputs.npz' is neither a command nor a model by its name (.xml, .onnx, .pb, "),
    ("modle.xml", 3, "modle.xml: cannot be read: there is no such file; near is model.xml"),
    ("none/model.xml", 3, "none/model.xml: cannot be read: there is no folder 'none'"),
    ("--inputs inputs.npz model.xml", 2, "--inputs stands behind the model: stepper model.xml --inputs inputs.npz"),
    ("--json run model.xml", 2, "--json stands behind the command: stepper run model.xml --json"),
    ("--brake nan", 2, "--brake stands behind a command or a model: stepper run MODEL --brake"),
    # options
    ("--versoin", 2, "there is no option --versoin; near is --version"),
    (
        f"run model.xml {GIVEN} --break NaN",
        2,
        "there is nothing called 'NaN'; none of 20 names looks like it; among the words of break near is nan",
    ),
    (
        f"run model.xml {GIVEN} --break grwo>3",
        2,
        "there is nothing called 'grwo>3'; none of 20 names looks like it; among the words of break near is grow",
    ),
    ("run model.xml --brake nan", 2, "run has no option --brake; near are --break, --trace"),
    ("run model.xml --max_iterations 3", 2, "run has no option --max_iterations; near is --max-iterations"),
    ("inspect model.xml --inputs inputs.npz", 2, "inspect has no option --inputs; that is an option of run, debug, "),
    ("run model.xml -x", 2, "run has no option -x; stepper run --help says more"),
    ("print run.sqlite h --cvs", 2, "print has no option --cvs; near is --csv"),
    ("run model.xml --in x=1", 2, "ambiguous option: --in could match --input, --inputs; stepper run --help says more"),
    ("run model.xml --input", 2, "--input needs a value: --input NAME=SPEC"),
    ("run model.xml -o", 2, "--outputs/-o needs a value: --outputs FILE.npz"),
    ("run model.xml --quiet=yes", 2, "-q/--quiet takes no value"),
    ("run model.xml other.xml", 2, "nothing is expected at 'other.xml': stepper run [MODEL] [options]"),
    ("print", 2, "TRACE, ADDR are missing: stepper print TRACE ADDR [ADDR ...] [options]; stepper print --help"),
    ("inspect", 2, "MODEL is missing: stepper inspect MODEL [NAME ...] [options]; stepper inspect --help says more"),
    ("run", 2, "name a MODEL to run, or a recording to continue: --resume FILE"),
    # words behind options
    ("run model.xml --rules opnvino", 2, "--rules: 'opnvino' is none of spec and openvino; near is openvino"),
    ("run model.xml --record al", 2, "--record: 'al' is none of all, carried, stats and none; near is all"),
    (
        "export model.xml --view roled",
        2,
        "--view: 'roled' is none of model, rolled, unrolled, ports and story; near are ",
    ),
    ("export model.xml --as jpg", 2, "--as: 'jpg' is none of svg, html, png, pdf, tikz, dot, mermaid, md, json, csv "),
    ("check model.xml --as f8", 2, "--as: 'f8' is none of f16, bf16 and i8-weights"),
    ("check model.xml --loss 0.1", 2, "--loss is for --as: --as f16 --loss 0.1"),
    ("check model.xml --as i8-weights --keep-in-f32 k.xml", 2, "--keep-in-f32 marks operations for f16 and bf16; "),
    (f"check model.xml {GIVEN} --as f16 --keep-in-f32 k.bin", 2, "--keep-in-f32 k.bin: the name of a model ends in .x"),
    ("dap model.xml --port 70000", 2, "--port: '70000' is not a port; write a number from 0 to 65535"),
    ("dap model.xml --prot 1", 2, "dap has no option --prot; near are --port, --"),
    ("help key", 2, "there is no topic 'key'; near is keys"),
    ("help adresses", 2, "there is no topic 'adresses'; near are addresses, passes"),
    ("help xyzzy", 2, "there is no topic 'xyzzy'; stepper help lists them"),
    ("help run --keys vim", 2, "--keys is for stepper help keys"),
    ("find run.sqlite nan frist", 2, "which: 'frist' is none of first, last and all; near is first"),
    ("run model.xml --max-iterations 0", 2, "--max-iterations: '0' is not a positive integer"),
    ("run model.xml --max-iterations many", 2, "--max-iterations: 'many' is not a positive integer"),
    (
        "run model.xml --largest-tensor much",
        2,
        "--largest-tensor: 'much' is not a size; write for example 512MB or 2GB",
    ),
    ("compare model.xml --rtol -1", 2, "--rtol: '-1' is not a tolerance; write for example 1e-4"),
    ("hunt", 2, "-o/--output is missing"),
    ("hunt -o cases --profile all", 2, "--profile"),
    ("hunt -o cases --seed abc", 2, "--seed: 'abc' is not a seed; write a number from 0 to"),
    ("hunt -o cases --seed 1000000000 --profile all", 2, "--profile"),
    ("check model.xml --loss abc", 2, "--loss: 'abc' is not a tolerance; write for example 1e-4"),
    (
        "hunt --fault dangling-result",
        2,
        "--fault dangling-result: no known fault of the runtime; did you mean dangling-results?",
    ),
    ("reduce model.xml", 2, "-o/--output is missing"),
    ("reduce model.xml -o small --error --break nan", 2, "expected one of --break, --error and --differs"),
    ("passes model.xml --rtol x", 2, "--rtol: 'x' is not a tolerance; write for example 1e-4"),
    ("export model.xml --depth -1", 2, "--depth: '-1' is not a number of levels"),
    # inputs
    (f"run model.xml {GIVEN} --input rat=1", 2, "the model has no input 'rat'; near is rate; its inputs are "),
    (f"run model.xml {GIVEN} --input rate", 2, "--input rate: NAME=VALUE is expected, such as x=[1,2,3] or x=x.npy"),
    (f"run model.xml {GIVEN} --input rate=[1,2", 2, "input 'rate': '[1,2' is not a JSON literal, such as [1,2,3]: it "),
    (
        f"run model.xml {GIVEN} --input rate=[1;2;3]",
        2,
        "input 'rate': '[1;2;3]' is not a JSON literal, such as [1,2,3]: ';2;3]' at character 3 is not expected there",
    ),
    (
        f"run model.xml {GIVEN} --input rate=[[1,2],[3]]",
        2,
        "input 'rate': '[[1,2],[3]]' is not a tensor: element [1] has 1 element, and element [0] has 2",
    ),
    (
        f"run model.xml {GIVEN} --input rate=[1,[2],3]",
        2,
        "input 'rate': '[1,[2],3]' is not a tensor: element [1] is a list",
    ),
    (
        f"run model.xml {GIVEN} --input rate=[[1],2,3]",
        2,
        "input 'rate': '[[1],2,3]' is not a tensor: element [1] is a ",
    ),
    (
        f'run model.xml {GIVEN} --input rate=[1,"a",2]',
        2,
        "input 'rate': '[1,\"a\",2]' is not a tensor: element [1] is a text",
    ),
    (
        f"run model.xml {GIVEN} --input rate=[1,null,2]",
        2,
        "input 'rate': '[1,null,2]' is not a tensor: element [1] is null",
    ),
    (
        f"run model.xml {GIVEN} --input rate=[1,2,1e400]",
        2,
        "input 'rate': '[1,2,1e400]' has the number 1e400, which is "
        "larger than f64 holds; write Infinity if that is meant",
    ),
    (
        f"run model.xml {GIVEN} --input rate=[1,2,1e39]",
        2,
        "input 'rate': 1e+39 is larger than f32 holds; write Infinity",
    ),
    (f"run model.xml {GIVEN} --input rate=[1,2]", 3, "input 'rate' has shape [2], expected f32[3]"),
    (
        f"run model.xml {GIVEN} --input rate=ons",
        2,
        "input 'rate': 'ons' is not a value; expected FILE.npy, FILE.npz:KEY, ",
    ),
    (f"run model.xml {GIVEN} --input rate=rand", 2, "input 'rate': 'rand:' has no seed; write for example rand:0"),
    (
        f"run model.xml {GIVEN} --input rate=rat.npy",
        3,
        "rat.npy: cannot be read: there is no such file; near is rate.npy",
    ),
    (f"run model.xml {GIVEN} --input rate=inputs.npz:rat", 2, "inputs.npz has no array 'rat'; near is rate; it has "),
    ("run model.xml --inputs input.npz", 3, "input.npz: cannot be read: there is no such file; near is inputs.npz"),
    ("run model.xml --inputs rate.npy", 3, "rate.npy: cannot be read as .npz: it is not an archive of arrays"),
    (
        f"run model.xml {GIVEN} --shape rate=4",
        2,
        "--shape rate=4: input 'rate' is given, with the shape [3]; --shape is",
    ),
    (f"run model.xml {GIVEN} --shape rate=a,b", 2, "--shape 'a,b' is not a list of sizes, such as 1,5,4"),
    # names and words
    (
        f"compare model.xml {GIVEN} --with model.xml --tolerance f33=1",
        2,
        "--tolerance f33: there is no element type, type of operation",
    ),
    (
        f"debug model.xml {GIVEN} --reference opnvino",
        2,
        "--reference opnvino: cannot be read: there is no such file; near",
    ),
    (f"run model.xml {GIVEN} --trace new --record-iters 5:1", 2, "'5:1' has no iterations: it ends before it begins"),
    # files
    (
        "run inputs.npz",
        3,
        "inputs.npz: is not a model, it is an archive, such as .npz: values for inputs are given with ",
    ),
    ("run model.bin", 3, "model.bin: is a .bin file; name the .xml beside it"),
    ("run /", 3, "/: is a folder without model.xml, so no case"),
    ("print runs.sqlite h", 3, "runs.sqlite: there is no such file"),
    (
        "find model.xml nan",
        3,
        "model.xml: is not a recording of a run (it is not an SQLite database); stepper run MODEL --trace ",
    ),
    (
        "run --resume model.xml",
        3,
        "model.xml: is not a recording of a run (it is not an SQLite database); stepper run MODEL",
    ),
    (
        f"compare model.xml {GIVEN} --with model2.xml",
        3,
        "model2.xml: cannot be read: there is no such file; near is model",
    ),
    (f"compare model.xml {GIVEN} --with opnvino", 2, "--with opnvino: cannot be read: there is no such file; near is "),
    (
        f"compare model.xml {GIVEN} --with model.xml --align broken.json",
        3,
        "broken.json: is not valid JSON: it ends too early",
    ),
    (
        f"compare model.xml {GIVEN} --with rat.npz",
        3,
        "rat.npz: cannot be read: there is no such file",
    ),
    (
        f"debug model.xml {GIVEN} --script scrip.txt",
        2,
        "scrip.txt: cannot be read: there is no such file; near is script",
    ),
    (f"debug model.xml {GIVEN} --script utf16.txt", 2, "utf16.txt: cannot be read: it is not text in UTF-8"),
    (f"export model.xml {GIVEN} -o figure.xyz", 2, "-o figure.xyz: .xyz names no format; there are .svg, .html, "),
    ("export model.xml --view rolled --loop year", 2, "no loop is called 'year'; near is years; there is 'years'"),
    (
        "export nested.xml --view rolled --loop pass",
        2,
        "no loop is called 'pass'; near is passes; there are 'passes', ",
    ),
    # sweeps
    ("sweep model.xml", 2, "one of --inputs 'set/*.npz', --random N or --generate PKG.MODULE:FUNCTION is needed: none"),
    ("sweep model.xml --inputs nothing/*.npz", 2, "--inputs nothing/*.npz: there is no .npz and no case there"),
    ("sweep model.xml --random 2 --inputs inputs.npz", 2, "one of --inputs 'set/*.npz', --random N or --generate "),
    ("sweep model.xml --random 2 --check --with openvino", 2, "--check and --with: a sweep looks for one thing; "),
    ("sweep model.xml --random 2 --break nna", 2, "there is nothing called 'nna'; "),
    (
        "sweep model.xml --random 2 --with inputs.npz",
        2,
        "--with inputs.npz: expected another model, or one of openvino",
    ),
    ("sweep model.xml --random 2 --on localhost", 2, "--on localhost: expected dask://HOST:PORT, the address of a "),
    ("sweep model.xml --random 2 --input *=ones", 2, "--input '*=...' gives all runs the same values; --random N "),
    ("sweep model.xml --generate os.path --count 3", 2, "--generate os.path: expected pkg.module:function, which "),
    (
        "sweep model.xml --generate no_such_module_x:one --count 3",
        2,
        "--generate no_such_module_x:one: no_such_module_x ",
    ),
    ("sweep model.xml --random 2 --out inputs.npz", 2, "--out inputs.npz: "),
    (
        "sweep model.xml --random 2 --open 3",
        2,
        "--open is for the file of a sweep: stepper sweep sweep.sqlite --open 17",
    ),
    ("sweep nothing.sqlite", 3, "nothing.sqlite: cannot be read: there is no such file"),
    ("sweep inputs.npz", 3, "inputs.npz: is not a model, it is an archive"),
    # together
    (f"run model.xml {GIVEN} --json -o -", 2, "--json and --outputs - both write to stdout; choose a file for the "),
    (f"run model.xml {GIVEN} --record all", 2, "--record selects what is recorded; it needs --trace FILE"),
    (f"run model.xml {GIVEN} --device CPU", 2, "--device is for OpenVINO; give it operations with --engine or "),
    (f"run model.xml {GIVEN} --engine-for MatMul", 2, "--engine-for 'MatMul' is not PATTERN=ENGINE, such as MatMul="),
    (
        f"run model.xml {GIVEN} --largest-tensor 10",
        4,
        "model > Loop 'years' #0: a tensor of shape [12] takes 12 bytes, the limit is 10 bytes",
    ),
]


@pytest.mark.parametrize(("words", "code", "line"), CASES, ids=[words or "nothing" for words, _code, _line in CASES])
def test_a_wrong_usage_is_one_line_that_helps(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: int, line: str
) -> None:
    monkeypatch.chdir(folder)
    called = call(*words.split())
    assert called.err.startswith(f"stepper: {line}"), called.err
    assert called.err.count("\n") == 1 and "usage:" not in called.err
    assert called.code == code
    assert called.out == "" if "--json" not in words.split() else json.loads(called.out)["error"]["exit_code"] == code


def test_an_empty_word_is_said_to_be_one(call: Call) -> None:
    sentence = "stepper: the word behind --inputs is empty; is a variable of the shell not set?\n"
    assert call("run", "model.xml", "--inputs", "") == (2, "", sentence)


def test_there_are_sixty_of_them() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_errors_of_commands_from_a_pipe_have_their_lines_and_the_first_one_is_the_code(
    folder: Path, words: tuple[str, ...]
) -> None:
    process = program("debug", "model.xml", "--inputs", "inputs.npz", *words, stdin=-1, cwd=folder)
    assert process.stdin is not None
    process.stdin.write(b"step\n\nsteq\nprint nothing_so\nsession load model.xml\nstep\n")
    process.stdin.close()
    process.stdin = None
    called = ended(process)
    assert called.code == 2 and "tick 3" in called.out  # it goes on behind them
    if words:
        assert all(f'"input_line": {line}' in called.out for line in (3, 4, 5))
    else:
        lines = called.err.splitlines()
        assert lines[0] == "line 3: there is no command 'steq'; near is step"
        assert lines[1].startswith("line 4: there is nothing called 'nothing_so'")
        assert lines[-1].startswith("line 5: model.xml: is not a recording of a run")


def test_a_script_from_a_pipe_ends_at_its_first_error(folder: Path) -> None:
    process = program("debug", "model.xml", "--inputs", "inputs.npz", "--script", "-", stdin=-1, cwd=folder)
    assert process.stdin is not None
    process.stdin.write(b"step\nsteq\nstep\n")
    process.stdin.close()
    process.stdin = None
    called = ended(process)
    assert called.code == 2 and "tick 2" not in called.out
    assert called.err == "stepper: stdin, line 2: there is no command 'steq'; near is step\n"


def test_info_alone_lists_what_there_is_information_about(folder: Path) -> None:
    process = program("debug", "model.xml", "--inputs", "inputs.npz", stdin=-1, cwd=folder)
    assert process.stdin is not None
    process.stdin.write(b"info\n")
    process.stdin.close()
    process.stdin = None
    called = ended(process)
    assert called.code == 0 and "info breaks" in called.out and "info trip" in called.out
