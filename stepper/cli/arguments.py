"""Define options that several commands share, and parse numbers, sizes and tolerances.

If the model is a case, its files fill the options that name no other files.
"""

from __future__ import annotations

import argparse
import re
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from stepper.argument_checks import LARGEST_SEED
from stepper.cli.usage import Option, choice, flag, group, option, repeated
from stepper.errors import InputError
from stepper.files.file_kinds import CASE_MODEL, is_case
from stepper.files.recognition import model_folder
from stepper.terminal import say

if TYPE_CHECKING:
    from stepper.cases.case import Case


T = TypeVar("T", int, float)


def _number(read: Callable[[str], T], fits: Callable[[T], bool], what: str) -> Callable[[str], T]:
    """Return the type of an option that is a number within bounds."""

    def number(text: str) -> T:
        try:
            value = read(text)
        except ValueError:
            pass
        else:
            if fits(value):
                return value
        raise argparse.ArgumentTypeError(f"'{text}' is not {what}")

    return number


def _digits(text: str) -> int:
    if not re.fullmatch("[0-9]{1,40}", text):
        raise ValueError
    return int(text)


count: Final = _number(_digits, lambda value: value < 10**9, "a number of levels")
positive: Final = _number(_digits, lambda value: 0 < value < 10**18, "a positive integer")
seed: Final = _number(_digits, lambda value: value <= LARGEST_SEED, f"a seed; write a number from 0 to {LARGEST_SEED}")
port: Final = _number(_digits, lambda value: value <= 65535, "a port; write a number from 0 to 65535")
scale: Final = _number(float, lambda value: 0 < value <= 100, "a scale; write for example 2 (at most 100)")
pace: Final = _number(float, lambda value: 0.1 <= value <= 60, "a pace; write seconds from 0.1 to 60")
tolerance: Final = _number(float, lambda value: 0 <= value < float("inf"), "a tolerance; write for example 1e-4")
seconds: Final = _number(float, lambda value: 0 < value < 1e6, "a number of seconds; write for example 60")


def page_width(text: str) -> int:
    """Return a width in pixels: a number of them, or such as `84mm`, `8.4cm` or `3.3in`."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(px|mm|cm|in)?", text)
    pixels = {"mm": 96 / 25.4, "cm": 960 / 25.4, "in": 96.0}
    width = 0 if match is None else round(float(match[1]) * pixels.get(match[2], 1.0))
    if not width:
        raise argparse.ArgumentTypeError(f"'{text}' is not a width; write pixels, or for example 84mm")
    return width


def size(text: str) -> int:
    """Return a number of bytes, written such as 512MB."""
    match = re.fullmatch(r"([0-9]{1,12})\s*([KMGT]?)B?", text.strip().upper())
    if match is None or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write for example 512MB or 2GB")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2]]


# --- options ---------------------------------------------------------------------------------------------------------

MODEL_HELP = (
    "the .xml of an OpenVINO IR with its .bin beside it, a file that OpenVINO converts (.onnx, .pb, .tflite, "
    ".pdmodel), or a case: a folder with model.xml and its inputs"
)
_SPECS = "FILE.npy, FILE.npz:KEY, zeros, ones, rand:SEED, or a JSON literal such as [1,2,3]"
MODEL = option("model", "MODEL", MODEL_HELP)
"""The model to open."""

TRACE = option("trace", "TRACE", "a file of stepper run --trace")
"""A recording to read."""

INPUTS = group(
    repeated(
        "--input",
        "NAME=SPEC",
        f"a value for an input, by name, tensor name or position (* for all missing ones); SPEC: {_SPECS}",
    ),
    option("--inputs", "FILE.npz", "values for inputs; a key is a name, tensor name or position"),
    repeated(
        "--shape",
        "NAME=1,5,4",
        "the shape of zeros, ones and rand for an input with an open shape; also for the conversion, if "
        "the model cannot be converted with open shapes",
    ),
)
"""Values for the model's inputs, and the shapes of those that are filled."""

CALLS = group(
    repeated(
        "--calls",
        "SPEC",
        "call the model many times, as the outermost loop. SPEC is a number of calls, FILE.npz (a leading axis of "
        "calls), a folder or pattern of .npz (a file per call), or INPUT=SPEC[:axisN[:LENGTH]]",
    ),
    repeated("--carry", "OUTPUT=INPUT", "feed this output into this input of the next call"),
)
"""Many calls of the model, which become the outermost loop."""

STATES = group(
    repeated(
        "--state",
        "NAME=SPEC",
        f"the first value of a variable (ReadValue, Assign; * for all others); SPEC: {_SPECS}",
    ),
    option("--states", "FILE.npz", "the first values of variables by name, from --save-states of an earlier run"),
)
"""Values for the model's variables (ReadValue, Assign), as an earlier run left them."""

GIVEN = group(INPUTS, CALLS, STATES)
"""All that a run is given."""

DEVICE = group(
    option("--device", "NAME", "the device of OpenVINO: CPU (default), GPU.0, AUTO, ..."),
    choice("--precision", ("f32", "f16", "bf16"), "the precision of OpenVINO (f32)"),
    option(
        "--timeout",
        "SECONDS",
        "time limit of each step of OpenVINO or an evaluator of ONNX (600)",
        type=seconds,
    ),
)
"""OpenVINO's device and precision, and how long it may take."""

RUNTIME = group(DEVICE, repeated("--extension", "LIB", "a library with operations for OpenVINO"))
"""How OpenVINO is asked, where it computes."""

ENGINE = group(
    choice(
        "--engine",
        ("numpy", "openvino", "numpy-f16", "numpy-bf16"),
        "what computes the operations: numpy (default; OpenVINO for those without a kernel), OpenVINO, or "
        "numpy with every float rounded to f16 or bf16",
        default="numpy",
    ),
    repeated(
        "--engine-for",
        "PATTERN=ENGINE",
        "another engine for the operations of a type, or of names such as 'decoder/*'",
    ),
    RUNTIME,
)
"""Who computes the operations: numpy, OpenVINO, or a mixture."""

LOGS = group(
    option("--sarif", "FILE", "also write the findings as SARIF 2.1.0"),
    option("--junit", "FILE.xml", "also write the findings as JUnit XML"),
)
"""Files for findings, in the forms that code hosts and servers of CI read."""

KEYS = option(
    "--keys",
    "PRESET|FILE",
    "default, vscode, vim, emacs, or a .toml file (by default keys.toml in the configuration folder)",
)
"""The keys of the application."""

JSON = flag("--json", "report as JSON on stdout")
"""A report for programs."""

QUIET = flag("-q --quiet", "no progress on stderr")


def rules(default: str | None = "spec") -> Option:
    """Return the options for the rule book, the iteration limit and the tensor limit.

    With `default` None the rule book of the session applies, if there is a session.
    """
    return group(
        choice(
            "--rules",
            ("spec", "openvino"),
            "spec: the specification (default); openvino: its CPU plugin, where it departs from the specification",
            default=default,
        ),
        option("--max-iterations", "N", "stop with exit code 4 if a loop needs more iterations", type=positive),
        option(
            "--largest-tensor", "SIZE", "limit of the tensors that one operation makes, such as 2GB (200MB)", type=size
        ),
    )


def open_sequences(why: str) -> Option:
    """Return whether sequence operations are opened as loops, and why here."""
    return flag(
        "--open-sequences",
        f"run each LSTMSequence, GRUSequence and RNNSequence as a TensorIterator over its cell: {why}",
    )


def session(session: str, start_up: str) -> Option:
    """Return where a session is kept, and whether the start-up file is carried out, both in words of the command."""
    return group(
        flag("--no-init", start_up),
        option("--session", "FILE", session),
        flag("--fresh", "start without the last session"),
        flag("--trust-session", "allow the commands of the breakpoints in FILE"),
        flag("--no-keep", "neither restore nor keep a session"),
    )


def tolerances(relative: str | None = None, absolute: str | None = None) -> Option:
    """Return tolerances of floats; without defaults they are those of the element type."""

    def one(name: str, word: str, default: str | None) -> Option:
        ending = ", instead of the type's own" if default is None else f" of floats ({default})"
        return option(name, "X", f"{word} tolerance{ending}", type=tolerance, default=default)

    return group(one("--rtol", "relative", relative), one("--atol", "absolute", absolute))


RULES = rules()
DEBUGGING = group(
    rules(default=None),
    option("--memory", "SIZE", "memory limit of the history for going back (256MB)", type=size),
    ENGINE,
    open_sequences("lets you step through them"),
)
"""Options that open a debugger: rules, history, backend."""


_MOST_LISTED = 10
_ALONE = ["1"]
"""Words of --calls that have the last call of a case run, without those before it."""


def put_case(options: Namespace) -> None:
    """Put the files of a case in the place of the folder that was named as the model, and of what was not named.

    Raises what reading a case raises, and InputError for a case without a model.
    """
    words, reference = getattr(options, "models", None), getattr(options, "reference", None)
    if isinstance(words, list):
        options.models = [_named(one, options) for one in words]
    if isinstance(reference, str):
        options.reference = _named(reference, options)
    word = getattr(options, "model", None)
    if not isinstance(word, str):
        return
    if not is_case(word):
        options.model = _named(word, options)
        return
    case = options.case = _read(word)
    options.model = _model_of(word)
    inputs, states, outputs = case.inputs, case.states, case.outputs
    if _opens_as_loop(case, options):
        if not options.carry and case.facts is not None:
            options.carry = list(case.facts.carried)
        inputs, states, outputs = None, case.calls_states, case.calls_outputs
    for name, path in (("inputs", inputs), ("states", states)):
        if getattr(options, name, "") is None and path is not None:
            setattr(options, name, str(path))
    if options.command == "compare" and options.reference is None and outputs is not None:
        options.reference = str(outputs)
        options.reference_precision = None if case.facts is None else case.facts.precision


def _opens_as_loop(case: Case, options: Namespace) -> bool:
    """Have the calls of a case made, where it has some and nothing else is asked for."""
    asked = getattr(options, "calls", None)
    if case.calls is None or asked not in ([], _ALONE):
        return False
    options.calls = [str(case.calls)] if asked == [] else []  # alone, not as a loop of one
    return bool(options.calls)


def _read(word: str) -> Case:
    from stepper.cases.case import read_case  # few commands are given one

    return read_case(Path(word))


def _named(word: str, options: Namespace) -> str:
    """Return the file of the model that a word means, which may be a case or a folder with models."""
    if is_case(word):
        return _model_of(word)
    found = model_folder(Path(word))
    if found is None or found.model is None:
        return word
    if found.others and not getattr(options, "quiet", False):
        beside = f"; there {'is' if len(found.others) == 1 else 'are'} also {', '.join(found.others[:_MOST_LISTED])}"
        say(f"stepper: {word}: opens {found.model.name}{beside}", file=sys.stderr)
    return str(found.model)


def _model_of(word: str) -> str:
    case = _read(word)
    if case.model is None:
        trouble = "" if case.facts is None or not case.facts.trouble else f": {case.facts.trouble[0]}"
        raise InputError(f"{case.folder} has no {CASE_MODEL}{trouble}")
    return str(case.model)
