"""`stepper help keys`: the keys of the terminal application, as it has them; `stepper help json`: the schemas."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from typing import Final

from stepper.schemas import schema, schema_names

_TABLE: Final = "tui.keys.key_table"
"""Named as text and imported when it is called for, as the application is."""


def execute(options: argparse.Namespace) -> int:
    """Print the table or the schemas; 0. UsageError for keys that cannot be."""
    if options.topic == "json":
        print(json.dumps({f"{name}.json": schema(name) for name in schema_names()}, indent=1))
        return 0
    code: int = import_module(_TABLE).print_keys(options.keys, as_json=options.json)
    return code
