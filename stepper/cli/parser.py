"""The words of the command line; imports nothing heavy, so that `--help` and a mistyped option answer at once."""

from __future__ import annotations

import argparse
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final, cast

from stepper.cli.arguments import (
    DEBUGGING,
    DEVICE,
    ENGINE,
    GIVEN,
    INPUTS,
    JSON,
    KEYS,
    LOGS,
    MODEL,
    MODEL_HELP,
    QUIET,
    RULES,
    RUNTIME,
    STATES,
    TRACE,
    count,
    open_sequences,
    pace,
    page_width,
    port,
    positive,
    put_case,
    scale,
    seconds,
    seed,
    session,
    tolerance,
    tolerances,
)
from stepper.cli.usage import Option, Parser, Versions, check_first, choice, defaults, flag, group, option, repeated
from stepper.errors import EXIT_CODES
from stepper.files.file_kinds import is_case, is_model_path
from stepper.files.recognition import opened_in


def parser() -> Parser:
    """Return the parser of the whole command line."""
    return command_line()[0]


@cache
def command_line(only: str | None = None) -> tuple[Parser, argparse._SubParsersAction[Parser]]:
    """Return the parser of the whole command line, and its argument that is the command, with a parser for each.

    With `only`, the others know no options: those of all commands take longer than `--help` may.
    """
    rows = {title: tuple((_called(name), _COMMANDS[name][0]) for name in names) for title, names in _GROUPS.items()}
    top = Parser(
        prog="stepper",
        description="A debugger for the loops of a neural network: runs an OpenVINO IR with numpy.",
        examples=("stepper model.xml --inputs inputs.npz", "stepper check model.xml --inputs inputs.npz"),
        rows={**rows, "exit codes": tuple((str(code), meaning) for code, meaning in EXIT_CODES.items())},
    )
    top.add_argument("--version", action=Versions, help="the versions of stepper and of what it works with")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (text, description, add, examples) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=description, examples=examples)
        if only is None or name == only:
            add(command)
    return top, commands


def _called(name: str) -> str:
    return "MODEL" if name == "tui" else name


def command_parsers() -> Mapping[str, Parser]:
    """Return the parsers of the commands by name."""
    return command_line()[1].choices


def parsed(words: Sequence[str]) -> Namespace:
    """Return the options that these words give. Raise UsageError, in one line, for words that are wrong."""
    words = list(words)
    if (
        words
        and words[0] not in COMMANDS
        and (is_model_path(words[0]) or is_case(words[0]) or opened_in(words[0]) is not None)
    ):
        words.insert(0, "tui")  # a bare model opens the application
    check_first(words, COMMANDS)
    options, rest = command_line(words[0] if words else "")[0].parse_known_args(_with_ranges(words))
    if rest:
        commands = command_parsers()
        commands[options.command].refuse(rest, commands)
    put_case(options)
    return cast("Namespace", options)


def _with_ranges(words: Sequence[str]) -> list[str]:
    """Return the words, with a range that begins with a minus joined to its option: argparse takes it for an option."""
    found: list[str] = []
    for word in words:
        if found and found[-1] in ("--iters", "--record-iters") and re.match(r"-[0-9]", word):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


_COMMANDS: Final[dict[str, tuple[str, str, Option, tuple[str, ...]]]] = {}


def _command(name: str, text: str, description: str, *options: Option, examples: tuple[str, str, str]) -> None:
    """Declare a command; the examples are without its name."""
    lines = tuple(f"stepper {name} {rest}".rstrip() for rest in examples)
    _COMMANDS[name] = text, description, group(*options), lines


_GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "begin here": ("tui", "check", "why", "compare", "capture"),
    "look": ("inspect", "lint", "run", "debug"),
    "read recordings": ("print", "find"),
    "draw": ("export", "figures"),
    "fix a model, find faults of the runtime": ("fix", "reduce", "passes", "hunt"),
    "many inputs": ("sweep", "cases"),
    "editors, shells, help": ("dap", "completion", "help"),
})  # fmt: skip
"""The commands as `stepper --help` lists them."""


def _duration(text: str) -> float:
    return seconds(text.removesuffix("s"))


_command(
    "run",
    "run a model and report its outputs and loops",
    "Run the whole model and report its outputs. For each loop, report its iterations and what ended it.",
    option("model", "MODEL", MODEL_HELP, nargs="?"),
    GIVEN,
    option("--outputs -o", "FILE.npz", "write the outputs there (- for stdout), in their order"),
    option("--save-states", "FILE.npz", "write the variables at the end of the run to this file"),
    RULES,
    open_sequences("slower, but the report counts the steps and a failure names its step"),
    repeated(
        "--break",
        "SPEC",
        "stop with exit code 1 at this event, and say why: nan, inf, cond, stuck, grow>X, ..., "
        "or TARGET [if EXPR], as in break of stepper debug",
        dest="breaks",
    ),
    ENGINE,
    option("--trace", "FILE", "record the run into this file (SQLite), to look at or to resume"),
    choice(
        "--record",
        ("all", "carried", "stats", "none"),
        "keep all values, carried values and scan outputs (default), only statistics, or no values",
    ),
    option("--record-ops", "REGEX", "record only layers whose name has a match"),
    option("--record-iters", "RANGES", "record only these iterations, such as 0:10,-1"),
    option("--resume", "FILE", "continue an interrupted recording; the outputs equal the outputs of one run"),
    option("--model", "PATH", "where the model of --resume is now", dest="model_path"),
    JSON,
    flag("-q --quiet", "no notes and no progress on stderr"),
    examples=(
        "model.xml --inputs inputs.npz",
        "model.xml --input '*=rand:0' --break nan",
        "model.xml --inputs inputs.npz --trace run.sqlite",
    ),
)

_command(
    "debug",
    "step through a model's loops, forward and backward",
    "Run commands on a run of the model, from a file or the keyboard; `help` lists them. "
    "A pipe continues after an error and exits with the code of the first error; --script - stops there.",
    MODEL,
    GIVEN,
    option("--save-states", "FILE.npz", "write the variables to this file when the debugger ends"),
    option("--script", "FILE", "run the commands of this file (- for stdin) up to the first error"),
    session(
        "keep breakpoints, watches, marks, branches and the position in this file, and restore them with their "
        "inputs if it exists; without this option, a terminal keeps them per model in your state folder",
        "skip the start-up file: stepper/init in your configuration folder (~/.config)",
    ),
    option(
        "--reference",
        "REFERENCE",
        "another model, a recording, an .npz, onnx, onnxruntime, or openvino (each operation on the same "
        "inputs), for ref(x) in expressions and break diff>X",
    ),
    DEBUGGING,
    flag("--json", "print one JSON object per command on stdout"),
    examples=(
        "model.xml --inputs inputs.npz",
        "model.xml --inputs inputs.npz --script commands.txt",
        "model.xml --inputs inputs.npz --reference openvino",
    ),
)

_command(
    "dap",
    "debug in an editor: serve the Debug Adapter Protocol",
    "Serve the Debug Adapter Protocol on stdin and stdout, or on a port of this machine to one editor at a time. "
    "These options are the defaults of the launch configuration, whose arguments have the same names.",
    option("model", "MODEL", MODEL_HELP, nargs="?"),
    GIVEN,
    repeated("--break", "SPEC", "a breakpoint from the start, as in run --break", dest="breaks"),
    option("--reference", "REFERENCE", "another model (.xml), a recorded run or an .npz to compare with"),
    DEBUGGING,
    option(
        "--port",
        "N",
        "listen on 127.0.0.1 (0: a free port) for clients with the printed token",
        type=port,
    ),
    examples=(
        "",
        "model.xml --inputs inputs.npz --break nan",
        "--port 5678",
    ),
)

_command(
    "inspect",
    "show a model's inputs, outputs and loops without running it",
    "Show inputs, outputs, and every loop with its port map, back edges, trip count and condition.",
    MODEL,
    option(
        "names",
        "NAME",
        "show only the loops of this name, and the port map entries and back edges of a layer, input or "
        "output of this name",
        nargs="*",
        default=[],
    ),
    open_sequences("shows its port map, its back edges and the operations of its body"),
    JSON,
    examples=(
        "model.xml",
        "model.xml decoder",
        "model.xml --json",
    ),
)

_command(
    "lint",
    "check the loops of a file without a run",
    "Check a file against the rules of loops, without inputs and without a run. Exit code 1 for errors and "
    "warnings, 0 for notes. A project selects rules in [lint] of stepper.toml, or in [tool.stepper.lint] of "
    "pyproject.toml.",
    option(
        "models", "MODEL", "the .xml of an OpenVINO IR (the .bin may be missing), or what OpenVINO converts", nargs="*"
    ),
    repeated("--select", "RULE", "ask these rules alone: a name, an id, or how ids begin (B, C2)"),
    repeated("--ignore", "RULE", "leave these rules out"),
    option(
        "--changed",
        "COMMIT",
        "check the models of the git work tree that differ from a commit (HEAD), also new ones",
        nargs="?",
        const="HEAD",
    ),
    flag("--skip-others", "skip files that are no IR, as --changed does"),
    flag("--rules", "list the selected rules"),
    option("--explain", "RULE", "explain a rule, with an example"),
    LOGS,
    JSON,
    examples=(
        "model.xml",
        "--changed main",
        "--explain trip-count-without-limit",
    ),
)

_command(
    "check",
    "find what is wrong with a model and one run of it",
    "Lint the file, run the model once, and compare it with a reference. The rules of the run find the first NaN "
    "and Inf, loops that do not end, and states that are stuck, repeat or grow. The most severe finding comes "
    "first, with the command that shows it in the debugger.",
    MODEL,
    GIVEN,
    RULES,
    ENGINE,
    open_sequences("checks their states too"),
    option(
        "--with",
        "REFERENCE",
        "compare with another model, a recording, values (.npz), openvino, onnx, onnxruntime, or none; "
        "default: OpenVINO if it is installed and the run is short",
        dest="reference",
    ),
    tolerances(),
    defaults(align=None, ulp=None, tolerance=[]),
    option(
        "--seconds",
        "N",
        "time limit of the run (60); an endless loop stops after 2",
        type=seconds,
        default=60.0,
    ),
    choice(
        "--as",
        ("f16", "bf16", "i8-weights"),
        "also run in fewer bits: which operations fail, and which have to stay in f32",
        dest="narrowing",
    ),
    option(
        "--loss",
        "X",
        "the largest error of an output with --as, relative to its norm (f16 0.01, else 0.05)",
        type=tolerance,
    ),
    option("--keep-in-f32", "FILE.xml", "write the model, with the operations that have to stay in f32 marked"),
    repeated("--select", "RULE", "ask these rules alone: a name, an id, or how ids begin (D, C2)"),
    repeated("--ignore", "RULE", "leave these rules out"),
    choice("--fail-on", ("error", "warning", "note"), "exit code 1 from this severity (warning)", default="warning"),
    LOGS,
    JSON,
    QUIET,
    examples=(
        "model.xml --inputs inputs.npz",
        "model.onnx --inputs inputs.npz --with onnxruntime",
        "model.xml --inputs inputs.npz --as f16",
    ),
)

_command(
    "why",
    "explain a value: its origin, and the elements behind it",
    "Run the model and follow an element back through operations, slices and back edges, to all elements of inputs "
    "and constants that it depends on. With --uses: where an element goes.",
    MODEL,
    option(
        "address",
        "ADDRESS",
        "an element (`h@7[0,3]`, an output's `NAME[0,3]`), or 'shape of ADDR', 'condition', 'end of LOOP', "
        "'11 iterations', 'where does x[3] go'",
    ),
    GIVEN,
    RULES,
    ENGINE,
    open_sequences("follows their iterations too"),
    option(
        "--reference", "REFERENCE", "follow only what differs from it: openvino, a recording, a model or values (.npz)"
    ),
    flag("--uses", "follow the element forward: operations, iterations, outputs"),
    JSON,
    QUIET,
    examples=(
        "model.xml 'wkv@8[0,3]' --inputs inputs.npz",
        "model.xml 'end of decoder' --inputs inputs.npz",
        "model.xml 'x[3]' --inputs inputs.npz --uses",
    ),
)

_command(
    "compare",
    "find the first difference between two runs",
    "Run the model and a reference, and report the first difference: loop, iteration, operation and reason. Exit "
    "code 1 if they differ, 0 if not.",
    MODEL,
    option(
        "--with",
        "REFERENCE",
        "another model, a recording, values (.npz with keys NAME@ITERATION), openvino (default; for a case its "
        "outputs), or for an .onnx: onnx (its reference evaluator), onnxruntime",
        dest="reference",
    ),
    GIVEN,
    RULES,
    choice(
        "--engine",
        ("numpy", "numpy-f16", "numpy-bf16"),
        "what computes our side: numpy (default), or numpy with every float rounded to f16 or bf16, with the "
        "tolerances of that type",
        default="numpy",
    ),
    RUNTIME,
    tolerances(),
    option("--ulp", "N", "also accept numbers at most N ulp apart", type=positive),
    repeated(
        "--tolerance",
        "NAME=RTOL[,ATOL]",
        "the tolerance of an element type, a type of operation or a layer (may be repeated)",
    ),
    option("--align", "FILE", "pairs of layers that correspond, if names differ: lines 'a = b' or JSON"),
    flag("--per-op", "also list every operation"),
    open_sequences("compares with such a loop, and compares its steps"),
    JSON,
    QUIET,
    examples=(
        "model.xml --inputs inputs.npz",
        "ours.xml --with theirs.xml --inputs inputs.npz",
        "model.onnx --with onnxruntime --inputs inputs.npz",
    ),
)

_command(
    "print",
    "show values of a recorded run",
    "Show values of a run that was recorded with stepper run --trace; no model is needed.",
    TRACE,
    option(
        "addresses",
        "ADDR",
        "LEVEL::OP:PORT@ITER[SLICE], such as h_next@7, h_next@2:5, 'h*@-1', outer@3::inner@0::h, id=12, @-1",
        nargs="+",
    ),
    flag("--stats", "statistics instead of values"),
    option("--digits", "N", "digits of floating-point numbers", type=positive),
    flag("--csv", "a line per element (with --stats: per iteration)"),
    option("--npy", "FILE", "write one array; several iterations form a new first axis"),
    JSON,
    examples=(
        "run.sqlite h_next@7",
        "run.sqlite 'h*@-1' --stats",
        "run.sqlite h_next@: --npy h.npy",
    ),
)

_command(
    "find",
    "search a recorded run for NaN, Inf or a condition",
    "Search a recording of stepper run --trace for places where a predicate holds. "
    "Exit code 1 if there is one, 0 if not.",
    TRACE,
    option("predicate", "PREDICATE", "an expression such as 'max(h) > 2'; or nan, inf: in anything recorded"),
    choice("which", ("first", "last", "all"), "(first)", nargs="?", default="first"),
    option("--limit", "N", "print at most N places (1000)", type=positive, default=1000),
    JSON,
    examples=(
        "run.sqlite nan",
        "run.sqlite 'max(h) > 2' all",
        "run.sqlite 'h[0,3] < 0' last",
    ),
)


def _export(command: Parser) -> None:
    from stepper.export.options import (
        BlockStyle,
        ConstantStyle,
        FigureView,
        LayoutEngine,
        Preset,
        Theme,
        TimeDirection,
        ValueDetail,
    )
    from stepper.files.file_kinds import FORMATS  # here, for the speed of --help

    group(
        option("model", "TRACE|MODEL", "the .xml of an OpenVINO IR, or a recording of run --trace"),
        choice(
            "--as", FORMATS, f"{', '.join(FORMATS)}; else the suffix of -o, or svg", dest="format", metavar="FORMAT"
        ),
        choice(
            "--view",
            FigureView,
            "the whole model, a loop's body, the iterations of a run, a loop's port map, or the path of a value",
        ),
        option("--why", "ADDR", "explain a value over the iterations; end: why a loop ended"),
        option("--loop", "NAME", "the loop; OUTER@2::INNER: its run in iteration 2 of OUTER"),
        option("--model", "PATH", "the model of a recording, if it has moved", dest="model_path"),
        option("--iters", "RANGES", "draw these iterations, such as 0:3,-1; : draws all"),
        choice("--values", ValueDetail, "what to show of each value (none)", default="none"),
        choice(
            "--constants",
            ConstantStyle,
            "small ones inside their reader's box, in own boxes, or not at all (inline)",
            default="inline",
        ),
        choice(
            "--blocks",
            BlockStyle,
            "draw equal blocks all, or once with a count (default for more than 100 boxes)",
        ),
        choice(
            "--theme",
            Theme,
            "auto follows the reader's colour scheme (default), page the page around the SVG",
            default="auto",
        ),
        repeated("--only", "REGEX", "draw only operations of this name or type"),
        repeated("--hide", "REGEX", "draw operations of this name or type as groups"),
        option(
            "--depth",
            "N",
            "draw N levels of bodies inside their layer (a small model: all)",
            type=count,
        ),
        flag("--carried", "draw only inputs, carried values and outputs of bodies"),
        option("--highlight", "ADDRESS", "mark an operation, such as decoder::Softmax@3"),
        option("--around", "OP", "draw only an operation and its neighbours"),
        option("--hops", "N", "how many edges to the farthest neighbour (2)", type=count),
        option("--from", "OP", "with --to: draw only the operations on paths between them", dest="begin"),
        option("--to", "OP", "the end of these paths", dest="end"),
        option(
            "--diff",
            "RUN",
            "mark where the run differs from a recording, another model, an .npz, openvino, onnx or onnxruntime",
        ),
        option("--detail", "OP", "draw the whole small, and the neighbours of an operation large beside it"),
        choice(
            "--preset",
            Preset,
            "the page to fit: paper (84 mm, or --width 170mm), slide (1280 x 720), docs (820 pixels)",
        ),
        choice("--direction", TimeDirection, "direction of the iterations: down (default), or right, as in a textbook"),
        option("--title", "TEXT", "the title instead of the figure's own ('': none)"),
        option("--caption", "TEXT", "text for readers who do not see the figure, before its own description"),
        choice("--legend", ("on", "off"), "explain lines and boxes below the figure (on)", default="on"),
        option("--scale", "N", "scale of a PNG (1)", type=scale, default=1.0),
        option("--width", "WIDTH", "fit this width: pixels, or such as 84mm", type=page_width),
        choice(
            "--layout",
            LayoutEngine,
            "lay SVG, PDF and PNG out with stepper (own: the same bytes everywhere) or Graphviz",
            default="own",
        ),
        option("--frames", "DIR", "write one figure per iteration, all of one size: DIR/0000.svg, ..."),
        flag("--animate", "write an SVG that plays the iterations without a script"),
        flag("--embed", "write an HTML page for an <iframe>, without heading and facts"),
        option("--pace", "SECONDS", "seconds per iteration (1.2)", type=pace),
        option(
            "--check",
            "FILE",
            "write nothing; exit code 1 if FILE (with --frames the folder DIR) is out of date",
        ),
        option("-o", "FILE", "write to FILE (- for stdout, the default)", dest="output"),
        GIVEN,
        RULES,
        ENGINE,
        open_sequences("draws their steps"),
        flag("-q --quiet", "no notes on stderr"),
    )(command)


_command(
    "export",
    "draw a model or a run: figures and tables for documents",
    "Draw a model, a loop's body, its port map, or the iterations of a run, with the same bytes each time. "
    "SVG, PDF and PNG need no other program.",
    _export,
    examples=(
        "model.xml -o model.svg",
        "model.xml --view unrolled --inputs inputs.npz -o run.svg",
        "model.xml --why 'wkv@8[0,3]' --inputs inputs.npz -o why.svg",
    ),
)

_command(
    "figures",
    "write all figures of a list, or check that they are current",
    "Write the figures of a list, or check that they are current. Each [[figure]] has a name, a model, one or "
    "more files and options of stepper export; [defaults] has options for all.",
    option("names", "NAME", "only these figures", nargs="*"),
    option("--file", "FILE", "the list (figures.toml)", default="figures.toml"),
    flag("--check", "write nothing; exit code 1 if a figure is out of date"),
    flag("--list", "print only names and files"),
    JSON,
    flag("-q --quiet", "do not print the files"),
    examples=(
        "",
        "--check",
        "attention --file docs/figures.toml",
    ),
)

_command(
    "reduce",
    "make a model with a fault small, and write a reproducer and a report",
    "Make a model with a fault and its inputs small, as long as the same fault stays: replace operations by "
    "constants, bypass them, open loops, and shrink dimensions, trip counts and values. Each trial runs in a "
    "process with limits. The folder gets the model, reproduce.py, test_reduced.py and REPORT.md. Exit code 1; 0 "
    "if there is no such fault. Ctrl+C keeps the best so far.",
    MODEL,
    GIVEN,
    option("-o --output", "DIR", "the folder for the smallest model and its reproducer", required=True),
    option("--break", "SPEC", "the fault: the run stops there, as in run --break", dest="break_spec"),
    flag("--error", "the fault: the run ends in an error, or OpenVINO refuses the model or crashes"),
    option(
        "--differs",
        "REFERENCE",
        "the fault: results differ from openvino, or from a healthy model (reduced too); default: "
        "the first of the three that holds",
        dest="reference",
    ),
    option("--time", "SECONDS", "time limit (300)", type=seconds, default=300.0),
    RULES,
    ENGINE,
    tolerances(),
    JSON,
    QUIET,
    examples=(
        "model.xml --inputs inputs.npz -o small",
        "model.xml --inputs inputs.npz --break nan -o small",
        "model.xml --inputs inputs.npz --differs healthy.xml -o small",
    ),
)

_command(
    "fix",
    "find the edit of a model that makes its outputs equal to a reference",
    "Find the edit of a model that makes its outputs equal to a reference. Try edits that engineers and converters "
    "make by mistake, compare each with the reference, and list those that make all outputs equal. Exit code 1; 0 "
    "if the outputs agree already. Without a reference: find rewrites after which the run has no NaN and no Inf, "
    "and healthy runs give equal outputs. Ctrl+C keeps the best so far.",
    MODEL,
    GIVEN,
    option(
        "--with",
        "REFERENCE",
        "the right outputs: an .npz (outputs and inputs may have a leading axis of examples), another "
        "model, a recording, onnx, onnxruntime, openvino, or FILE.py:NAME; the function NAME returns a torch module or "
        "another callable of arrays",
        dest="reference",
    ),
    repeated("--also", "INPUTS.npz,OUTPUTS.npz", "another example of inputs and outputs"),
    repeated("--layer", "NAME", "without a reference: rewrite only this layer", dest="layers"),
    option("--finding", "RULE", "without a reference: rewrite the layers of a finding of stepper check, such as D202"),
    option("-o --output", "FILE.xml", "write the repaired model there, with its .bin"),
    option("--python", "FILE.py", "write the repair as a Python function over openvino.Model"),
    option("--test", "FILE.py", "write a test for pytest that compares the repaired model with the reference"),
    option("--time", "SECONDS", "time limit of the search (300)", type=seconds, default=300.0),
    RULES,
    RUNTIME,
    tolerances(),
    defaults(ulp=None, tolerance=[], open_sequences=False, engine="numpy", engine_for=[]),
    JSON,
    QUIET,
    examples=(
        "model.xml --inputs inputs.npz --with outputs.npz",
        "model.xml --inputs inputs.npz --with healthy.xml -o fixed.xml",
        "model.xml --inputs inputs.npz --layer exp_key",
    ),
)

_command(
    "hunt",
    "find faults of OpenVINO with random loops, and make each small",
    "Build random models with loops, run them here and in OpenVINO, and make each disagreement small. Recognise "
    "known faults, count each fault once, and keep its smallest case in DIR. Exit code 1; 0 if all agree. The same "
    "seed is the same model. After Ctrl+C, the same command continues. With --fault NAME: run the smallest case of "
    "a known fault, with exit code 1 if it is there.",
    option("-o --output", "DIR", "the folder for results and cases"),
    option("--fault", "NAME", "run the smallest case of a known fault (all: of every fault)"),
    option("--seed", "N", "the first seed (0)", type=seed, default=0),
    option("--count", "N", "how many seeds (100; with --time all)", type=positive),
    option("--time", "SECONDS", "start new seeds for this time, such as 60s", type=_duration),
    choice(
        "--profile",
        ("loops", "port-maps", "operations", "quantised"),
        "vary everything (default), slices and port maps, operations and types, or quantised values",
        default="loops",
    ),
    JSON,
    QUIET,
    examples=(
        "-o found --time 60s",
        "-o found --profile quantised --count 500",
        "--fault all",
    ),
)

_command(
    "capture",
    "run an application, and keep its failing calls as cases",
    "Run an application, and keep its calls of OpenVINO's Python interface that go wrong. Each call becomes a case: "
    "a folder with the model, inputs, variables and outputs. Every command takes a case instead of a model. The "
    "application computes the same results. The exit code is its own, or 1 if that is 0 and there are cases.",
    repeated(
        "--when", "WHAT", "keep calls with nan or inf in an output, with an error, any calls, or call number N (nan)"
    ),
    option("--to", "DIR", "the folder for the cases (cases)", default="cases"),
    option("--most", "N", "keep at most N cases per process (5)", type=positive, default=5),
    option(
        "--calls",
        "N",
        "keep the last N calls of the request in each case, which opens as a loop over them",
        type=positive,
        default=1,
    ),
    JSON,
    option(
        "application",
        "-- COMMAND",
        "the command, such as python app.py; also programs that start Python",
        nargs=argparse.REMAINDER,
    ),
    examples=(
        "-- python app.py",
        "--when any --most 1 -- python app.py",
        "--calls 40 --to cases -- python generate.py",
    ),
)

_command(
    "cases",
    "list the cases of a folder",
    "List the cases of a folder, as stepper capture and reduce write them.",
    option("folder", "DIR", "the folder (cases)", nargs="?", default="cases"),
    JSON,
    examples=(
        "",
        "cases --json",
        "small",
    ),
)

_command(
    "sweep",
    "run the model on thousands of inputs, and list those that go wrong",
    "Run the model on thousands of inputs, with a process per core. List the inputs that stop at a breakpoint (nan), "
    "have findings of check, or differ from a reference. List place and iteration, and how often loops run. After "
    "Ctrl+C or a kill, the same command continues. Exit code 1 if there is a finding. Give the file of results "
    "instead of a model to print it; --open shows the table, --open N the debugger on input N.",
    option("model", "MODEL|FILE", f"{MODEL_HELP}; or the file of a sweep"),
    option(
        "--inputs",
        "PATTERN",
        ".npz files, one per input (a pattern such as 'set/*.npz', or a folder), or a folder of cases",
        dest="patterns",
        nargs="+",
    ),
    flag("--leading-axis", "each index of the first axis of the arrays of a file is an input"),
    option("--random", "N", "N inputs of random numbers: '*=rand:SEED'", type=positive),
    option("--seed", "N", "the first seed of --random (0)", type=seed, default=0),
    option(
        "--generate",
        "PKG.MODULE:FUNCTION",
        "call a function with 0, 1, 2, ...; it returns arrays by name. stepper imports its module, also from here",
    ),
    option("--count", "N", "how often to call it", type=positive),
    repeated(
        "--input", "NAME=SPEC", "a value for an input that is equal in all runs, by name, tensor name or position"
    ),
    repeated("--shape", "NAME=1,5,4", "the shape that --random takes for an input whose shape is open"),
    STATES,
    repeated("--break", "SPEC", "look for this, as in run --break; nan without --check and --with", dest="breaks"),
    flag("--check", "look for findings of stepper check; the most severe one counts"),
    option("--with", "REFERENCE", "compare with another model (.xml), openvino, onnx or onnxruntime", dest="reference"),
    tolerances(),
    defaults(ulp=None, tolerance=[]),
    option("--jobs", "N", "number of processes (one per core)", type=positive),
    option("--on", "dask://HOST:PORT", "the workers of a Dask cluster, which see the same files"),
    option("--out", "FILE", "the file for the results (sweep.sqlite)", default="sweep.sqlite"),
    option("--seconds", "N", "time limit of the run of an input (60)", type=seconds, default=60.0),
    RULES,
    ENGINE,
    open_sequences("names the step"),
    option(
        "--open",
        "N",
        "with a file of results: open the debugger on input N, or without N the table of inputs",
        type=positive,
        nargs="?",
        const=0,
    ),
    flag("--ascii", "with --open: use ASCII only"),
    flag("--light", "with --open: use a light theme"),
    JSON,
    QUIET,
    examples=(
        "model.xml --inputs 'set/*.npz'",
        "model.xml --random 1000 --check",
        "sweep.sqlite --open 12",
    ),
)

_command(
    "passes",
    "name the first pass of OpenVINO that changes what a model computes",
    "Compile the model in OpenVINO, and run it with numpy after some of its transformations. Name the first one "
    "that changes outputs, shapes, or a loop's values or iterations. Exit code 1 if there is one.",
    MODEL,
    INPUTS,
    STATES,
    RULES,
    DEVICE,
    tolerances("1e-4", "1e-5"),
    flag("--all", "run the model after each pass that changes it, and print a line per pass"),
    JSON,
    QUIET,
    examples=(
        "model.xml --inputs inputs.npz",
        "model.xml --inputs inputs.npz --all",
        "model.xml --input '*=rand:0' --device CPU",
    ),
)

APPLICATION = group(
    GIVEN,
    option("--at", "ADDR", "start at this place, such as h_next or my_loop@3"),
    option("--script", "FILE", "start with the commands of this file"),
    flag("--no-run", "show the graph without running the model; c runs it"),
    option("--reference", "REFERENCE", "another model (.xml), a recorded run or an .npz to compare with"),
    session(
        "keep the session in this file, and restore it with its inputs if it exists; "
        "without this option, your state folder keeps a session per model",
        "skip breakpoints, watches and labels of the start-up file (stepper/init, as in stepper debug)",
    ),
    KEYS,
    DEBUGGING,
    option("--dap", "PORT", "let an editor join this run, on 127.0.0.1 (0: a free port)", type=port),
    flag("--ascii", "use ASCII only"),
    flag("--light", "use a light theme"),
)
"""Options of the application, without the model; the model may replace the command."""


_command(
    "tui",
    "open a model on the whole terminal",
    "Step through a model's loops on the whole terminal. The key ? lists the keys.",
    MODEL,
    APPLICATION,
    examples=(
        "model.xml --inputs inputs.npz",
        "model.xml --inputs inputs.npz --at h_next@3",
        "model.onnx --input '*=rand:0'",
    ),
)

_command(
    "completion",
    "print the completion script for bash, zsh or fish",
    'Print the completion script of a shell. Put eval "$(stepper completion bash)" into ~/.bashrc, the line for zsh '
    "after compinit into ~/.zshrc, or stepper completion fish | source into ~/.config/fish/config.fish.",
    choice("shell", ("bash", "zsh", "fish"), "the shell"),
    examples=(
        "bash",
        "zsh",
        "fish",
    ),
)

_command(
    "help",
    "explain commands, values, and keys of the application",
    "Print the syntax of a command, an address, an expression, a breakpoint or an input. Print the keys of the "
    "application, or the schemas of all JSON answers.",
    option("topic", "TOPIC", "such as addresses, run, keys, exit codes; without it, all topics", nargs="*"),
    KEYS,
    JSON,
    examples=(
        "",
        "breakpoints",
        "addresses",
    ),
)
COMMANDS = MappingProxyType({name: text for name, (text, *_) in _COMMANDS.items()})
"""The commands in one line each; the module of its name in stepper.cli.commands carries out each of them."""
