"""What the words behind an option mean: numbers, sizes, tolerances; argparse tells what is wrong with one."""

from __future__ import annotations

import argparse
import re


def count(text: str) -> int:
    """A number of levels, from 0."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of levels")
    return int(text)


def positive(text: str) -> int:
    """A number from 1."""
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no positive integer")
    return int(text)


def tolerance(text: str) -> float:
    """A number that is finite and not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no tolerance; write for example 1e-4")
    return value


def size(text: str) -> int:
    """A number of bytes, such as 512MB."""
    match = re.fullmatch(r"([0-9]{1,12})\s*([KMGT]?)B?", text.strip().upper())
    if match is None or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; write for example 512MB or 2GB")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2]]


def seconds(text: str) -> float:
    """A length of time that is finite and not zero."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds; write for example 60")
    return value
