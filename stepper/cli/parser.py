"""The words of the command line; imports nothing heavy, so that `--help` and a mistyped option answer at once."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final, cast

from stepper import __version__
from stepper.cli import arguments
from stepper.cli.options.cases import put_case
from stepper.cli.usage import Parser, check_first
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
    for name, (text, add) in _COMMANDS.items():
        command = commands.add_parser(name, help=text)
        if only is None or name == only:
            add(command)
    return top, commands


def command_parsers() -> Mapping[str, Parser]:
    """Return the parsers of the commands by name."""
    return command_line()[1].choices


def parsed(words: Sequence[str]) -> argparse.Namespace:
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
    return cast("argparse.Namespace", options)


def _with_ranges(words: Sequence[str]) -> list[str]:
    """Return the words, with a range that begins with a minus joined to its option: argparse takes it for an option."""
    found: list[str] = []
    for word in words:
        if found and found[-1] in ("--iters", "--record-iters") and re.match(r"-[0-9]", word):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _add_run(run: Parser) -> None:
    run.description = "Run the whole model and report its outputs, and for each loop its iterations and what ended it."
    add = run.add_argument
    add("model", metavar="MODEL", nargs="?", help=arguments.MODEL)
    arguments.add_inputs(run)
    arguments.add_calls(run)
    arguments.add_states(run)
    add("--outputs", "-o", metavar="FILE.npz", help="write the outputs there (- for stdout), in their order")
    add("--save-states", metavar="FILE.npz", help="write the variables there as the run leaves them")
    arguments.add_rules(run)
    arguments.add_open_sequences(
        run, "the same results, slower, but the report counts its steps and a failure names one"
    )
    run.add_repeated(
        "--break",
        "SPEC",
        "end with exit code 1 where this happens, and say why: nan, inf, cond, stuck, grow>X, ..., "
        "or TARGET [if EXPR], as the break command of stepper debug takes it",
        dest="breaks",
    )
    arguments.add_engine(run)
    add("--trace", metavar="FILE", help="record the run into this file (SQLite), to look at or to resume")
    amounts = "of the values of bodies: all; carried values and pieces of outputs (default); statistics alone; nothing"
    add("--record", choices=("all", "carried", "stats", "none"), help=amounts)
    add("--record-ops", metavar="REGEX", help="record only layers whose name has a match")
    add("--record-iters", metavar="RANGES", help="record only these iterations, such as 0:10,-1")
    add("--resume", metavar="FILE", help="go on with an interrupted recording, to the same outputs")
    add("--model", dest="model_path", metavar="PATH", help="where the model of --resume is now")
    arguments.add_json(run)
    run.add_flag("-q", "--quiet", help="no notes and no progress on stderr")


def _add_capture(command: Parser) -> None:
    command.description = (
        "Run an application, and keep the calls of OpenVINO's Python interface in it that go wrong: each as a case, a "
        "folder with the model, the inputs and the variables of the call, and what came out, which every command takes "
        "in place of a model. The application computes what it computes without. Its exit code; 1 where it is 0 and "
        "there are cases."
    )
    command.add_repeated(
        "--when",
        "WHAT",
        "keep calls with nan or inf in an output, with an error, any, or the one of a number (nan)",
    )
    command.add_argument("--to", metavar="DIR", default="cases", help="the folder for the cases (cases)")
    command.add_argument(
        "--most", type=arguments.positive, default=5, metavar="N", help="of each process at most so many cases (5)"
    )
    so_many = (
        "keep in each case so many calls of its request, up to the one that goes wrong: it opens as a loop over them"
    )
    command.add_argument("--calls", type=arguments.positive, default=1, metavar="N", help=so_many)
    arguments.add_json(command)
    command.add_argument(
        "application",
        metavar="-- COMMAND",
        nargs=argparse.REMAINDER,
        help="what is to run, such as python app.py; also programs that start Python themselves",
    )


def _add_cases(command: Parser) -> None:
    command.description = "List the cases of a folder: folders with a model, as stepper capture and reduce write them."
    command.add_argument("folder", metavar="DIR", nargs="?", default="cases", help="the folder (cases)")
    arguments.add_json(command)


def _add_sweep(command: Parser) -> None:
    command.description = (
        "Run the model on thousands of inputs, in as many processes as there are cores, and say which of them stop at "
        "a breakpoint (nan), which check finds fault with or which differ from a reference, where, and in which "
        "iterations; and how long loops run. Results go into a file as they come: the same command goes on after "
        "Ctrl+C, or whatever ended it. Exit code 1 where anything shows. With the file in place of a model: what it "
        "has; with --open the table on the screen, with --open N the debugger on that input, there."
    )
    add = command.add_argument
    add("model", metavar="MODEL|FILE", help=f"{arguments.MODEL}; or the file of a sweep")
    add(
        "--inputs",
        dest="patterns",
        metavar="PATTERN",
        nargs="+",
        help="an input each: .npz files (a pattern such as 'set/*.npz', or a folder of them), or a folder of cases",
    )
    command.add_flag("--leading-axis", help="each index of the first axis of the arrays of a file is an input")
    add("--random", type=arguments.positive, metavar="N", help="N inputs of random numbers: '*=rand:SEED'")
    add("--seed", type=arguments.seed, default=0, metavar="N", help="the first seed of --random (0)")
    add(
        "--generate",
        metavar="PKG.MODULE:FUNCTION",
        help="call a function with 0, 1, 2, ...; it returns arrays by name. Its module is imported, from here too",
    )
    add("--count", type=arguments.positive, metavar="N", help="how often --generate calls it")
    command.add_repeated(
        "--input",
        "NAME=SPEC",
        "a value for an input that is the same in all runs, by name, tensor name or position",
    )
    command.add_repeated("--shape", "NAME=1,5,4", "the shape that --random takes for an input whose shape is open")
    arguments.add_states(command)
    command.add_repeated(
        "--break", "SPEC", "what to look for, as in run --break; without --check and --with it is nan", dest="breaks"
    )
    command.add_flag("--check", help="ask the rules of stepper check; the gravest finding counts")
    add(
        "--with",
        dest="reference",
        metavar="REFERENCE",
        help="compare with another model (.xml), openvino, onnx or onnxruntime",
    )
    arguments.add_tolerances(command)
    command.set_defaults(ulp=None, tolerance=[])
    add("--jobs", type=arguments.positive, metavar="N", help="how many processes (as many as there are cores)")
    add("--on", metavar="dask://HOST:PORT", help="the workers of a Dask cluster, which see the same files")
    add("--out", default="sweep.sqlite", metavar="FILE", help="the file for the results (sweep.sqlite)")
    add(
        "--seconds",
        type=arguments.seconds,
        default=60.0,
        metavar="N",
        help="how long the run of an input may take (60)",
    )
    arguments.add_rules(command)
    arguments.add_engine(command)
    arguments.add_open_sequences(command, "one learns in which step it shows")
    opening = "of a sweep's file: open the debugger on input N, or without N the table, from which inputs are opened"
    add("--open", type=arguments.positive, nargs="?", const=0, metavar="N", help=opening)
    command.add_flag("--ascii", help="of --open: for a terminal without line drawing and other symbols")
    command.add_flag("--light", help="of --open: dark letters on a light ground")
    arguments.add_json(command)
    command.add_flag("-q", "--quiet", help="no progress on stderr")


def _add_passes(passes: Parser) -> None:
    passes.description = (
        "Compile the model in OpenVINO, run it with numpy after a few of its transformations, and name the first after "
        "which outputs, shapes or a loop's values or iterations differ (exit code 1)."
    )
    arguments.add_model(passes)
    arguments.add_inputs(passes)
    arguments.add_states(passes)
    arguments.add_rules(passes)
    arguments.add_device(passes)
    arguments.add_tolerances(passes, "1e-4", "1e-5")
    passes.add_flag("--all", help="run the model after each pass that changes it; a line for each")
    arguments.add_json(passes)
    passes.add_flag("-q", "--quiet", help="no progress on stderr")


def _add_reduce(command: Parser) -> None:
    command.description = (
        "Make a model with a fault small, and its inputs with it: operations become constants or are bypassed, loops "
        "are opened, dims, trip counts and values shrink, as long as the same fault is there. Each trial runs in a "
        "process with limits. The folder has the model, reproduce.py, test_reduced.py and REPORT.md (exit code 1; 0 "
        "where there is no such fault). Ctrl+C keeps the best so far."
    )
    arguments.add_model(command)
    arguments.add_inputs(command)
    arguments.add_calls(command)
    arguments.add_states(command)
    command.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="the folder for the smallest model and what shows it"
    )
    command.add_argument(
        "--break", dest="break_spec", metavar="SPEC", help="the fault: the run stops there, as in run --break"
    )
    command.add_flag("--error", help="the fault: the run ends in an error, or OpenVINO refuses the model or crashes")
    command.add_argument(
        "--differs",
        dest="reference",
        metavar="REFERENCE",
        help="the fault: other results than openvino, or than a healthy model (made small with it); without any of "
        "the three, whichever holds",
    )
    command.add_argument(
        "--time", type=arguments.seconds, default=300.0, metavar="SECONDS", help="how long it may take (300)"
    )
    arguments.add_rules(command)
    arguments.add_engine(command)
    arguments.add_tolerances(command)
    arguments.add_json(command)
    command.add_flag("-q", "--quiet", help="no progress on stderr")


def _add_hunt(command: Parser) -> None:
    command.description = (
        "Build random models with loops, run them here and in OpenVINO, and name each disagreement: it is made small, "
        "known faults of the runtime are recognised, and each fault is counted once, with its smallest case in DIR "
        "(exit code 1; 0 where all agree). The same seed is the same model. Ctrl+C loses nothing: the same command "
        "goes on. With --fault NAME: run the smallest case of a known fault, and say whether it is there (exit code 1)."
    )
    command.add_argument("-o", "--output", metavar="DIR", help="the folder for the record and the cases")
    command.add_argument(
        "--fault", metavar="NAME", help="instead: show a known fault (all: each of them) by its smallest case"
    )
    command.add_argument("--seed", type=arguments.count, default=0, metavar="N", help="the first seed (0)")
    command.add_argument("--count", type=arguments.positive, metavar="N", help="how many seeds (100; with --time all)")
    command.add_argument("--time", type=_duration, metavar="SECONDS", help="how long to begin new seeds, such as 60s")
    command.add_argument(
        "--profile",
        choices=("loops", "port-maps", "operations", "quantised"),
        default="loops",
        help="what varies: all of a loop (default), slices and port maps, operations and types, quantised values",
    )
    arguments.add_json(command)
    command.add_flag("-q", "--quiet", help="no progress on stderr")


def _duration(text: str) -> float:
    return arguments.seconds(text.removesuffix("s"))


def _add_debug(debug: Parser) -> None:
    debug.description = (
        "Carry out commands on a run of the model, from a file or as they are typed; `help` among them lists them all. "
        "From a pipe the exit code is that of the first error, which names its line; --script - ends there."
    )
    add = debug.add_argument
    arguments.add_model(debug)
    arguments.add_inputs(debug)
    arguments.add_calls(debug)
    arguments.add_states(debug)
    saved = "write the variables there as they are when the debugger is left"
    add("--save-states", metavar="FILE.npz", help=saved)
    add("--script", metavar="FILE", help="commands from this file (- for stdin); the first one that fails ends it")
    arguments.add_session(
        debug,
        "keep breakpoints, watches, marks, branches and the place there; where it exists, go on with them, "
        "on the inputs that it has; without this, at a terminal, they are kept by model in the user's state folder",
        "leave the start-up file alone: commands in stepper/init of the configuration folder (~/.config)",
    )
    add(
        "--reference",
        metavar="REFERENCE",
        help="another model, a recorded run, an .npz, onnx, onnxruntime, or openvino (each operation once more, on "
        "the same inputs): for ref(x) in expressions, and break diff>X",
    )
    arguments.add_debugging(debug)
    debug.add_flag("--json", help="one JSON object a line on stdout for each command")


def _add_dap(dap: Parser) -> None:
    dap.description = (
        "Let an editor debug, by the Debug Adapter Protocol: on stdin and stdout, as editors start it, or for "
        "one after another on a port of this machine. What the launch configuration of the editor does not say, these "
        "options do; its arguments have their names."
    )
    add = dap.add_argument
    add("model", metavar="MODEL", nargs="?", help=arguments.MODEL)
    arguments.add_inputs(dap)
    arguments.add_calls(dap)
    arguments.add_states(dap)
    dap.add_repeated("--break", "SPEC", "a breakpoint from the start, as run --break takes it", dest="breaks")
    add("--reference", metavar="REFERENCE", help="another model (.xml), a recorded run or an .npz to compare with")
    arguments.add_debugging(dap)
    add(
        "--port",
        type=arguments.port,
        metavar="N",
        help="listen there on 127.0.0.1 (0: on one that is free) for clients that bring the token that is printed",
    )


def _add_compare(compare: Parser) -> None:
    compare.description = (
        "Run the model beside a reference and report the first place where they part, in which loop and iteration, and "
        "why: exit code 1 if they differ, 0 if not."
    )
    add = compare.add_argument
    arguments.add_model(compare)
    add(
        "--with",
        dest="reference",
        metavar="REFERENCE",
        help="another model, a recorded run, values (.npz with keys NAME@ITERATION), openvino (default; of a case what "
        "came out), or for an .onnx: onnx (its reference evaluator), onnxruntime",
    )
    arguments.add_inputs(compare)
    arguments.add_calls(compare)
    arguments.add_states(compare)
    arguments.add_rules(compare)
    add(
        "--engine",
        choices=("numpy", "numpy-f16", "numpy-bf16"),
        default="numpy",
        help="who computes our side: numpy (default), or numpy with every float rounded to f16 or bf16; the tolerances "
        "are then those of that type",
    )
    arguments.add_runtime(compare)
    arguments.add_tolerances(compare)
    steps = "numbers at most N steps of their type apart agree as well"
    add("--ulp", type=arguments.positive, metavar="N", help=steps)
    compare.add_repeated(
        "--tolerance",
        "NAME=RTOL[,ATOL]",
        "the tolerance of an element type, a type of operation or a layer (may be repeated)",
    )
    pairs = "which layers stand for each other, where names do not tell: lines 'a = b' or JSON"
    add("--align", metavar="FILE", help=pairs)
    compare.add_flag("--per-op", help="also list every operation")
    arguments.add_open_sequences(compare, "so that it compares with such a loop, and its steps are compared")
    arguments.add_json(compare)
    compare.add_flag("-q", "--quiet", help="no progress on stderr")


def add_application(tui: Parser, *, has_model: bool = True) -> None:
    """Add the options of the application; without the model where that stands in place of the command."""
    tui.description = "Step through a model's loops on the whole terminal; ? there lists the keys."
    add = tui.add_argument
    if has_model:
        arguments.add_model(tui)
    arguments.add_inputs(tui)
    arguments.add_calls(tui)
    arguments.add_states(tui)
    add("--at", metavar="ADDR", help="begin where a breakpoint there would stop, such as h_next or my_loop@3")
    add("--script", metavar="FILE", help="begin with the commands of this file")
    tui.add_flag("--no-run", help="show the overview without running the model for it; c there runs it")
    add("--reference", metavar="REFERENCE", help="another model (.xml), a recorded run or an .npz to compare with")
    arguments.add_session(
        tui,
        "keep the session there, and go on with it where it exists, on the inputs that it has; "
        "without this it is kept by model in the user's state folder",
        "leave breakpoints, watches and labels of the start-up file alone (stepper/init, as of stepper debug)",
    )
    arguments.add_keys(tui)
    arguments.add_debugging(tui)
    add("--dap", type=arguments.port, metavar="PORT", help="let an editor join this run, on 127.0.0.1 (0: a free port)")
    tui.add_flag("--ascii", help="for a terminal without line drawing and other symbols")
    tui.add_flag("--light", help="dark letters on a light ground")


def _add_inspect(inspect: Parser) -> None:
    inspect.description = (
        "Show inputs, outputs, and every loop with its port map, back edges, trip count and condition."
    )
    arguments.add_model(inspect)
    inspect.add_argument(
        "names",
        nargs="*",
        default=[],
        metavar="NAME",
        help="only the loops of this name, and the entries of port maps and back edges by which a layer, input or "
        "output of this name goes in, out or round",
    )
    arguments.add_open_sequences(inspect, "its port map, its back edges, and the operations of its body")
    arguments.add_json(inspect)


def _add_print(command: Parser) -> None:
    command.description = "Show values of a run that was recorded with stepper run --trace; no model is needed."
    add = command.add_argument
    arguments.add_trace(command)
    addresses = "LEVEL::OP:PORT@ITER[SLICE], such as h_next@7, h_next@2:5, 'h*@-1', outer@3::inner@0::h, id=12, @-1"
    add("addresses", metavar="ADDR", nargs="+", help=addresses)
    command.add_flag("--stats", help="statistics in place of values")
    add("--digits", type=arguments.positive, metavar="N", help="digits of floating-point numbers")
    command.add_flag("--csv", help="one line for each element (with --stats: each iteration)")
    add("--npy", metavar="FILE", help="write one array; of several iterations along a new first axis")
    arguments.add_json(command)


def _add_find(command: Parser) -> None:
    command.description = (
        "Find the moments of a run that was recorded with stepper run --trace at which a predicate holds. "
        "Exit code 1 where there are any, 0 where there are none."
    )
    add = command.add_argument
    arguments.add_trace(command)
    predicate = "an expression such as 'max(h) > 2'; or nan, inf: in anything recorded"
    add("predicate", metavar="PREDICATE", help=predicate)
    add("which", nargs="?", choices=("first", "last", "all"), default="first", help="(first)")
    add("--limit", type=arguments.positive, default=1000, metavar="N", help="of all at most so many (1000)")
    arguments.add_json(command)


def _add_export(export: Parser) -> None:
    from stepper.export.options import (
        BlockStyle,
        ConstantStyle,
        FigureView,
        LayoutEngine,
        Preset,
        Theme,
        TimeDirection,
        ValueDetail,
    )  # here, for the speed of --help
    from stepper.files.kinds import FORMATS

    export.description = (
        "Draw a model, a loop's body, its port map, or the iterations of a run; the same bytes each time. "
        "SVG, PDF and PNG are drawn by the program itself."
    )
    export.add_argument(
        "model", metavar="TRACE|MODEL", help="the .xml of an OpenVINO IR, or a recording of run --trace"
    )
    add = export.add_argument
    names = ", ".join(FORMATS)
    add("--as", dest="format", choices=tuple(FORMATS), metavar="FORMAT", help=f"{names}; else the suffix of -o, or svg")
    add(
        "--view",
        choices=tuple(FigureView),
        help="the whole model, a loop's body, the iterations of a run, a loop's port map, why something is so",
    )
    add("--why", metavar="ADDR", help="a story: where the value comes from across iterations; end: why a loop ended")
    add(
        "--loop",
        metavar="NAME",
        help="which loop of several; OUTER@2::INNER: its run in iteration 2 of OUTER",
    )
    add("--model", dest="model_path", metavar="PATH", help="where the model of a recording is, if it has moved")
    add("--iters", metavar="RANGES", help="which iterations are drawn, such as 0:3,-1; : draws all")
    add("--values", choices=tuple(ValueDetail), default="none", help="how much is said of each value (none)")
    constants = "small ones in the box of what reads them, boxes of their own, or none (inline)"
    add("--constants", choices=tuple(ConstantStyle), default="inline", help=constants)
    blocks = "blocks that repeat: each, or one with a count (once in figures of more than 100 boxes)"
    add("--blocks", choices=tuple(BlockStyle), help=blocks)
    add(
        "--theme",
        choices=tuple(Theme),
        default="auto",
        help="auto follows the reader's colour scheme (default), page that of the page with the SVG in it",
    )
    export.add_repeated("--only", "REGEX", "draw only operations of this name or type")
    export.add_repeated("--hide", "REGEX", "draw operations of this name or type as groups")
    add(
        "--depth",
        type=arguments.count,
        metavar="N",
        help="how many levels of bodies are drawn inside of their layer (all of a small model)",
    )
    export.add_flag("--carried", help="of bodies draw only what goes in, is carried and comes out")
    add("--highlight", metavar="ADDRESS", help="mark an operation, such as decoder::Softmax@3")
    add("--around", metavar="OP", help="draw the neighbourhood of an operation alone")
    add("--hops", type=arguments.count, metavar="N", help="how far the neighbourhood reaches (2)")
    add(
        "--from", dest="begin", metavar="OP", help="with --to: draw the operations on all ways from here to there alone"
    )
    add("--to", dest="end", metavar="OP", help="where these ways end")
    diff = "draw where the run and another one part: a recording, another model, an .npz, openvino, onnx, onnxruntime"
    add("--diff", metavar="RUN", help=diff)
    add("--detail", metavar="OP", help="draw the whole small, and the neighbourhood of an operation large beside it")
    add(
        "--preset",
        choices=tuple(Preset),
        help="the page to fit: paper (84 mm, or --width 170mm), slide (1280 x 720), docs (820 pixels)",
    )
    add(
        "--direction",
        choices=tuple(TimeDirection),
        help="of the iterations: down (default), or right, as in a textbook",
    )
    add("--title", metavar="TEXT", help="in place of the figure's own title ('': none)")
    add("--caption", metavar="TEXT", help="text for readers who do not see the figure, before its own description")
    add("--legend", choices=("on", "off"), default="on", help="what the lines and boxes of the figure mean (on)")
    add("--scale", type=arguments.scale, default=1.0, metavar="N", help="pixels of a PNG for one of the figure (1)")
    add("--width", type=arguments.page_width, metavar="WIDTH", help="fit the page: pixels, or such as 84mm")
    add(
        "--layout",
        choices=tuple(LayoutEngine),
        default="own",
        help="who lays SVG, PDF and PNG out (own: the same bytes everywhere)",
    )
    add("--frames", metavar="DIR", help="a drawing for each iteration, all of one size, as DIR/0000.svg, ...")
    export.add_flag("--animate", help="an SVG that plays the iterations, in an <img> as well, without a script")
    export.add_flag("--embed", help="an HTML page for an <iframe>: without heading and facts")
    add("--pace", type=arguments.pace, metavar="SECONDS", help="how long it shows each iteration (1.2)")
    add(
        "--check",
        metavar="FILE",
        help="write nothing; exit with 1 where FILE (with --frames the folder DIR) is not what would be written",
    )
    add("-o", dest="output", metavar="FILE", help="write there (- for stdout, the default)")
    arguments.add_inputs(export)
    arguments.add_calls(export)
    arguments.add_states(export)
    arguments.add_rules(export)
    arguments.add_engine(export)
    arguments.add_open_sequences(export, "their steps can be drawn")
    export.add_flag("-q", "--quiet", help="no notes on stderr")


def _add_figures(command: Parser) -> None:
    command.description = (
        "Write the figures that a file lists, or check that they are current. Each [[figure]] of the file has a name, "
        "a model, a file (or several) and the options of stepper export; [defaults] has options of all."
    )
    add = command.add_argument
    add("names", metavar="NAME", nargs="*", help="only these figures")
    add("--file", metavar="FILE", default="figures.toml", help="the list (figures.toml)")
    command.add_flag("--check", help="write nothing; exit with 1 where a figure is not what would be written")
    command.add_flag("--list", help="print the names and the files alone")
    arguments.add_json(command)
    command.add_flag("-q", "--quiet", help="print nothing of what is written")


def _add_lint(command: Parser) -> None:
    command.description = (
        "Name all that is wrong with the loops of a file in one go, without inputs and without a run: exit code 1 for "
        "errors and warnings, 0 for notes alone. A project selects and ignores in [lint] of stepper.toml, or in "
        "[tool.stepper.lint] of pyproject.toml."
    )
    command.add_argument(
        "models", metavar="MODEL", nargs="*", help="the .xml of an OpenVINO IR; the .bin may be missing"
    )
    command.add_repeated("--select", "RULE", "ask these rules alone: a name, an id, or how ids begin (B, C2)")
    command.add_repeated("--ignore", "RULE", "leave these rules out")
    command.add_argument(
        "--changed",
        metavar="COMMIT",
        nargs="?",
        const="HEAD",
        help="look at the models of the git work tree that differ from a commit (HEAD), new ones among them",
    )
    command.add_flag("--skip-others", help="pass over files that are no IR, such as other .xml, as --changed does")
    command.add_flag("--rules", help="list the rules that are asked")
    command.add_argument("--explain", metavar="RULE", help="what a rule says and means, with an example")
    arguments.add_logs(command)
    arguments.add_json(command)


def _add_check(command: Parser) -> None:
    command.description = (
        "Hold the file against the rules of stepper lint and one watched run against rules of its own: where NaN and "
        "Inf are born, loops that do not end, states that are stuck, repeat or grow; and hold it against a reference. "
        "The gravest comes first, each finding with what shows it in the debugger."
    )
    arguments.add_model(command)
    arguments.add_inputs(command)
    arguments.add_calls(command)
    arguments.add_states(command)
    arguments.add_rules(command)
    arguments.add_engine(command)
    arguments.add_open_sequences(command, "their states are watched, too")
    command.add_argument(
        "--with",
        dest="reference",
        metavar="REFERENCE",
        help="compare with another model, a recorded run, values (.npz), openvino, onnx, onnxruntime, or none; "
        "without it with OpenVINO where that is installed and the run is short",
    )
    arguments.add_tolerances(command)
    command.set_defaults(align=None, ulp=None, tolerance=[])
    seconds = "how long the run may take; one that can never end stops after 2 (60)"
    command.add_argument("--seconds", type=arguments.seconds, default=60.0, metavar="N", help=seconds)
    command.add_argument(
        "--as",
        dest="narrowing",
        choices=("f16", "bf16", "i8-weights"),
        help="run it in fewer bits as well: which operation cannot bear it, and which have to stay in f32",
    )
    command.add_argument(
        "--loss",
        type=arguments.seconds,
        metavar="X",
        help="how far an output may be off with --as, relative to its norm (f16 0.01, else 0.05)",
    )
    command.add_argument(
        "--keep-in-f32",
        metavar="FILE.xml",
        help="write the model there with what has to stay in f32 marked for OpenVINO",
    )
    command.add_repeated("--select", "RULE", "ask these rules alone: a name, an id, or how ids begin (D, C2)")
    command.add_repeated("--ignore", "RULE", "leave these rules out")
    command.add_argument(
        "--fail-on",
        choices=("error", "warning", "note"),
        default="warning",
        help="exit code 1 from this severity on (warning)",
    )
    arguments.add_logs(command)
    arguments.add_json(command)
    command.add_flag("-q", "--quiet", help="no progress on stderr")


def _add_why(command: Parser) -> None:
    command.description = (
        "Run the model and say why a value is what it is: the way back from an element through operations, slices and "
        "back edges, and all elements of inputs and constants that it depends on. With --uses: where an element goes."
    )
    arguments.add_model(command)
    questions = (
        "an element (`h@7[0,3]`, an output's `NAME[0,3]`), or 'shape of ADDR', 'condition', 'end of LOOP', "
        "'11 iterations', 'where does x[3] go'"
    )
    command.add_argument("address", metavar="ADDRESS", help=questions)
    arguments.add_inputs(command)
    arguments.add_calls(command)
    arguments.add_states(command)
    arguments.add_rules(command)
    arguments.add_engine(command)
    arguments.add_open_sequences(command, "their iterations are followed, too")
    command.add_argument(
        "--reference",
        metavar="REFERENCE",
        help="follow only what differs from it: openvino, a recording, a model or values (.npz)",
    )
    command.add_flag("--uses", help="where the element goes instead: operations, iterations, outputs")
    arguments.add_json(command)
    command.add_flag("-q", "--quiet", help="no progress on stderr")


def _add_completion(command: Parser) -> None:
    command.description = (
        'Print the script with which a shell completes the command line: put eval "$(stepper completion bash)" into '
        "~/.bashrc, the same with zsh behind compinit into ~/.zshrc, or stepper completion fish | source into "
        "~/.config/fish/config.fish."
    )
    command.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def _add_help(command: Parser) -> None:
    command.description = (
        "Print how a command, an address, an expression, a breakpoint or an input is written; the keys of the "
        "application; or the schemas of all answers as JSON."
    )
    topics = "such as addresses, run, keys, exit codes; without it, all topics"
    command.add_argument("topic", metavar="TOPIC", nargs="*", help=topics)
    arguments.add_keys(command)
    arguments.add_json(command)


_COMMANDS: Final[Mapping[str, tuple[str, Callable[[Parser], None]]]] = MappingProxyType({
    "run": ("run a model and report its outputs and loops", _add_run),
    "debug": ("step through a model's loops, forward and backward", _add_debug),
    "dap": ("let an editor debug: the Debug Adapter Protocol on stdin and stdout or a port", _add_dap),
    "inspect": ("show a model's inputs, outputs and loops without running it", _add_inspect),
    "lint": ("name what is wrong with the loops of a file, without a run", _add_lint),
    "check": ("name what is wrong with a model on given inputs, by its file and one run", _add_check),
    "why": ("say why a value is what it is, and which elements it depends on", _add_why),
    "compare": ("find where two runs part: two models, a recording, values, OpenVINO", _add_compare),
    "print": ("show values of a recorded run", _add_print),
    "find": ("the moments of a recorded run at which something holds", _add_find),
    "export": ("draw a model or a run: figures and tables for documents", _add_export),
    "figures": ("write all figures that a file lists, or check that they are current", _add_figures),
    "reduce": ("make a model with a fault small, and write what shows and reports it", _add_reduce),
    "hunt": ("run random loops here and in OpenVINO, and name and make small what differs", _add_hunt),
    "capture": ("run an application, and keep its calls of OpenVINO that go wrong as cases", _add_capture),
    "cases": ("list the cases of a folder", _add_cases),
    "sweep": ("run the model on thousands of inputs, and say which of them go wrong, and where", _add_sweep),
    "passes": ("name the first pass of OpenVINO that changes what a model computes", _add_passes),
    "tui": ("the debugger on the whole terminal; also: stepper MODEL", add_application),
    "completion": ("the script with which bash, zsh or fish completes the command line", _add_completion),
    "help": ("how commands and what they take are written; the keys of the application", _add_help),
})  # fmt: skip
COMMANDS: Final = MappingProxyType({name: text for name, (text, _) in _COMMANDS.items()})
"""The commands in one line each; the module of its name in stepper.cli.commands carries out each of them."""
