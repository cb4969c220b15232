"""The words of the command line; imports nothing heavy, so that `--help` and a mistyped option answer at once."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, cast

from stepper import __version__
from stepper.cli.options import options
from stepper.cli.options import values as option_values
from stepper.cli.options.screen import add_help, add_session_and_keys
from stepper.cli.usage import Parser, check_first
from stepper.errors import EXIT_CODES
from stepper.export.options import FigureView, LayoutEngine, Theme, ValueDetail
from stepper.files.kinds import FORMATS
from stepper.files.models import is_model_path


def parser() -> Parser:
    """The parser of the whole command line."""
    return _parsers()[0]


def _parsers() -> tuple[Parser, Mapping[str, Parser]]:
    """The parser of the whole command line, and those of the commands by name."""
    top = Parser(
        prog="stepper",
        description="A debugger for the loops of a neural network: runs an OpenVINO IR with numpy.",
        epilog=f"exit codes: {', '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}",
    )
    top.add_argument("--version", action="version", version=f"stepper {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (text, add) in _COMMANDS.items():
        add(commands.add_parser(name, help=text))
    return top, commands.choices


def command_parsers() -> Mapping[str, Parser]:
    """Return the parsers of the commands by name."""
    return _parsers()[1]


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The options that these words give. Raise UsageError, in one line, for words that are wrong."""
    words = list(words)
    if words and is_model_path(words[0]):
        words.insert(0, "tui")  # a bare model opens the application
    check_first(words, COMMANDS)
    top, commands = _parsers()
    options, rest = top.parse_known_args(_with_ranges(words))
    if rest:
        commands[options.command].refuse(rest, commands)
    return cast("argparse.Namespace", options)


def _with_ranges(words: Sequence[str]) -> list[str]:
    """The words with a range that begins with a minus joined to its option, which argparse takes for an option else."""
    found: list[str] = []
    for word in words:
        if found and found[-1] in ("--iters", "--record-iters") and re.match(r"-[0-9]", word):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _add_run(run: Parser) -> None:
    run.description = "Run the whole model and report its outputs, and for each loop its iterations and what ended it."
    run.add_argument("model", metavar="MODEL", nargs="?", help=options.MODEL)
    options.add_inputs(run)
    options.add_states(run)
    run.add_argument(
        "--outputs", "-o", metavar="FILE.npz", help="write the outputs there (- for stdout), in their order"
    )
    run.add_argument("--save-states", metavar="FILE.npz", help="write the variables there as the run leaves them")
    options.add_rules(run)
    run.add_argument(
        "--memory",
        type=option_values.size,
        metavar="SIZE",
        help="the largest tensor that one operation may make, such as 2GB (400MB)",
    )
    options.add_open_sequences(run, "the same results, slower, but the report counts its steps and a failure names one")
    run.add_argument(
        "--break",
        dest="breaks",
        action="append",
        default=[],
        metavar="SPEC",
        help="end with exit code 1 where this happens, and say why: nan, inf, cond, stuck, grow>X, ..., "
        "or TARGET [if EXPR], as the break command of stepper debug takes it",
    )
    options.add_engine(run)
    _add_recording(run)
    options.add_json(run)
    run.add_argument("-q", "--quiet", action="store_true", help="no notes and no progress on stderr")


def _add_passes(passes: Parser) -> None:
    passes.description = (
        "Compile the model in OpenVINO, run it with numpy after each transformation that it makes, and name the first "
        "after which outputs, shapes or a loop's values or iterations differ (exit code 1)."
    )
    options.add_model(passes)
    options.add_inputs(passes)
    options.add_rules(passes)
    options.add_device(passes)
    passes.add_argument(
        "--rtol", type=option_values.tolerance, default=1e-4, metavar="X", help="relative tolerance of floats (1e-4)"
    )
    passes.add_argument(
        "--atol", type=option_values.tolerance, default=1e-5, metavar="X", help="absolute tolerance of floats (1e-5)"
    )
    passes.add_argument("--all", action="store_true", help="a line for each pass")
    options.add_json(passes)
    passes.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


def _add_debug(debug: Parser) -> None:
    debug.description = (
        "Carry out commands on a run of the model, from a file or as they are typed; `help` among them lists them all. "
        "From a pipe the exit code is that of the first error, which names its line; --script - ends there."
    )
    options.add_model(debug)
    options.add_inputs(debug)
    options.add_states(debug)
    debug.add_argument(
        "--save-states", metavar="FILE.npz", help="write the variables there as they are when the debugger is left"
    )
    debug.add_argument(
        "--script", metavar="FILE", help="commands from this file (- for stdin); the first one that fails ends it"
    )
    debug.add_argument(
        "--no-init",
        action="store_true",
        help="leave the start-up file alone: commands in stepper/init of the configuration folder (~/.config)",
    )
    debug.add_argument(
        "--session",
        metavar="FILE",
        help="keep breakpoints, watches, marks, branches and the place there; where it exists, go on with them, "
        "on the inputs that it has; without this, at a terminal, they are kept by model in the user's state folder",
    )
    debug.add_argument("--fresh", action="store_true", help="begin anew, without what was kept of the last session")
    debug.add_argument("--no-keep", action="store_true", help="neither put a session back nor keep this one")
    debug.add_argument(
        "--reference",
        metavar="REFERENCE",
        help="another model, a recorded run, an .npz, onnx, onnxruntime, or openvino (each operation once more, on "
        "the same inputs): for ref(x) in expressions, and break diff>X",
    )
    options.add_rules(debug)
    debug.set_defaults(rules=None)  # so that a session can say which, where the user does not
    options.add_history_memory(debug)
    options.add_engine(debug)
    options.add_open_sequences(debug, "one can step through them")
    debug.add_argument("--json", action="store_true", help="one JSON object a line on stdout for each command")


def _add_compare(compare: Parser) -> None:
    compare.description = (
        "Run the model beside a reference and report the first place where they part, in which loop and iteration, and "
        "why: exit code 1 if they differ, 0 if not."
    )
    options.add_model(compare)
    compare.add_argument(
        "--with",
        dest="reference",
        metavar="REFERENCE",
        default="openvino",
        help="another model, a recorded run, values (.npz with keys NAME@ITERATION), openvino (default), or for an "
        ".onnx: onnx (its reference evaluator), onnxruntime",
    )
    options.add_inputs(compare)
    options.add_states(compare)
    options.add_rules(compare)
    compare.add_argument(
        "--engine",
        choices=("numpy", "numpy-f16", "numpy-bf16"),
        default="numpy",
        help="who computes our side: numpy (default), or numpy with every float rounded to f16 or bf16; the tolerances "
        "are then those of that type",
    )
    options.add_runtime(compare)
    compare.add_argument(
        "--rtol", type=option_values.tolerance, metavar="X", help="relative tolerance, instead of the type's own"
    )
    compare.add_argument(
        "--atol", type=option_values.tolerance, metavar="X", help="absolute tolerance, instead of the type's own"
    )
    compare.add_argument(
        "--ulp",
        type=option_values.positive,
        metavar="N",
        help="numbers at most N steps of their type apart agree as well",
    )
    compare.add_argument(
        "--tolerance",
        action="append",
        default=[],
        metavar="NAME=RTOL[,ATOL]",
        help="the tolerance of an element type, a type of operation or a layer (may be repeated)",
    )
    compare.add_argument(
        "--align",
        metavar="FILE",
        help="which layers stand for each other, where names do not tell: lines 'a = b' or JSON",
    )
    compare.add_argument("--per-op", action="store_true", help="also list every operation")
    options.add_open_sequences(compare, "so that it compares with such a loop, and its steps are compared")
    options.add_json(compare)
    compare.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


def _add_recording(run: Parser) -> None:
    run.add_argument("--trace", metavar="FILE", help="record the run into this file (SQLite), to look at or to resume")
    run.add_argument(
        "--record",
        choices=("all", "carried", "stats", "none"),
        help="of the values of bodies: all; carried values and pieces of outputs (default); statistics alone; nothing",
    )
    run.add_argument("--record-ops", metavar="REGEX", help="record only layers whose name has a match")
    run.add_argument("--record-iters", metavar="RANGES", help="record only these iterations, such as 0:10,-1")
    run.add_argument("--resume", metavar="FILE", help="go on with an interrupted recording, to the same outputs")
    run.add_argument("--model", dest="model_path", metavar="PATH", help="where the model of --resume is now")


def _add_tui(tui: Parser) -> None:
    tui.description = "Step through a model's loops on the whole terminal; ? there lists the keys."
    options.add_model(tui)
    options.add_inputs(tui)
    options.add_states(tui)
    tui.add_argument(
        "--at", metavar="ADDR", help="begin where a breakpoint there would stop, such as h_next or my_loop@3"
    )
    tui.add_argument("--script", metavar="FILE", help="begin with the commands of this file")
    tui.add_argument(
        "--no-init",
        action="store_true",
        help="leave breakpoints, watches and labels of the start-up file alone (stepper/init, as of stepper debug)",
    )
    tui.add_argument(
        "--reference", metavar="REFERENCE", help="another model (.xml), a recorded run or an .npz to compare with"
    )
    add_session_and_keys(tui)
    options.add_rules(tui)
    tui.set_defaults(rules=None)  # so that a session can say which, where the user does not
    options.add_history_memory(tui)
    options.add_engine(tui)
    options.add_open_sequences(tui, "one can step through them")
    tui.add_argument("--ascii", action="store_true", help="for a terminal without line drawing and other symbols")
    tui.add_argument("--light", action="store_true", help="dark letters on a light ground")


def _add_inspect(inspect: Parser) -> None:
    inspect.description = (
        "Show inputs, outputs, and every loop with its port map, back edges, trip count and condition."
    )
    options.add_model(inspect)
    options.add_open_sequences(inspect, "its port map, its back edges, and what its body is made of")
    options.add_json(inspect)


def _add_print(command: Parser) -> None:
    command.description = "Show values of a run that was recorded with stepper run --trace; no model is needed."
    options.add_trace(command)
    command.add_argument(
        "addresses",
        metavar="ADDR",
        nargs="+",
        help="LEVEL::OP:PORT@ITER[SLICE], such as h_next@7, h_next@2:5, 'h*@-1', outer@3::inner@0::h, id=12, @-1",
    )
    command.add_argument("--stats", action="store_true", help="statistics in place of values")
    command.add_argument("--digits", type=option_values.positive, metavar="N", help="digits of floating-point numbers")
    command.add_argument("--csv", action="store_true", help="one line for each element (with --stats: each iteration)")
    command.add_argument("--npy", metavar="FILE", help="write one array; of several iterations along a new first axis")
    options.add_json(command)


def _add_find(command: Parser) -> None:
    command.description = (
        "Find the moments of a run that was recorded with stepper run --trace at which a predicate holds. "
        "Exit code 1 where there are any, 0 where there are none."
    )
    options.add_trace(command)
    command.add_argument(
        "predicate", metavar="PREDICATE", help="an expression such as 'max(h) > 2'; or nan, inf: in anything recorded"
    )
    command.add_argument("which", nargs="?", choices=("first", "last", "all"), default="first", help="(first)")
    command.add_argument(
        "--limit", type=option_values.positive, default=1000, metavar="N", help="of all at most so many (1000)"
    )
    options.add_json(command)


def _add_export(export: Parser) -> None:
    export.description = (
        "Draw a model, a loop's body, its port map, or the iterations of a run; the same bytes each time. "
        "SVG is laid out by the program itself, PNG and PDF by Graphviz."
    )
    export.add_argument(
        "model", metavar="TRACE|MODEL", help="the .xml of an OpenVINO IR, or a recording of run --trace"
    )
    say = export.add_argument
    say("--as", dest="format", choices=tuple(FORMATS), help="the format; without it the suffix of -o, else svg")
    say(
        "--view",
        choices=tuple(FigureView),
        help="the whole model, a loop's body, the iterations of a run, a loop's port map",
    )
    say(
        "--loop",
        metavar="NAME",
        help="which loop of several; OUTER@2::INNER: its run in iteration 2 of OUTER",
    )
    say("--model", dest="model_path", metavar="PATH", help="where the model of a recording is, if it has moved")
    say("--iters", metavar="RANGES", help="which iterations are drawn, such as 0:3,-1; : draws all")
    say("--values", choices=tuple(ValueDetail), default="none", help="how much is said of each value (none)")
    say("--theme", choices=tuple(Theme), default="auto", help="auto follows the reader's colour scheme (default)")
    say("--only", metavar="REGEX", action="append", default=[], help="draw only operations of this name or type")
    say("--hide", metavar="REGEX", action="append", default=[], help="draw operations of this name or type as groups")
    say(
        "--depth",
        type=option_values.count,
        metavar="N",
        help="how many levels of bodies are drawn inside of their layer",
    )
    say("--carried", action="store_true", help="of bodies draw only what goes in, is carried and comes out")
    say("--highlight", metavar="ADDRESS", help="mark an operation, such as decoder::Softmax@3")
    say("--width", type=option_values.positive, metavar="PIXELS", help="fit the page, or say that the figure cannot")
    say(
        "--layout", choices=tuple(LayoutEngine), default="own", help="who lays SVG out (own: the same bytes everywhere)"
    )
    say("--check", metavar="FILE", help="write nothing; exit with 1 where FILE is not what would be written")
    say("-o", dest="output", metavar="FILE", help="write there (- for stdout, the default)")
    options.add_inputs(export)
    options.add_states(export)
    options.add_rules(export)
    options.add_engine(export)
    options.add_open_sequences(export, "their steps can be drawn")
    say("-q", "--quiet", action="store_true", help="no notes on stderr")


_COMMANDS: Final[Mapping[str, tuple[str, Callable[[Parser], None]]]] = MappingProxyType({
    "run": ("run a model and report its outputs and loops", _add_run),
    "debug": ("step through a model's loops, forward and backward", _add_debug),
    "inspect": ("show a model's inputs, outputs and loops without running it", _add_inspect),
    "compare": ("find where two runs part: two models, a recording, values, OpenVINO", _add_compare),
    "print": ("show values of a recorded run", _add_print),
    "find": ("the moments of a recorded run at which something holds", _add_find),
    "export": ("draw a model or a run: figures and tables for documents", _add_export),
    "passes": ("name the first pass of OpenVINO that changes what a model computes", _add_passes),
    "tui": ("the debugger on the whole terminal; also: stepper MODEL", _add_tui),
    "help": ("how commands and what they take are written; the keys of the application", add_help),
})  # fmt: skip
COMMANDS: Final = MappingProxyType({name: text for name, (text, _) in _COMMANDS.items()})
"""The commands in one line each; the module of its name in stepper.cli.commands carries out each of them."""
