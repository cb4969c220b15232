"""A parser whose errors are one line: what is wrong, what is near, what to type.

It is argparse's: libraries that are made of decorators or of types (click, typer) take longer to load than the whole
command line, and their errors are several lines.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn

from stepper import __version__
from stepper.errors import UsageError
from stepper.files.file_kinds import CONVERTED, IR_SUFFIX, OWNERS, is_model_path
from stepper.files.recognition import ensure_model, folder_sentence
from stepper.terminal import say
from stepper.wording import WIDTH, near_text, none_of, two_columns

_ONE_EXPECTED = "expected one argument"
_MISSING = "the following arguments are required: "
_IGNORED = "ignored explicit argument"
"""Beginnings of argparse's own messages; other messages pass unchanged."""
_GENERAL = ("-h", "--help", "--version")
_NO_ROWS: Final[Mapping[str, Sequence[tuple[str, str]]]] = MappingProxyType({})


class Parser(argparse.ArgumentParser):
    """Parse arguments; raise UsageError with one line instead of printing the usage and exiting."""

    def __init__(
        self, *, examples: Sequence[str] = (), rows: Mapping[str, Sequence[tuple[str, str]]] = _NO_ROWS, **options: Any
    ) -> None:
        """`examples` and `rows`, each under its title, stand in the help, before the options."""
        super().__init__(**{**options, "exit_on_error": False})
        self.actions: list[argparse.Action] = []
        self.examples, self._listed = tuple(examples), rows

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add as argparse does; a word that is none of the `choices` is answered with the one that is near."""
        if "choices" in options and "type" not in options:
            options["type"] = _one_of(tuple(options["choices"]))
        action = super().add_argument(*names, **options)
        if hasattr(self, "actions"):  # -h comes before
            self.actions.append(action)
        return action

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does. Raise UsageError for what is wrong."""
        try:
            return super().parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            raise UsageError(self._sentence(error.argument_name or "", error.message)) from None

    def error(self, message: str) -> NoReturn:
        """Raise UsageError for what argparse finds out itself."""
        if message.startswith(_MISSING):
            missing = message.removeprefix(_MISSING)
            raise UsageError(f"{missing} {'are' if ', ' in missing else 'is'} missing: {self.pattern}{self._help}")
        raise UsageError(f"{message}{self._help}")

    def format_help(self) -> str:
        """Return what the command does, examples, and what it takes."""
        import textwrap  # here, so that no start waits for it

        formatter = self._get_formatter()
        formatter.add_text(self.description)
        description = formatter.format_help()
        listed = {
            "examples": self.examples,
            **{title: two_columns(rows, WIDTH - 2) for title, rows in self._listed.items()},
        }
        sections = ["\n".join([f"{title}:", *(f"  {one}" for one in lines)]) for title, lines in listed.items()]
        formatter = self._get_formatter()
        for title, actions in (
            ("arguments", [one for one in self.actions if not one.option_strings]),
            ("options", [one for one in self._actions if one.option_strings]),
        ):
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        usage = textwrap.fill(f"usage: {self.pattern}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        return "\n\n".join([usage, description.strip(), *sections, formatter.format_help().strip()]) + "\n"

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help; titles, commands and options in it have colours on a terminal."""
        for line in message.splitlines():
            head = re.match(r"usage: stepper|\w[\w ,]+:$|  stepper [a-z]*(?= |$)|  [-a-zA-Z][\w-]*", line)
            tone = "name" if head is not None and head[0].endswith(":") else "key"
            say(line, file, {} if head is None else {head[0]: tone})

    @property
    def pattern(self) -> str:
        """How the command is written, in short; of several commands there is none that one could write."""
        if self._listed:
            return f"{self.prog} MODEL [options], {self.prog} COMMAND [options]"
        words = [_pattern(action) for action in self.actions if not action.option_strings]
        return " ".join([self.prog, *words, "[options]"])

    @property
    def _help(self) -> str:
        return f"; {self.prog} --help says more"

    @property
    def options(self) -> list[str]:
        """All options, long and short."""
        return [name for action in self.actions for name in action.option_strings]

    def _sentence(self, name: str, message: str) -> str:
        if message == _ONE_EXPECTED:
            action = next((one for one in self.actions if "/".join(one.option_strings) == name), None)
            value = "" if action is None else f": {action.option_strings[0]} {action.metavar or 'VALUE'}"
            return f"{name} needs a value{value}"
        if message.startswith(_IGNORED):
            return f"{name} takes no value"
        return f"{name}: {message}"

    def refuse(self, words: Sequence[str], others: Mapping[str, Parser]) -> NoReturn:
        """Raise UsageError for words that nothing takes; `others` are the parsers of all commands."""
        word = words[0]
        if not word.startswith("-"):
            raise UsageError(
                f"nothing is expected at '{word}': {self.pattern} (a value with blanks stands in quotes){self._help}"
            )
        option = word.partition("=")[0]
        near = near_text(option, [name for name in self.options if name.startswith("--") == option.startswith("--")])
        having = [name for name, other in others.items() if option in other.options]
        if not near and having:
            near = f"that is an option of {', '.join(having)}"
        name = self.prog.partition(" ")[2]
        raise UsageError(f"{name} has no option {option}{f'; {near}' if near else self._help}")


class Versions(argparse.Action):
    """`--version`: the versions of the program and of what its answers depend on, and ends it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "nargs": 0})

    def __call__(self, parser: Any, *_given: Any) -> None:
        """Print them."""
        import platform
        from importlib.metadata import PackageNotFoundError, version  # here, so that no command waits for it

        say(f"stepper {__version__}")
        say(f"Python {platform.python_version()}")
        for name in ("numpy", "textual", "openvino", "onnx", "onnxruntime"):
            try:
                say(f"{name} {version(name)}")
            except PackageNotFoundError:
                say(f"{name} not installed")
        parser.exit()


Option = Callable[[Parser], object]
"""Adds an option, an argument, or several of them to a command."""


def option(names: str, metavar: str, help: str, **more: Any) -> Option:
    """Return an option with a value, or an argument; `names` are separated by a blank."""
    return lambda command: command.add_argument(*names.split(), metavar=metavar, help=help, **more)


def choice(names: str, choices: Iterable[str], help: str, **more: Any) -> Option:
    """Return an option or an argument that is one of a few words."""
    return lambda command: command.add_argument(*names.split(), choices=tuple(choices), help=help, **more)


def repeated(name: str, metavar: str, help: str, **more: Any) -> Option:
    """Return an option that may be given several times; its values are a list."""
    return option(name, metavar, help, action="append", default=[], **more)


def flag(names: str, help: str) -> Option:
    """Return an option without a value."""
    return lambda command: command.add_argument(*names.split(), action="store_true", help=help)


def defaults(**values: Any) -> Option:
    """Return values of options that the command does not have."""
    return lambda command: command.set_defaults(**values)


def group(*options: Option) -> Option:
    """Return several options as one."""

    def add(command: Parser) -> None:
        for one in options:
            one(command)

    return add


def _pattern(action: argparse.Action) -> str:
    choices = tuple(action.choices or ())
    word = "|".join(choices) if len(choices) == 1 else str(action.metavar or action.dest)
    return {"?": f"[{word}]", "*": f"[{word} ...]", "+": f"{word} [{word} ...]"}.get(str(action.nargs), word)


def _one_of(choices: tuple[Any, ...]) -> Callable[[str], Any]:
    """Return the type of an option that is one of a few words."""

    def chosen(text: str) -> Any:
        if text not in choices:
            raise argparse.ArgumentTypeError(none_of(text, choices))
        return choices[choices.index(text)]  # which may be a member of an Enum

    return chosen


def check_first(words: Sequence[str], commands: Iterable[str]) -> None:
    """Raise UsageError unless the first word is a command, or an option that goes without."""
    commands = tuple(commands)
    if not words:
        raise UsageError("name a model, or a command: stepper MODEL, stepper run MODEL; stepper --help lists them all")
    for index, word in enumerate(words):
        if not word:
            behind = f" behind {words[index - 1]}" if index else ""
            raise UsageError(f"the word{behind} is empty; is a variable of the shell not set?")
    first = words[0]
    if first in commands or (first.startswith("-") and any(one.startswith(first) for one in _GENERAL)):
        return
    if first.startswith("-"):
        _refuse_option(words, commands)
    if Path(first).is_dir():
        raise UsageError(f"{first}: {folder_sentence(Path(first))}")
    near = near_text(first, [*commands, *_models_beside(first)], 0.55)
    if near:
        raise UsageError(f"there is no command '{first}'; {near}")
    if Path(first).is_file():
        if Path(first).suffix.lower() not in OWNERS:
            ensure_model(Path(first))
        suffixes = ", ".join((IR_SUFFIX, *CONVERTED))
        raise UsageError(
            f"'{first}' is neither a command nor a model by its name ({suffixes}); "
            "say what to do with it, such as stepper print RECORDING ADDR"
        )
    raise UsageError(f"there is no command '{first}'; there are {', '.join(commands)}")


def _refuse_option(words: Sequence[str], commands: tuple[str, ...]) -> NoReturn:
    """Raise UsageError: options stand behind the command or the model."""
    what, at = "command", next((index for index, word in enumerate(words) if word in commands), None)
    if at is None:
        what, at = "model", next((index for index, word in enumerate(words) if is_model_path(word)), None)
    if at is None:
        if near := near_text(words[0], ("--version", "--help")):
            raise UsageError(f"there is no option {words[0]}; {near}")
        raise UsageError(f"{words[0]} stands behind a command or a model: stepper run MODEL {words[0]}")
    # A model behind its command goes with it.
    end = at + 2 if what == "command" and at + 1 < len(words) and is_model_path(words[at + 1]) else at + 1
    ordered = [*words[at:end], *words[:at], *words[end:]]
    import shlex  # here, so that --help does not wait for it

    raise UsageError(f"{words[0]} stands behind the {what}: stepper {shlex.join(ordered)}")


def _models_beside(word: str) -> list[str]:
    path = Path(word)
    try:
        return [str(path.with_name(one.name)) for one in path.parent.iterdir() if is_model_path(one.name)]
    except (OSError, ValueError):
        return []
