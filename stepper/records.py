"""What the records of this project lack: they are msgspec's Structs, as typed and as frozen as dataclasses, but made in
a hundredth of the time; the making of two hundred classes is felt when a program starts. (What a run changes at every
tick is a class with slots, which are assigned to in half the time.)
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct


class Brief:
    """Beside Struct: the text of a record leaves out the fields named in `unshown`, which would fill a screen."""

    __slots__ = ()
    unshown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        names: tuple[str, ...] = getattr(self, "__struct_fields__", ())
        shown = (f"{name}={getattr(self, name)!r}" for name in names if name not in self.unshown)
        return f"{type(self).__name__}({', '.join(shown)})"


def as_data(value: Any) -> Any:
    """A record as a dict, and the records inside of it, in lists, tuples and dicts, too; all else is left as it is."""
    if isinstance(value, Struct):
        return {name: as_data(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: as_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [as_data(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
