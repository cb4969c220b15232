"""Options that several commands share: the model, its inputs, the rules, who computes, what is reported."""

from __future__ import annotations

import argparse
from typing import Final

from stepper.cli.options import values as option_values

MODEL: Final = (
    "the .xml of an OpenVINO IR with its .bin beside it, or what OpenVINO converts: .onnx, .pb, .tflite, .pdmodel"
)
SPECS: Final = "FILE.npy, FILE.npz:KEY, zeros, ones, rand:SEED, or a JSON literal such as [1,2,3]"


def add_model(command: argparse.ArgumentParser) -> None:
    """The model to open."""
    command.add_argument("model", metavar="MODEL", help=MODEL)


def add_inputs(command: argparse.ArgumentParser) -> None:
    """Values for the model's inputs, and the shapes of those that are made up."""
    command.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=SPEC",
        help=f"a value for an input, by name, tensor name or position (* for all that are missing); SPEC: {SPECS}",
    )
    command.add_argument(
        "--inputs", metavar="FILE.npz", help="values for inputs; a key is a name, tensor name or position"
    )
    command.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,5,4",
        help="the shape that zeros, ones and rand take for an input whose shape is open",
    )


def add_states(command: argparse.ArgumentParser) -> None:
    """Values for the model's variables (ReadValue, Assign), as an earlier run left them."""
    command.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="NAME=SPEC",
        help=f"what a variable (ReadValue, Assign) begins with (* for all that are not given); SPEC: {SPECS}",
    )
    command.add_argument(
        "--states", metavar="FILE.npz", help="what variables begin with, by name, as an earlier run wrote it"
    )


def add_rules(command: argparse.ArgumentParser) -> None:
    """The rule book, and a limit of iterations."""
    command.add_argument(
        "--rules",
        choices=("spec", "openvino"),
        default="spec",
        help="spec: as the specification says (default); openvino: as its CPU plugin does where it departs",
    )
    command.add_argument(
        "--max-iterations",
        type=option_values.positive,
        metavar="N",
        help="stop with exit code 4 where a loop wants more iterations",
    )


def add_engine(command: argparse.ArgumentParser) -> None:
    """The options that say who computes the operations: numpy, OpenVINO, or a mixture."""
    command.add_argument(
        "--engine",
        choices=("numpy", "openvino", "numpy-f16", "numpy-bf16"),
        default="numpy",
        help="who computes the operations: numpy (default; OpenVINO what has no kernel), OpenVINO all of them, or "
        "numpy with every float rounded to f16 or bf16, as a device of that precision would",
    )
    command.add_argument(
        "--engine-for",
        action="append",
        default=[],
        metavar="PATTERN=ENGINE",
        help="another engine for the operations of a type, or with names that fit a pattern such as 'decoder/*'",
    )
    add_runtime(command)


def add_runtime(command: argparse.ArgumentParser) -> None:
    """How OpenVINO is asked, where it computes."""
    add_device(command)
    command.add_argument(
        "--extension", action="append", default=[], metavar="LIB", help="a library with operations for OpenVINO"
    )


def add_device(command: argparse.ArgumentParser) -> None:
    """OpenVINO's device and precision, and how long it may take."""
    command.add_argument("--device", metavar="NAME", help="the device of OpenVINO: CPU (default), GPU.0, AUTO, ...")
    command.add_argument(
        "--precision", choices=("f32", "f16", "bf16"), help="what OpenVINO is asked to compute in (f32)"
    )
    command.add_argument(
        "--timeout",
        type=option_values.seconds,
        metavar="SECONDS",
        help="how long OpenVINO may read, convert, compile or run something (600); it runs in a process of its own",
    )


def add_open_sequences(command: argparse.ArgumentParser, why: str) -> None:
    """Whether sequence operations are opened as loops, and why here."""
    command.add_argument(
        "--open-sequences",
        action="store_true",
        help=f"take each LSTMSequence, GRUSequence and RNNSequence as a TensorIterator over its cell: {why}",
    )


def add_history_memory(command: argparse.ArgumentParser) -> None:
    """The memory of a debugger's history."""
    command.add_argument(
        "--memory",
        type=option_values.size,
        metavar="SIZE",
        help="what the history of the run may hold, for going back (256MB)",
    )


def add_json(command: argparse.ArgumentParser) -> None:
    """A report for programs."""
    command.add_argument("--json", action="store_true", help="report as JSON on stdout")


def add_trace(command: argparse.ArgumentParser) -> None:
    """A recording to read."""
    command.add_argument("trace", metavar="TRACE", help="a file that stepper run --trace has written")
