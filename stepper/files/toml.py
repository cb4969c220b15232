"""TOML files that a user names: bounded in size, each fault in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from stepper.errors import UsageError
from stepper.wording import reason_of

LARGEST: Final = 1_000_000
"""Bytes; no file that a person writes is larger."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file. Raise UsageError, with the place, where it cannot be read or is none."""
    import tomllib  # most runs have no such file

    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{path}: is larger than {LARGEST:,} bytes")
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(path, error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None
