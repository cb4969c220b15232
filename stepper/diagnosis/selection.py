"""Which rules are asked: by name, id or the beginning of ids, as the command line or a file of settings says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stepper.diagnosis.rule import Rule, rules
from stepper.errors import UsageError
from stepper.files.allowed import ALLOWED, SettingsFile
from stepper.files.configuration import read_toml
from stepper.wording import near_names, near_sentence


def chosen_rules(select: Iterable[str], ignore: Iterable[str]) -> frozenset[str]:
    """Return the names of the rules that are selected and not ignored. UsageError for a word that is none.

    Where none is selected those are that the settings of the project select, else all; what they ignore is ignored.
    """
    selected, ignored = settings(Path.cwd())
    return (_named(tuple(select) or selected) or frozenset(rules())) - _named((*ignored, *ignore))


def _named(words: Iterable[str]) -> frozenset[str]:
    return frozenset(rule.name for word in words for rule in rules_named(word))


def rules_named(word: str) -> list[Rule]:
    """Return the rules of a name, an id, or with ids that begin so. UsageError where there are none."""
    known = rules()
    if word in known:
        return [known[word]]
    found = [rule for rule in known.values() if word and rule.id.startswith(word.upper())]
    if found:
        return found
    near = near_sentence(near_names(word, [*known, *(rule.id for rule in known.values())]))
    raise UsageError(f"there is no rule '{word}'" + (f"; {near}" if near else "; stepper lint --rules lists them"))


def settings(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a project selects and ignores: in [lint] of stepper.toml, or [tool.stepper.lint] of pyproject.toml.

    The nearest such table of the folder or one around it counts. UsageError for a table that cannot be understood.
    """
    for place in (folder, *folder.parents):
        for name, keys in (("stepper.toml", ("lint",)), ("pyproject.toml", ("tool", "stepper", "lint"))):
            table = _table(place / name, keys)
            if table is not None:
                return _words(place / name, table, "select"), _words(place / name, table, "ignore")
    return (), ()


def _table(file: Path, keys: tuple[str, ...]) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    found: Any = read_toml(file)
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    if found is None:
        return None
    if not isinstance(found, dict) or (unknown := [key for key in found if key not in ALLOWED[SettingsFile.LINT]]):
        what = f"has no setting '{unknown[0]}'" if isinstance(found, dict) else "is no table"
        raise UsageError(f"{file}: [{'.'.join(keys)}] {what}; it may have select and ignore")
    return found


def _words(file: Path, table: dict[str, Any], key: str) -> tuple[str, ...]:
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise UsageError(f'{file}: {key} is a list of names or ids of rules, such as ["N2", "loop-never-ends"]')
    return tuple(found)
