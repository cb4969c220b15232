"""Texts of a file in messages: one printable line of bounded length, whatever the file holds."""

from __future__ import annotations


def excerpt(text: str, longest: int = 80) -> str:
    """Return the text if it is short, else its beginning and end; what cannot be printed (line breaks) is a blank."""
    if len(text) > longest:
        text = f"{text[: longest * 2 // 3]} ... {text[-(longest // 3) :]}"
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else " " for letter in text)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 iteration` and `1,200 iterations`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
