"""The schemas of all answers as JSON (JSON Schema, 2020-12): a file for each command, one for what they share.

Made from the types in docs/json_shapes.py by `python -m docs.json_schemas`; described in docs/reference/json.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def schema_names() -> tuple[str, ...]:
    """Return the names of the schemas: those of the commands, `debug-answers`, `error` and `common`."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def schema(name: str) -> dict[str, Any]:
    """Return a schema by its name. Raise FileNotFoundError where there is none."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found
