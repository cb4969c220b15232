"""Seeded damage to archives of arrays, which every reader of inputs is then given: `outcome(seed)`."""

from __future__ import annotations

import io
import random
import resource
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import stepper
from stepper.cli.call_options import _Given
from stepper.compare.references.recorded import ArchiveReference
from stepper.engine.array_files import read_archive
from stepper.engine.inputs import bind_inputs, bind_states, value_of
from stepper.engine.run import over_calls
from stepper.errors import StepperError
from stepper.session.input_choices import near_files
from stepper.sweep.sweep_inputs import FileInput, InputReader, files_inputs
from tests.models import Graph
from tests.mutation.examine import LONGEST_MESSAGE, Outcome

MOST_MORE = 300 * 2**10
"""KB that reading an archive may add to the process: one array at its limit is not made here."""
HEADERS = ("{'descr': %r, 'fortran_order': %s, 'shape': %s, }", "{'shape': %3$s}", "%r %s %s", "")
TYPES = (
    *("<f4", "<f8", ">f4", "|O", "|b1", "<i8", "<U3", "<U0", "|S4", "|V2147483647", "<M8[s]", "<c16", "nothing", ""),
    *([("u3", "|u1")], [("a", "<f4", (2,))], ("<f4", (3,)), [("", "<f4")], {"names": ["a"]}, 7, None),
)
SHAPES = (
    *("(3,)", "()", "(1,)", "(0,)", "(3, 1)", "(-1,)", "(True,)", "(3.0,)", "(10**9,)", "(750000000,)", "3", "[3]"),
    *(
        f"({2**63},)",
        f"({2**62}, 0)",
        f"({2**40}, {2**40})",
        "(" + "1, " * 70 + ")",
        "(1" * 300,
        "-" * 3000 + "1",
        "'\\d'",
    ),
)
NAMES = (
    "x",
    "x.npy",
    "n",
    "in_0",
    "arr_0",
    "\x1b[31m",
    "a\nb",
    "‮x",
    "../x",
    "/x",
    "x/",
    "",
    "h@3",
    "tr:loop|x|0",
    "k" * 9000,
)
SIZES = (0, 1, 3, 4, 12, 2**16 - 1, 2**31, 2**32 - 1)


@cache
def _model() -> stepper.Model:
    net = Graph()
    x, n = net.parameter("x", dims=(3,)), net.parameter("n", "i64", ())
    y = net.parameter("y", dims=(-1,))
    net.result(net.apply("Add", x, x), "twice")
    net.result(n, "count")
    net.result(y, "open")
    with tempfile.TemporaryDirectory() as folder:
        return stepper.read_model(net.write(Path(folder)))


def _array(chance: random.Random, name: str) -> bytes:
    """An array that the model takes for this input, mostly."""
    arrays = {"x": np.ones(3, np.float32), "n": np.array(4), "y": np.arange(40.0)}
    other = chance.choice(list(arrays.values()))
    file = io.BytesIO()
    np.lib.format.write_array(file, other if chance.random() < 0.1 else arrays.get(name[:1], other))
    return file.getvalue()


def _header(chance: random.Random) -> bytes:
    """An array whose header says anything, with as many bytes behind it as may be."""
    text = chance.choice(HEADERS).replace("%3$s", "%s")
    parts = (chance.choice(TYPES), chance.choice((False, False, True, None)), chance.choice(SHAPES))
    content = (text % parts[-text.count("%") :] if "%" in text else text).encode()
    version = chance.choice(((1, 0), (1, 0), (2, 0), (3, 0), (9, 9)))
    size = len(content) if chance.random() < 0.8 else chance.choice(SIZES)
    width = 2 if version == (1, 0) else 4
    length = min(size, 256**width - 1).to_bytes(width, "little")
    return b"\x93NUMPY" + bytes(version) + length + content + bytes(chance.choice((0, 4, 12, 24, 5000, 10**6)))


def _zipped(chance: random.Random) -> bytes:
    names = ["x.npy", "n.npy", "y.npy"]
    names += [f"{chance.choice(NAMES)}{chance.choice(('.npy', ''))}" for _ in range(chance.choice((0, 0, 0, 1, 3)))]
    damage = chance.choice((0.0, 0.2, 0.5))
    if chance.random() < 0.005:
        names += [f"m{index}.npy" for index in range(chance.choice((100, 10_001)))]
    chance.shuffle(names)
    file = io.BytesIO()
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore")
        for name in names:
            method = chance.choices(methods, (20, 20, 1, 1))[0]
            content = _header(chance) if chance.random() < damage else _array(chance, name)
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def damaged(seed: int) -> bytes:
    """The archive of a seed: of any members, and maybe with other bytes in its own fields."""
    chance = random.Random(seed)
    content = bytearray(_zipped(chance))
    for _ in range(chance.choice((0, 0, 1, 2, 5))):
        if not content:
            break
        records = [at for mark in (b"PK\1\2", b"PK\3\4", b"PK\5\6") if (at := content.rfind(mark)) >= 0]
        at = chance.choice((chance.randrange(len(content)), chance.choice(records or [0]) + chance.randrange(46)))
        value = chance.choice((chance.randbytes(1), *(size.to_bytes(4, "little") for size in SIZES)))
        content[at : at + len(value)] = value
    if chance.random() < 0.1:
        del content[chance.randrange(len(content) + 1) :]
    return bytes(content)


def _readers(path: Path) -> list[Callable[[], object]]:
    model = _model()
    compiled = stepper.compile_model(model)

    def called() -> object:
        given = _Given(model, some=True)
        given.add(str(path))
        return over_calls(model, given.parts(), {}, None)

    def referred() -> object:
        return ArchiveReference(path, compiled).outputs()

    def swept() -> object:
        return InputReader(str(path.parent)).read(FileInput(path.name), model)

    def sliced() -> object:
        return InputReader("", fixed={1: 1}).read(files_inputs([str(path)], leading_axis=True)[0], model)

    return [
        lambda: bind_inputs(model, read_archive(path)),  # type: ignore[arg-type]
        lambda: bind_states(compiled, read_archive(path)),
        *(lambda key=key: np.asarray(value_of(model.graph.parameters[0], f"{path}:{key}")) for key in ("x", "k")),
        *(called, referred, swept, sliced),
        lambda: [near_files(parameter, str(path), path.parent) for parameter in model.graph.parameters],
    ]


def outcome(seed: int) -> Outcome:
    """Give the archive of this seed to every reader; StepperErrors of one line are right, all else is a fault."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.npz"
        path.write_bytes(damaged(seed))
        found = [_read(read) for read in _readers(path)]
    return next((one for one in found if one.is_fault), found[0])


def _read(read: Callable[[], object]) -> Outcome:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            read()
            found = Outcome("ran")
        except StepperError as error:
            text = str(error)
            found = Outcome("refused" if len(text) <= LONGEST_MESSAGE else "message", text)
        except Exception:
            found = Outcome("traceback", traceback.format_exc())
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if more > MOST_MORE:
        return Outcome("memory", f"{more // 1024} MB more; {found.kind}: {found.text}")
    return Outcome("warning", str(caught[0].message)) if caught and not found.is_fault else found
