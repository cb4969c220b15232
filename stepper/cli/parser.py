"""The words of the command line; imports nothing heavy, so that `--help` and a mistyped option answer at once."""

from __future__ import annotations

import argparse
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final, cast

from stepper import __version__
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
    scale,
    seconds,
    seed,
    session,
    tolerances,
)
from stepper.cli.options.cases import put_case
from stepper.cli.usage import Option, Parser, check_first, choice, defaults, flag, group, option, repeated
from stepper.errors import EXIT_CODES
from stepper.files.kinds import is_case, is_model_path


def parser() -> Parser:
    """Return the parser of the whole command line."""
    return command_line()[0]


@cache
def command_line(only: str | None = None) -> tuple[Parser, argparse._SubParsersAction[Parser]]:
    """Return the parser of the whole command line, and its argument that is the command, with a parser for each.

    With `only`, the others know no options: those of all commands take longer than `--help` may.
    """
    top = Parser(
        prog="stepper",
        description="A debugger for the loops of a neural network: runs an OpenVINO IR with numpy.",
        epilog=f"exit codes: {', '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}",
    )
    top.add_argument("--version", action="version", version=f"stepper {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (text, description, add) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=description)
        if only is None or name == only:
            add(command)
    return top, commands


def command_parsers() -> Mapping[str, Parser]:
    """Return the parsers of the commands by name."""
    return command_line()[1].choices


def parsed(words: Sequence[str]) -> Namespace:
    """Return the options that these words give. Raise UsageError, in one line, for words that are wrong."""
    words = list(words)
    if words and words[0] not in COMMANDS and (is_model_path(words[0]) or is_case(words[0])):
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


_COMMANDS: Final[dict[str, tuple[str, str, Option]]] = {}


def _command(name: str, text: str, description: str, *options: Option) -> None:
    _COMMANDS[name] = text, description, group(*options)


def _duration(text: str) -> float:
    return seconds(text.removesuffix("s"))


_command(
    "run",
    "run a model and report its outputs and loops",
    "Run the whole model and report its outputs, and for each loop its iterations and what ended it.",
    option("model", "MODEL", MODEL_HELP, nargs="?"),
    GIVEN,
    option("--outputs -o", "FILE.npz", "write the outputs there (- for stdout), in their order"),
    option("--save-states", "FILE.npz", "write the variables there as the run leaves them"),
    RULES,
    open_sequences("the same results, slower, but the report counts its steps and a failure names one"),
    repeated(
        "--break",
        "SPEC",
        "end with exit code 1 where this happens, and say why: nan, inf, cond, stuck, grow>X, ..., "
        "or TARGET [if EXPR], as the break command of stepper debug takes it",
        dest="breaks",
    ),
    ENGINE,
    option("--trace", "FILE", "record the run into this file (SQLite), to look at or to resume"),
    choice(
        "--record",
        ("all", "carried", "stats", "none"),
        "of the values of bodies: all; carried values and pieces of outputs (default); statistics alone; nothing",
    ),
    option("--record-ops", "REGEX", "record only layers whose name has a match"),
    option("--record-iters", "RANGES", "record only these iterations, such as 0:10,-1"),
    option("--resume", "FILE", "go on with an interrupted recording, to the same outputs"),
    option("--model", "PATH", "where the model of --resume is now", dest="model_path"),
    JSON,
    flag("-q --quiet", "no notes and no progress on stderr"),
)

_command(
    "debug",
    "step through a model's loops, forward and backward",
    "Carry out commands on a run of the model, from a file or as they are typed; `help` among them lists them all. "
    "From a pipe the exit code is that of the first error, which names its line; --script - ends there.",
    MODEL,
    GIVEN,
    option("--save-states", "FILE.npz", "write the variables there as they are when the debugger is left"),
    option("--script", "FILE", "commands from this file (- for stdin); the first one that fails ends it"),
    session(
        "keep breakpoints, watches, marks, branches and the place there; where it exists, go on with them, "
        "on the inputs that it has; without this, at a terminal, they are kept by model in the user's state folder",
        "leave the start-up file alone: commands in stepper/init of the configuration folder (~/.config)",
    ),
    option(
        "--reference",
        "REFERENCE",
        "another model, a recorded run, an .npz, onnx, onnxruntime, or openvino (each operation once more, on "
        "the same inputs): for ref(x) in expressions, and break diff>X",
    ),
    DEBUGGING,
    flag("--json", "one JSON object a line on stdout for each command"),
)

_command(
    "dap",
    "let an editor debug: the Debug Adapter Protocol on stdin and stdout or a port",
    "Let an editor debug, by the Debug Adapter Protocol: on stdin and stdout, as editors start it, or for "
    "one after another on a port of this machine. What the launch configuration of the editor does not say, these "
    "options do; its arguments have their names.",
    option("model", "MODEL", MODEL_HELP, nargs="?"),
    GIVEN,
    repeated("--break", "SPEC", "a breakpoint from the start, as run --break takes it", dest="breaks"),
    option("--reference", "REFERENCE", "another model (.xml), a recorded run or an .npz to compare with"),
    DEBUGGING,
    option(
        "--port",
        "N",
        "listen there on 127.0.0.1 (0: on one that is free) for clients that bring the token that is printed",
        type=port,
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
        "only the loops of this name, and the entries of port maps and back edges by which a layer, input or "
        "output of this name goes in, out or round",
        nargs="*",
        default=[],
    ),
    open_sequences("its port map, its back edges, and the operations of its body"),
    JSON,
)

_command(
    "lint",
    "name what is wrong with the loops of a file, without a run",
    "Name all that is wrong with the loops of a file in one go, without inputs and without a run: exit code 1 for "
    "errors and warnings, 0 for notes alone. A project selects and ignores in [lint] of stepper.toml, or in "
    "[tool.stepper.lint] of pyproject.toml.",
    option("models", "MODEL", "the .xml of an OpenVINO IR; the .bin may be missing", nargs="*"),
    repeated("--select", "RULE", "ask these rules alone: a name, an id, or how ids begin (B, C2)"),
    repeated("--ignore", "RULE", "leave these rules out"),
    option(
        "--changed",
        "COMMIT",
        "look at the models of the git work tree that differ from a commit (HEAD), new ones among them",
        nargs="?",
        const="HEAD",
    ),
    flag("--skip-others", "pass over files that are no IR, such as other .xml, as --changed does"),
    flag("--rules", "list the rules that are asked"),
    option("--explain", "RULE", "what a rule says and means, with an example"),
    LOGS,
    JSON,
)

_command(
    "check",
    "name what is wrong with a model on given inputs, by its file and one run",
    "Hold the file against the rules of stepper lint and one watched run against rules of its own: where NaN and "
    "Inf are born, loops that do not end, states that are stuck, repeat or grow; and hold it against a reference. "
    "The gravest comes first, each finding with what shows it in the debugger.",
    MODEL,
    GIVEN,
    RULES,
    ENGINE,
    open_sequences("their states are watched, too"),
    option(
        "--with",
        "REFERENCE",
        "compare with another model, a recorded run, values (.npz), openvino, onnx, onnxruntime, or none; "
        "without it with OpenVINO where that is installed and the run is short",
        dest="reference",
    ),
    tolerances(),
    defaults(align=None, ulp=None, tolerance=[]),
    option(
        "--seconds",
        "N",
        "how long the run may take; one that can never end stops after 2 (60)",
        type=seconds,
        default=60.0,
    ),
    choice(
        "--as",
        ("f16", "bf16", "i8-weights"),
        "run it in fewer bits as well: which operation cannot bear it, and which have to stay in f32",
        dest="narrowing",
    ),
    option(
        "--loss",
        "X",
        "how far an output may be off with --as, relative to its norm (f16 0.01, else 0.05)",
        type=seconds,
    ),
    option("--keep-in-f32", "FILE.xml", "write the model there with what has to stay in f32 marked for OpenVINO"),
    repeated("--select", "RULE", "ask these rules alone: a name, an id, or how ids begin (D, C2)"),
    repeated("--ignore", "RULE", "leave these rules out"),
    choice("--fail-on", ("error", "warning", "note"), "exit code 1 from this severity on (warning)", default="warning"),
    LOGS,
    JSON,
    QUIET,
)

_command(
    "why",
    "say why a value is what it is, and which elements it depends on",
    "Run the model and say why a value is what it is: the way back from an element through operations, slices and "
    "back edges, and all elements of inputs and constants that it depends on. With --uses: where an element goes.",
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
    open_sequences("their iterations are followed, too"),
    option(
        "--reference", "REFERENCE", "follow only what differs from it: openvino, a recording, a model or values (.npz)"
    ),
    flag("--uses", "where the element goes instead: operations, iterations, outputs"),
    JSON,
    QUIET,
)

_command(
    "compare",
    "find where two runs part: two models, a recording, values, OpenVINO",
    "Run the model beside a reference and report the first place where they part, in which loop and iteration, and "
    "why: exit code 1 if they differ, 0 if not.",
    MODEL,
    option(
        "--with",
        "REFERENCE",
        "another model, a recorded run, values (.npz with keys NAME@ITERATION), openvino (default; of a case what "
        "came out), or for an .onnx: onnx (its reference evaluator), onnxruntime",
        dest="reference",
    ),
    GIVEN,
    RULES,
    choice(
        "--engine",
        ("numpy", "numpy-f16", "numpy-bf16"),
        "who computes our side: numpy (default), or numpy with every float rounded to f16 or bf16; the tolerances "
        "are then those of that type",
        default="numpy",
    ),
    RUNTIME,
    tolerances(),
    option("--ulp", "N", "numbers at most N steps of their type apart agree as well", type=positive),
    repeated(
        "--tolerance",
        "NAME=RTOL[,ATOL]",
        "the tolerance of an element type, a type of operation or a layer (may be repeated)",
    ),
    option("--align", "FILE", "which layers stand for each other, where names do not tell: lines 'a = b' or JSON"),
    flag("--per-op", "also list every operation"),
    open_sequences("so that it compares with such a loop, and its steps are compared"),
    JSON,
    QUIET,
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
    flag("--stats", "statistics in place of values"),
    option("--digits", "N", "digits of floating-point numbers", type=positive),
    flag("--csv", "one line for each element (with --stats: each iteration)"),
    option("--npy", "FILE", "write one array; of several iterations along a new first axis"),
    JSON,
)

_command(
    "find",
    "the moments of a recorded run at which something holds",
    "Find the moments of a run that was recorded with stepper run --trace at which a predicate holds. "
    "Exit code 1 where there are any, 0 where there are none.",
    TRACE,
    option("predicate", "PREDICATE", "an expression such as 'max(h) > 2'; or nan, inf: in anything recorded"),
    choice("which", ("first", "last", "all"), "(first)", nargs="?", default="first"),
    option("--limit", "N", "of all at most so many (1000)", type=positive, default=1000),
    JSON,
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
    from stepper.files.kinds import FORMATS  # here, for the speed of --help

    group(
        option("model", "TRACE|MODEL", "the .xml of an OpenVINO IR, or a recording of run --trace"),
        choice(
            "--as", FORMATS, f"{', '.join(FORMATS)}; else the suffix of -o, or svg", dest="format", metavar="FORMAT"
        ),
        choice(
            "--view",
            FigureView,
            "the whole model, a loop's body, the iterations of a run, a loop's port map, why something is so",
        ),
        option("--why", "ADDR", "a story: where the value comes from across iterations; end: why a loop ended"),
        option("--loop", "NAME", "which loop of several; OUTER@2::INNER: its run in iteration 2 of OUTER"),
        option("--model", "PATH", "where the model of a recording is, if it has moved", dest="model_path"),
        option("--iters", "RANGES", "which iterations are drawn, such as 0:3,-1; : draws all"),
        choice("--values", ValueDetail, "how much is said of each value (none)", default="none"),
        choice(
            "--constants",
            ConstantStyle,
            "small ones in the box of what reads them, boxes of their own, or none (inline)",
            default="inline",
        ),
        choice(
            "--blocks",
            BlockStyle,
            "blocks that repeat: each, or one with a count (once in figures of more than 100 boxes)",
        ),
        choice(
            "--theme",
            Theme,
            "auto follows the reader's colour scheme (default), page that of the page with the SVG in it",
            default="auto",
        ),
        repeated("--only", "REGEX", "draw only operations of this name or type"),
        repeated("--hide", "REGEX", "draw operations of this name or type as groups"),
        option(
            "--depth",
            "N",
            "how many levels of bodies are drawn inside of their layer (all of a small model)",
            type=count,
        ),
        flag("--carried", "of bodies draw only what goes in, is carried and comes out"),
        option("--highlight", "ADDRESS", "mark an operation, such as decoder::Softmax@3"),
        option("--around", "OP", "draw the neighbourhood of an operation alone"),
        option("--hops", "N", "how far the neighbourhood reaches (2)", type=count),
        option("--from", "OP", "with --to: draw the operations on all ways from here to there alone", dest="begin"),
        option("--to", "OP", "where these ways end", dest="end"),
        option(
            "--diff",
            "RUN",
            "draw where the run and another one part: a recording, another model, an .npz, openvino, onnx, onnxruntime",
        ),
        option("--detail", "OP", "draw the whole small, and the neighbourhood of an operation large beside it"),
        choice(
            "--preset",
            Preset,
            "the page to fit: paper (84 mm, or --width 170mm), slide (1280 x 720), docs (820 pixels)",
        ),
        choice("--direction", TimeDirection, "of the iterations: down (default), or right, as in a textbook"),
        option("--title", "TEXT", "in place of the figure's own title ('': none)"),
        option("--caption", "TEXT", "text for readers who do not see the figure, before its own description"),
        choice("--legend", ("on", "off"), "what the lines and boxes of the figure mean (on)", default="on"),
        option("--scale", "N", "pixels of a PNG for one of the figure (1)", type=scale, default=1.0),
        option("--width", "WIDTH", "fit the page: pixels, or such as 84mm", type=page_width),
        choice(
            "--layout",
            LayoutEngine,
            "who lays SVG, PDF and PNG out (own: the same bytes everywhere)",
            default="own",
        ),
        option("--frames", "DIR", "a drawing for each iteration, all of one size, as DIR/0000.svg, ..."),
        flag("--animate", "an SVG that plays the iterations, in an <img> as well, without a script"),
        flag("--embed", "an HTML page for an <iframe>: without heading and facts"),
        option("--pace", "SECONDS", "how long it shows each iteration (1.2)", type=pace),
        option(
            "--check",
            "FILE",
            "write nothing; exit with 1 where FILE (with --frames the folder DIR) is not what would be written",
        ),
        option("-o", "FILE", "write there (- for stdout, the default)", dest="output"),
        GIVEN,
        RULES,
        ENGINE,
        open_sequences("their steps can be drawn"),
        flag("-q --quiet", "no notes on stderr"),
    )(command)


_command(
    "export",
    "draw a model or a run: figures and tables for documents",
    "Draw a model, a loop's body, its port map, or the iterations of a run; the same bytes each time. "
    "SVG, PDF and PNG are drawn by the program itself.",
    _export,
)

_command(
    "figures",
    "write all figures that a file lists, or check that they are current",
    "Write the figures that a file lists, or check that they are current. Each [[figure]] of the file has a name, "
    "a model, a file (or several) and the options of stepper export; [defaults] has options of all.",
    option("names", "NAME", "only these figures", nargs="*"),
    option("--file", "FILE", "the list (figures.toml)", default="figures.toml"),
    flag("--check", "write nothing; exit with 1 where a figure is not what would be written"),
    flag("--list", "print the names and the files alone"),
    JSON,
    flag("-q --quiet", "print nothing of what is written"),
)

_command(
    "reduce",
    "make a model with a fault small, and write what shows and reports it",
    "Make a model with a fault small, and its inputs with it: operations become constants or are bypassed, loops "
    "are opened, dims, trip counts and values shrink, as long as the same fault is there. Each trial runs in a "
    "process with limits. The folder has the model, reproduce.py, test_reduced.py and REPORT.md (exit code 1; 0 "
    "where there is no such fault). Ctrl+C keeps the best so far.",
    MODEL,
    GIVEN,
    option("-o --output", "DIR", "the folder for the smallest model and what shows it", required=True),
    option("--break", "SPEC", "the fault: the run stops there, as in run --break", dest="break_spec"),
    flag("--error", "the fault: the run ends in an error, or OpenVINO refuses the model or crashes"),
    option(
        "--differs",
        "REFERENCE",
        "the fault: other results than openvino, or than a healthy model (made small with it); without any of "
        "the three, whichever holds",
        dest="reference",
    ),
    option("--time", "SECONDS", "how long it may take (300)", type=seconds, default=300.0),
    RULES,
    ENGINE,
    tolerances(),
    JSON,
    QUIET,
)

_command(
    "hunt",
    "run random loops here and in OpenVINO, and name and make small what differs",
    "Build random models with loops, run them here and in OpenVINO, and name each disagreement: it is made small, "
    "known faults of the runtime are recognised, and each fault is counted once, with its smallest case in DIR "
    "(exit code 1; 0 where all agree). The same seed is the same model. Ctrl+C loses nothing: the same command "
    "goes on. With --fault NAME: run the smallest case of a known fault, and say whether it is there (exit code 1).",
    option("-o --output", "DIR", "the folder for the record and the cases"),
    option("--fault", "NAME", "instead: show a known fault (all: each of them) by its smallest case"),
    option("--seed", "N", "the first seed (0)", type=count, default=0),
    option("--count", "N", "how many seeds (100; with --time all)", type=positive),
    option("--time", "SECONDS", "how long to begin new seeds, such as 60s", type=_duration),
    choice(
        "--profile",
        ("loops", "port-maps", "operations", "quantised"),
        "what varies: all of a loop (default), slices and port maps, operations and types, quantised values",
        default="loops",
    ),
    JSON,
    QUIET,
)

_command(
    "capture",
    "run an application, and keep its calls of OpenVINO that go wrong as cases",
    "Run an application, and keep the calls of OpenVINO's Python interface in it that go wrong: each as a case, a "
    "folder with the model, the inputs and the variables of the call, and what came out, which every command takes "
    "in place of a model. The application computes what it computes without. Its exit code; 1 where it is 0 and "
    "there are cases.",
    repeated(
        "--when", "WHAT", "keep calls with nan or inf in an output, with an error, any, or the one of a number (nan)"
    ),
    option("--to", "DIR", "the folder for the cases (cases)", default="cases"),
    option("--most", "N", "of each process at most so many cases (5)", type=positive, default=5),
    option(
        "--calls",
        "N",
        "keep in each case so many calls of its request, up to the one that goes wrong: it opens as a loop over them",
        type=positive,
        default=1,
    ),
    JSON,
    option(
        "application",
        "-- COMMAND",
        "what is to run, such as python app.py; also programs that start Python themselves",
        nargs=argparse.REMAINDER,
    ),
)

_command(
    "cases",
    "list the cases of a folder",
    "List the cases of a folder: folders with a model, as stepper capture and reduce write them.",
    option("folder", "DIR", "the folder (cases)", nargs="?", default="cases"),
    JSON,
)

_command(
    "sweep",
    "run the model on thousands of inputs, and say which of them go wrong, and where",
    "Run the model on thousands of inputs, in as many processes as there are cores, and say which of them stop at "
    "a breakpoint (nan), which check finds fault with or which differ from a reference, where, and in which "
    "iterations; and how long loops run. Results go into a file as they come: the same command goes on after "
    "Ctrl+C, or whatever ended it. Exit code 1 where anything shows. With the file in place of a model: what it "
    "has; with --open the table on the screen, with --open N the debugger on that input, there.",
    option("model", "MODEL|FILE", f"{MODEL_HELP}; or the file of a sweep"),
    option(
        "--inputs",
        "PATTERN",
        "an input each: .npz files (a pattern such as 'set/*.npz', or a folder of them), or a folder of cases",
        dest="patterns",
        nargs="+",
    ),
    flag("--leading-axis", "each index of the first axis of the arrays of a file is an input"),
    option("--random", "N", "N inputs of random numbers: '*=rand:SEED'", type=positive),
    option("--seed", "N", "the first seed of --random (0)", type=seed, default=0),
    option(
        "--generate",
        "PKG.MODULE:FUNCTION",
        "call a function with 0, 1, 2, ...; it returns arrays by name. Its module is imported, from here too",
    ),
    option("--count", "N", "how often --generate calls it", type=positive),
    repeated(
        "--input", "NAME=SPEC", "a value for an input that is the same in all runs, by name, tensor name or position"
    ),
    repeated("--shape", "NAME=1,5,4", "the shape that --random takes for an input whose shape is open"),
    STATES,
    repeated(
        "--break", "SPEC", "what to look for, as in run --break; without --check and --with it is nan", dest="breaks"
    ),
    flag("--check", "ask the rules of stepper check; the gravest finding counts"),
    option("--with", "REFERENCE", "compare with another model (.xml), openvino, onnx or onnxruntime", dest="reference"),
    tolerances(),
    defaults(ulp=None, tolerance=[]),
    option("--jobs", "N", "how many processes (as many as there are cores)", type=positive),
    option("--on", "dask://HOST:PORT", "the workers of a Dask cluster, which see the same files"),
    option("--out", "FILE", "the file for the results (sweep.sqlite)", default="sweep.sqlite"),
    option("--seconds", "N", "how long the run of an input may take (60)", type=seconds, default=60.0),
    RULES,
    ENGINE,
    open_sequences("one learns in which step it shows"),
    option(
        "--open",
        "N",
        "of a sweep's file: open the debugger on input N, or without N the table, from which inputs are opened",
        type=positive,
        nargs="?",
        const=0,
    ),
    flag("--ascii", "of --open: for a terminal without line drawing and other symbols"),
    flag("--light", "of --open: dark letters on a light ground"),
    JSON,
    QUIET,
)

_command(
    "passes",
    "name the first pass of OpenVINO that changes what a model computes",
    "Compile the model in OpenVINO, run it with numpy after a few of its transformations, and name the first after "
    "which outputs, shapes or a loop's values or iterations differ (exit code 1).",
    MODEL,
    INPUTS,
    STATES,
    RULES,
    DEVICE,
    tolerances("1e-4", "1e-5"),
    flag("--all", "run the model after each pass that changes it; a line for each"),
    JSON,
    QUIET,
)

APPLICATION: Final = group(
    GIVEN,
    option("--at", "ADDR", "begin where a breakpoint there would stop, such as h_next or my_loop@3"),
    option("--script", "FILE", "begin with the commands of this file"),
    flag("--no-run", "show the overview without running the model for it; c there runs it"),
    option("--reference", "REFERENCE", "another model (.xml), a recorded run or an .npz to compare with"),
    session(
        "keep the session there, and go on with it where it exists, on the inputs that it has; "
        "without this it is kept by model in the user's state folder",
        "leave breakpoints, watches and labels of the start-up file alone (stepper/init, as of stepper debug)",
    ),
    KEYS,
    DEBUGGING,
    option("--dap", "PORT", "let an editor join this run, on 127.0.0.1 (0: a free port)", type=port),
    flag("--ascii", "for a terminal without line drawing and other symbols"),
    flag("--light", "dark letters on a light ground"),
)
"""The options of the application, without the model, which may stand in place of the command."""


_command(
    "tui",
    "the debugger on the whole terminal; also: stepper MODEL",
    "Step through a model's loops on the whole terminal; ? there lists the keys.",
    MODEL,
    APPLICATION,
)

_command(
    "completion",
    "the script with which bash, zsh or fish completes the command line",
    'Print the script with which a shell completes the command line: put eval "$(stepper completion bash)" into '
    "~/.bashrc, the same with zsh behind compinit into ~/.zshrc, or stepper completion fish | source into "
    "~/.config/fish/config.fish.",
    choice("shell", ("bash", "zsh", "fish"), "the shell"),
)

_command(
    "help",
    "how commands and what they take are written; the keys of the application",
    "Print how a command, an address, an expression, a breakpoint or an input is written; the keys of the "
    "application; or the schemas of all answers as JSON.",
    option("topic", "TOPIC", "such as addresses, run, keys, exit codes; without it, all topics", nargs="*"),
    KEYS,
    JSON,
)
COMMANDS: Final = MappingProxyType({name: text for name, (text, *_) in _COMMANDS.items()})
"""The commands in one line each; the module of its name in stepper.cli.commands carries out each of them."""
