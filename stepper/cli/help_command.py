"""`stepper help keys`: the keys of the terminal application, as the application itself has them."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Final

_TABLE: Final = "tui.key_table"
"""Named as text and imported when it is called for, as the application is."""


def execute(options: argparse.Namespace) -> int:
    """Print the table; 0. UsageError for keys that cannot be."""
    code: int = import_module(_TABLE).print_keys(options.keys, as_json=options.json)
    return code
