"""Options that files may set: each is an option, and none of them loads code or chooses a file to write."""

from __future__ import annotations

import ast
from pathlib import Path

from stepper.cli.commands.figures import export_options
from stepper.cli.parser import command_parsers
from stepper.diagnosis import rule
from stepper.files.allowed import ALLOWED, SettingsFile
from stepper.sweep.sweep_results import SweepOptions
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
NEVER = {
    "extension",
    "generate",
    "output",
    "out",
    "trace",
    "session",
    "script",
    "on",
    "check",
    "save-states",
    "timeout",
}


@each_row("source", SettingsFile)
def test_no_file_chooses_code_or_what_is_written(source: SettingsFile) -> None:
    assert not NEVER & set(ALLOWED[source])


def test_what_a_figure_may_say_is_an_option_of_export() -> None:
    for source in (SettingsFile.FIGURES, SettingsFile.PAGE):
        assert set(ALLOWED[source]) <= set(export_options())


def test_an_input_of_a_sweep_is_opened_with_allowed_options_alone() -> None:
    tree = ast.parse((ROOT / "stepper" / "cli" / "commands" / "sweep.py").read_text(encoding="utf-8"))
    makers = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name.endswith("_words")]
    nodes = [node for one in makers for node in ast.walk(one)]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    names = {text[2:].partition("=")[0] for text in texts if text.startswith("--") and text[2:3].isalpha()}
    fields = {name.replace("_", "-") for name in SweepOptions.__struct_fields__}
    known = {name[2:] for action in command_parsers()["tui"].actions for name in action.option_strings}
    assert len(makers) == 4 and {"inputs", "states"} <= names and fields <= {*known, "generate"}
    assert (names | fields) & known <= {*ALLOWED[SettingsFile.SWEEP], "generate"}  # which the user has named again


def test_a_project_selects_and_ignores_rules(tmp_path: Path) -> None:
    (tmp_path / "stepper.toml").write_text("[lint]\nselect = ['N2']\nignore = ['N201']\n", encoding="utf-8")
    assert rule.settings(tmp_path) == (("N2",), ("N201",))
    assert ALLOWED[SettingsFile.LINT] == ("select", "ignore")
