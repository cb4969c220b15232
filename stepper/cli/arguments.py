"""Options that several commands share, and what the words behind options mean: numbers, sizes, tolerances."""

from __future__ import annotations

import argparse
import re
from typing import Final

from stepper.arguments import LARGEST_SEED
from stepper.cli.usage import Parser

MODEL: Final = (
    "the .xml of an OpenVINO IR with its .bin beside it, or what OpenVINO converts: .onnx, .pb, .tflite, .pdmodel; "
    "or a case: a folder with model.xml and what it was run on"
)
_SPECS: Final = "FILE.npy, FILE.npz:KEY, zeros, ones, rand:SEED, or a JSON literal such as [1,2,3]"


def add_model(command: Parser) -> None:
    """Add the model to open."""
    command.add_argument("model", metavar="MODEL", help=MODEL)


def add_trace(command: Parser) -> None:
    """Add a recording to read."""
    command.add_argument("trace", metavar="TRACE", help="a file that stepper run --trace has written")


def add_inputs(command: Parser) -> None:
    """Add values for the model's inputs, and the shapes of those that are filled."""
    command.add_repeated(
        "--input",
        "NAME=SPEC",
        f"a value for an input, by name, tensor name or position (* for all that are missing); SPEC: {_SPECS}",
    )
    command.add_argument(
        "--inputs", metavar="FILE.npz", help="values for inputs; a key is a name, tensor name or position"
    )
    command.add_repeated(
        "--shape",
        "NAME=1,5,4",
        "the shape that zeros, ones and rand take for an input whose shape is open; a model that cannot be "
        "converted with open shapes is converted with these",
    )


def add_logs(command: Parser) -> None:
    """Add files for findings, in the forms that code hosts and servers of CI read."""
    command.add_argument("--sarif", metavar="FILE", help="write the findings there as SARIF 2.1.0, too")
    command.add_argument("--junit", metavar="FILE.xml", help="write the findings there as JUnit XML, too")


def add_calls(command: Parser) -> None:
    """Add many calls of the model, which become the outermost loop."""
    command.add_repeated(
        "--calls",
        "SPEC",
        "call the model many times, as the outermost loop, an iteration a call; what calls get: FILE.npz (a leading "
        "axis of calls), a folder or pattern of .npz (a file each), INPUT=SPEC[:axisN[:LENGTH]], or how many there are",
    )
    command.add_repeated("--carry", "OUTPUT=INPUT", "what an output was is this input in the next call")


def add_states(command: Parser) -> None:
    """Add values for the model's variables (ReadValue, Assign), as an earlier run left them."""
    command.add_repeated(
        "--state",
        "NAME=SPEC",
        f"what a variable (ReadValue, Assign) begins with (* for all that are not given); SPEC: {_SPECS}",
    )
    command.add_argument(
        "--states", metavar="FILE.npz", help="what variables begin with, by name, as an earlier run wrote it"
    )


def add_rules(command: Parser, default: str | None = "spec") -> None:
    """Add the rule book (None: that of a session, where there is one), and limits of iterations and of a tensor."""
    command.add_argument(
        "--rules",
        choices=("spec", "openvino"),
        default=default,
        help="spec: as the specification says (default); openvino: as its CPU plugin does where it departs",
    )
    command.add_argument(
        "--max-iterations", type=positive, metavar="N", help="stop with exit code 4 where a loop needs more iterations"
    )
    largest = "the largest tensor that one operation may make, such as 2GB (200MB)"
    command.add_argument("--largest-tensor", type=size, metavar="SIZE", help=largest)


def add_engine(command: Parser) -> None:
    """Add who computes the operations: numpy, OpenVINO, or a mixture."""
    command.add_argument(
        "--engine",
        choices=("numpy", "openvino", "numpy-f16", "numpy-bf16"),
        default="numpy",
        help="who computes the operations: numpy (default; OpenVINO what has no kernel), OpenVINO all of them, or "
        "numpy with every float rounded to f16 or bf16, as a device of that precision would",
    )
    command.add_repeated(
        "--engine-for",
        "PATTERN=ENGINE",
        "another engine for the operations of a type, or with names that fit a pattern such as 'decoder/*'",
    )
    add_runtime(command)


def add_runtime(command: Parser) -> None:
    """Add how OpenVINO is asked, where it computes."""
    add_device(command)
    command.add_repeated("--extension", "LIB", "a library with operations for OpenVINO")


def add_device(command: Parser) -> None:
    """Add OpenVINO's device and precision, and how long it may take."""
    command.add_argument("--device", metavar="NAME", help="the device of OpenVINO: CPU (default), GPU.0, AUTO, ...")
    command.add_argument(
        "--precision", choices=("f32", "f16", "bf16"), help="what OpenVINO is asked to compute in (f32)"
    )
    command.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="how long OpenVINO or an evaluator of ONNX may read, convert, compile or run something (600)",
    )


def add_open_sequences(command: Parser, why: str) -> None:
    """Add whether sequence operations are opened as loops, and why here."""
    command.add_flag(
        "--open-sequences",
        help=f"take each LSTMSequence, GRUSequence and RNNSequence as a TensorIterator over its cell: {why}",
    )


def add_debugging(command: Parser) -> None:
    """Add what opens a debugger: rules, history, who computes."""
    add_rules(command, default=None)
    command.add_argument(
        "--memory", type=size, metavar="SIZE", help="what the history of the run may hold, for going back (256MB)"
    )
    add_engine(command)
    add_open_sequences(command, "one can step through them")


def add_session(command: Parser, session: str, start_up: str) -> None:
    """Add where a session is kept, and whether the start-up file is carried out; both in the words of the command."""
    command.add_flag("--no-init", help=start_up)
    command.add_argument("--session", metavar="FILE", help=session)
    command.add_flag("--fresh", help="begin anew, without what was kept of the last session")
    command.add_flag("--trust-session", help="agree to what the breakpoints in FILE do when they stop")
    command.add_flag("--no-keep", help="neither put a session back nor keep this one")


def add_keys(command: Parser) -> None:
    """Add the keys of the application."""
    command.add_argument(
        "--keys",
        metavar="PRESET|FILE",
        help="default, vscode, vim, emacs, or a .toml file (by default keys.toml in the configuration folder)",
    )


def add_tolerances(command: Parser, relative: str | None = None, absolute: str | None = None) -> None:
    """Add tolerances of floats; without defaults they are those of the element type."""
    for name, word, default in (("--rtol", "relative", relative), ("--atol", "absolute", absolute)):
        ending = ", instead of the type's own" if default is None else f" of floats ({default})"
        help = f"{word} tolerance{ending}"
        command.add_argument(name, type=tolerance, default=default, metavar="X", help=help)


def add_json(command: Parser) -> None:
    """Add a report for programs."""
    command.add_flag("--json", help="report as JSON on stdout")


# --- types ----------------------------------------------------------------------------------------------------------


def count(text: str) -> int:
    """Return a number of levels, from 0."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of levels")
    return int(text)


def positive(text: str) -> int:
    """Return a number from 1."""
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive integer")
    return int(text)


def seed(text: str) -> int:
    """Return a number from 0."""
    if not re.fullmatch(r"[0-9]{1,40}", text) or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"'{text}' is not a seed; write a number from 0 to {LARGEST_SEED}")
    return int(text)


def port(text: str) -> int:
    """Return the number of a port."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port; write a number from 0 to 65535")
    return int(text)


def page_width(text: str) -> int:
    """Return a width in pixels: a number of them, or such as `84mm`, `8.4cm` or `3.3in`."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(px|mm|cm|in)?", text)
    pixels = {"mm": 96 / 25.4, "cm": 960 / 25.4, "in": 96.0}
    width = 0 if match is None else round(float(match[1]) * pixels.get(match[2], 1.0))
    if not width:
        raise argparse.ArgumentTypeError(f"'{text}' is not a width; write pixels, or for example 84mm")
    return width


def scale(text: str) -> float:
    """Return a factor above 0, of 100 at most."""
    value = _float(text)
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"'{text}' is not a scale; write for example 2 (at most 100)")
    return value


def pace(text: str) -> float:
    """Return seconds from 0.1 to 60."""
    value = _float(text)
    if not 0.1 <= value <= 60:
        raise argparse.ArgumentTypeError(f"'{text}' is not a pace; write seconds from 0.1 to 60")
    return value


def tolerance(text: str) -> float:
    """Return a number that is finite and not negative."""
    value = _float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a tolerance; write for example 1e-4")
    return value


def size(text: str) -> int:
    """Return a number of bytes, written such as 512MB."""
    match = re.fullmatch(r"([0-9]{1,12})\s*([KMGT]?)B?", text.strip().upper())
    if match is None or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write for example 512MB or 2GB")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2]]


def seconds(text: str) -> float:
    """Return a length of time that is finite and not zero."""
    value = _float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds; write for example 60")
    return value


def _float(text: str) -> float:
    """Return the number; -1 for what is none."""
    try:
        return float(text)
    except ValueError:
        return -1.0
