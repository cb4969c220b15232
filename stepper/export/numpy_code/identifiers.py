"""Names of a model as Python identifiers and in comments. A model is not trusted: none of its names becomes code."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from typing import Final

from stepper.ir.model import Layer
from stepper.query.short_names import is_automatic, last_part
from stepper.wording import excerpt

_LONGEST: Final = 40
_TAKEN: Final = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "sys", "itertools", "ml_dtypes"})


def identifier(text: str, otherwise: str = "value") -> str:
    """Return the text as an ASCII identifier; `otherwise` where no character of it can stand in one."""
    found = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:_LONGEST].strip("_")
    if not found or found[0].isdigit():
        found = f"{otherwise}_{found}".strip("_")
    return found


def name_for(layer: Layer) -> str:
    """Return the preferred name of a variable with this layer's value."""
    part = last_part(layer.name)
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", layer.type).lower()
    if is_automatic(layer):
        return identifier(kind)
    return identifier(part, identifier(kind))


def described(layer: Layer) -> str:
    """Return a layer for a comment, on one line whatever its name holds: `Add 'total' (id 7)`."""
    return f"{identifier(layer.type)} '{excerpt(layer.name)}' (id {layer.id})"


class Identifiers:
    """The identifiers of one file: each is given out once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*_TAKEN, *taken}

    def new(self, wanted: str) -> str:
        """Return `wanted` where it is free, else with a number after it."""
        name, number = f"{wanted}_" if keyword.iskeyword(wanted) else wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name
