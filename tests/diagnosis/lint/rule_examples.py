"""Examples of rules: small models that break none (`examples/`), and what breaks each rule in one of them."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

from stepper.diagnosis.rule import Example


@lru_cache(maxsize=8)
def sound(base: str) -> str:
    """Return the text of a model that breaks no rule."""
    return (files("stepper.diagnosis.lint") / "examples" / f"{base}.xml").read_text()


def weights(base: str) -> bytes:
    """Return the .bin of such a model; empty if it has none."""
    found = files("stepper.diagnosis.lint") / "examples" / f"{base}.bin"
    return found.read_bytes() if found.is_file() else b""


def broken(example: Example) -> str:
    """Return the text of the model with what breaks the rule. A new line in the example is any white space."""
    text = sound(example.base)
    for right, wrong in ((example.right, example.wrong), *example.also):
        pattern = r"\s*".join(map(re.escape, right.split("\n")))
        text, count = re.subn(pattern, lambda _match, wrong=wrong: wrong, text, count=1)  # type: ignore[misc]
        assert count, f"{right} is in {example.base}"
    return text
