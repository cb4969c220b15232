"""Additions to records, which are msgspec's Structs: as typed and as frozen as dataclasses, but created in
a hundredth of the time; the making of two hundred classes is felt when a program starts. (What a run changes at every
tick is a class with slots, which are assigned to in half the time.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, dataclass_transform

from msgspec import Struct, field

_MOST_SHOWN = 6


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record(Struct, frozen=True):
    """A frozen Struct: it never changes."""


class Brief(Record, eq=False):
    """Its text leaves out the fields named in `unshown`, which would fill a screen."""

    unshown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name not in self.unshown)
        return f"{type(self).__name__}({', '.join(shown)})"


class OneLine(Record, eq=False):
    """Its text is a line; of what would fill a screen there is how much of it there is."""

    def __repr__(self) -> str:
        found = ((name, _in_short(getattr(self, name))) for name in self.__struct_fields__ if not name.startswith("_"))
        shown = [f"{name}={text}" for name, text in found if text][:_MOST_SHOWN]
        return f"<{type(self).__name__} {' '.join(shown)}>"


def _in_short(value: Any) -> str:
    """Return a few words for the value of a field; none for what another line is there for."""
    if value is None or (isinstance(value, str) and not value) or isinstance(value, (Struct, Mapping)):
        return ""
    if isinstance(value, (str, int, float)):
        return f"{value!r:.80}"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return str(len(value))
    if hasattr(value, "dtype"):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    return f"{value!r:.80}"


class Immutable:
    """Beside Struct: what never changes and shares what it is made of, so that a deep copy is the thing itself."""

    __slots__ = ()

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self


def as_data(value: Any) -> Any:
    """Return a record as a dict, with nested records in lists, tuples and dicts; else unchanged."""
    if isinstance(value, Struct):
        return {name: as_data(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: as_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [as_data(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
