"""Values in forms that others know: numpy's own element types, archives of arrays (.npz), and JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array, is_of_numpy
from stepper.records import as_data

SCHEMA = 1
"""The version of the shapes of all answers as JSON; it grows where a key goes or means something else."""

_UNUSUAL = re.compile(r"[^\n -~]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

MOST_IN_JSON = 1000
"""Elements of a tensor whose values stand in a report."""


def storable(array: Any) -> Array:
    """Return the array in a type that .npz knows, losing nothing: bf16, 8-bit floats as f32, 4-bit integers in 8."""
    plain: Array = np.asarray(array)
    if plain.dtype == STRING_DTYPE:
        plain = np.array(plain.tolist(), np.str_).reshape(plain.shape)
    elif plain.dtype.names:
        plain = plain[plain.dtype.names[0]]
    elif not is_of_numpy(plain.dtype):
        plain = plain.astype(np.float32 if element_types.is_floating(plain.dtype) else np.int8)
    return plain


def tensor_json(value: Any) -> dict[str, Any]:
    """Type, shape and the numbers in row-major order (null above a thousand); what JSON lacks stands as text."""
    plain = storable(value)
    values = [json_number(item) for item in plain.reshape(-1).tolist()] if plain.size <= MOST_IN_JSON else None
    return {"type": element_types.name_of(np.asarray(value).dtype), "shape": list(plain.shape), "values": values}


def answer_json(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer as JSON has it: with the version of its shape, plain numbers, NaN and Inf as text."""
    return {"schema": SCHEMA, **plain_data(report)}


def json_text(content: Any, indent: int | None = None, *, plain: bool = False) -> str:
    """Return content as JSON in which nothing is left that a terminal would obey; `plain`: in ASCII."""
    import json  # few starts write any

    text = json.dumps(content, indent=indent, ensure_ascii=plain, allow_nan=False)
    return _UNUSUAL.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def cell(text: str) -> str:
    """Return a text as a cell of CSV that no spreadsheet takes for a formula; it is exact otherwise."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def plain_data(value: Any) -> Any:
    """Return a value as JSON has it: plain numbers, NaN and Inf as text, lists for tuples."""
    if isinstance(value, (str, int)) or value is None:
        return value
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, Mapping):
        return {str(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        return plain_data(value.item())
    return [plain_data(item) for item in value] if isinstance(value, (list, tuple)) else value


def record_data(record: Any) -> dict[str, Any]:
    """Return a record as JSON has it."""
    found: dict[str, Any] = plain_data(as_data(record))
    return found


def json_number(item: Any) -> Any:
    """Return a number as JSON has it: NaN and the infinities as text."""
    if isinstance(item, float) and not math.isfinite(item):
        return "NaN" if math.isnan(item) else "Infinity" if item > 0 else "-Infinity"
    return item


_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_arrays(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    """Write an .npz into a file that is open: keys in order, the same bytes for the same values."""
    import zipfile  # few starts write any

    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _EPOCH), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, storable(array), allow_pickle=False)
