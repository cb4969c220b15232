"""The parts know each other only as the plan says: imports run one way, and the engine runs without a screen."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests import code_size, slow

ROOT = Path(__file__).parents[1]

LAYERS = (
    ("stepper", "files"),
    ("ops", "ir"),
    ("engine", "processes"),
    ("tensors",),
    ("query",),
    ("debug",),
    ("recording",),
    ("session",),
    ("commands",),
    ("openvino",),
    ("compare",),
    ("diagnosis", "export", "cases"),
    ("repair",),
    ("sweep",),
    ("schemas",),
    ("integrations",),
    ("tui",),
    ("cli",),
    ("integrations.documents", "integrations.notebook"),
    ("integrations.mkdocs", "integrations.sphinx"),
)
"""The parts from the ground up; "stepper" are the modules at the top, which all share. Each may import those below.

Figures in documents and the magic of notebooks take the options of a command, so they stand above the command line.
"""

MAY_IMPORT = {
    part: {below for others in LAYERS[:level] for below in others}
    for level, parts in enumerate(LAYERS)
    for part in parts
} | {"stepper": {"files"}, "files": {"stepper"}}

ENTRY_POINTS = {"stepper/__init__.py", "stepper/__main__.py"}
"""They hand out names of the parts, lazily, and are imported by nobody within."""


@cache
def sources() -> tuple[Path, ...]:
    return tuple(sorted(path for part in ("stepper", "tui") for path in (ROOT / part).rglob("*.py")))


@cache
def statements(path: Path) -> tuple[ast.AST, ...]:
    """The module of a file and all its statements. Expressions hold none: most of a tree need not be walked."""
    return tuple(_statements(ast.parse(path.read_text(encoding="utf-8"))))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for below in getattr(node, name, ()):
            yield from _statements(below)


def module_of(path: Path) -> str:
    """The name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "tui" else parts)


def part_of(module: str) -> str:
    names = module.split(".")
    if names[0] == "stepper_tui":
        return "tui"
    if ".".join(names[1:3]) in MAY_IMPORT:
        return ".".join(names[1:3])
    return names[1] if len(names) > 1 and (ROOT / "stepper" / names[1]).is_dir() else "stepper"


@cache
def is_module(name: str) -> bool:
    place = (ROOT / "tui" if name.startswith("stepper_tui") else ROOT) / name.replace(".", "/")
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


@cache
def imported(path: Path) -> set[str]:
    """The modules that a file names; of `from package import module` the module alone."""
    modules: set[str] = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            submodules = {name for name in names if is_module(name)}
            modules |= submodules or {node.module}
    return {module for module in modules if module.split(".")[0] in ("stepper", "stepper_tui", "textual", "openvino")}


def test_imports_run_one_way() -> None:
    wrong = []
    for path in sources():
        relative = str(path.relative_to(ROOT))
        part = part_of(module_of(path))
        for module in imported(path) if relative not in ENTRY_POINTS else ():
            top = module.split(".")[0]
            if top == "textual":
                wrong += [] if part == "tui" else [f"{relative}: {module} is for the terminal application alone"]
            elif top in ("stepper", "stepper_tui") and part_of(module) not in MAY_IMPORT[part] | {part}:
                wrong.append(f"{relative}: {part} must not know {module}")
    assert not wrong


WORDS: Final = {"cause_texts", "story_texts", "moment_texts", "overview_texts", "text", "words", "forward_texts"}
"""Names of the modules that put facts into words."""

WITH_WORDS: Final = {
    "stepper/debug/stop.py": "Stop.details are sentences",
    "stepper/debug/finding.py": "the title of a birth",
    "stepper/debug/story/building.py": "names with iterations",
    "stepper/debug/story/strip_layout.py": "a drawing of words",
}
"""Modules of `stepper/debug` beside those that import words."""


def test_facts_import_no_words() -> None:
    wrong = set()
    for path in sources():
        relative = str(path.relative_to(ROOT))
        is_of_facts = relative.startswith(("stepper/debug", "stepper/engine", "stepper/tensors", "stepper/query"))
        if is_of_facts and path.stem not in WORDS and "/kinds/" not in relative:
            words = [one for one in imported(path) if one.split(".")[-1] in WORDS and one.startswith("stepper.debug.")]
            wrong |= {relative} if words else set()
    assert wrong == set(WITH_WORDS)


def test_no_module_imports_itself_in_a_circle() -> None:
    files = {
        module_of(path).removesuffix(".__init__"): path
        for path in sources()
        if str(path.relative_to(ROOT)) not in ENTRY_POINTS
    }
    files.pop("stepper_tui.app")  # its type is named by all that it is handed to; nothing below it imports it to run
    graph = {name: {module for module in imported(path) if module in files} for name, path in files.items()}
    alone = [name for name, path in files.items() if path.name != "__init__.py" and name in graph[name]]
    assert alone == [], "a module that imports itself"
    done: set[str] = set()
    for start in graph:
        trail: list[str] = []
        stack = [(start, False)]
        while stack:
            name, leave = stack.pop()
            if leave:
                trail.remove(name)
                done.add(name)
            elif name in trail:
                pytest.fail(f"import cycle: {' -> '.join([*trail[trail.index(name) :], name])}")
            elif name not in done:
                trail.append(name)
                stack.append((name, True))
                stack += [(module, False) for module in graph[name] if module != name]


def test_running_a_model_loads_no_screen() -> None:
    code = (
        "import sys; from stepper.cli import main; "
        "code = main(['run', 'sample_models/for_loop/model.xml', '--input', '*=ones', '-q']); "
        "bad = [name for name in ('textual', 'stepper_tui', 'rich', 'openvino', 'graphviz') if name in sys.modules]; "
        "sys.exit(f'loaded {bad}' if bad else code)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_asking_for_help_loads_no_numpy() -> None:
    code = (
        "import sys\nfrom stepper.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "sys.exit('numpy' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_no_class_name_occurs_twice() -> None:
    places: dict[str, list[str]] = {}
    for path in sources():
        for node in statements(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_docstrings_begin_as_those_of_python_do() -> None:
    found = []
    for path in sources():
        for node in statements(path):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                if text.startswith(("What ", "Whether ")):
                    found.append(f"{path.relative_to(ROOT)}: {text.splitlines()[0]}")
    assert found == []


CATALOGUES = {"stepper/ops", "stepper/cli/commands"}
"""A file for each family of operations, and for each command."""


def test_a_folder_is_a_table_of_contents() -> None:
    folders: dict[str, int] = {}
    for path in sources():
        if path.name != "__init__.py":
            folder = path.parent.relative_to(ROOT).as_posix()
            folders[folder] = folders.get(folder, 0) + 1
    assert {folder: count for folder, count in folders.items() if count > 15 and folder not in CATALOGUES} == {}


WRITERS = {
    "stepper/terminal.py": "lines, in which what a terminal obeys is blanked",
    "stepper/cli/printing.py": "the line of progress; answers as JSON, escaped, and an archive, exact",
    "tui/stepper_tui/screens/help.py": "keys as JSON, escaped",
    "stepper/cli/commands/help.py": "our own schemas",
    "stepper/cli/commands/completion.py": "our own script of a shell",
    "stepper/cli/commands/export.py": "the content of a file, exact",
    "stepper/cli/commands/print.py": "rows of CSV, whose cells are guarded",
    "stepper/cases/startup/sitecustomize.py": "one line where this package cannot be imported, made printable",
}
"""The files that write to a terminal."""


def test_few_places_write_to_a_terminal() -> None:
    found = set()
    for path in sources():
        text = path.read_text(encoding="utf-8")
        may_write = re.search(r"\bprint\(|warnings\.warn|csv\.writer|sys\.\w*std(out|err)", text)
        for node in ast.walk(ast.parse(text)) if may_write else ():
            used = node.func if isinstance(node, ast.Call) else node
            text = ast.unparse(used) if isinstance(used, ast.Name | ast.Attribute) else ""
            is_print = isinstance(node, ast.Call) and text in ("print", "warnings.warn", "csv.writer")
            is_stream = re.fullmatch(r"sys\.(__)?(stdout|stderr)(__)?\.(write|writelines|buffer)", text) is not None
            if is_stream or (is_print and not (text == "csv.writer" and "sys.stdout" not in ast.unparse(node))):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == set(WRITERS)


def test_every_slow_test_exists() -> None:
    tests = ROOT / "tests"
    lost = [one for one in slow.SLOW if not (tests / one).exists()]
    for file, names in slow.SLOW_TESTS.items():
        text = (tests / file).read_text(encoding="utf-8")
        lost += [f"{file}::{name}" for name in names if f"def {name}(" not in text]
    assert not lost


MOST: Final = {
    "tui": 112_443,
    "debug": 183_995,
    "export": 122_342,
    "diagnosis": 100_258,
    "compare": 60_283,
    "ops": 63_670,
    "cli": 47_197,
    "repair": 46_450,
    "engine": 40_135,
    "recording": 33_599,
    "integrations": 32_209,
    "ir": 26_166,
    "tensors": 21_334,
    "openvino": 29_229,
    "query": 18_668,
    "sweep": 14_785,
    "commands": 15_484,
    "cases": 12_809,
    "session": 9_629,
    "processes": 7_748,
    "files": 8_108,
    "stepper": 6_197,
    "(files)": 403,
    "(repeated names)": 11,
    "schemas": 96,
}
"""Code tokens of each part, files, and names of files that come again: they only go down.

`python -m tests.code_size` prints them. A change that lowers one writes the lower number here; one that raises one says
which new capability needs it.
"""
_SLACK: Final = 300
"""Tokens by which a number here may be too high."""


def test_the_program_only_becomes_smaller() -> None:
    found = code_size.measured()
    larger = {name: (count, MOST.get(name, 0)) for name, count in found.items() if count > MOST.get(name, 0)}
    assert not larger, f"(now, at most): {larger}"
    lower = {name: found[name] for name, most in MOST.items() if found[name] < most - _SLACK}
    assert not lower, f"smaller than MOST says; write these numbers there: {lower}"
