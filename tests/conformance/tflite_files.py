"""Models of TensorFlow Lite, written as flat buffers."""

from __future__ import annotations

from collections.abc import Sequence

import flatbuffers
import numpy as np

ADD, RELU, LESS, NEG, WHILE = 0, 19, 58, 59, 119
FLOAT, INT, BOOL = 0, 2, 6
_ADD_OPTIONS, _WHILE_OPTIONS = 11, 93


class _File:
    def __init__(self) -> None:
        self._builder = flatbuffers.Builder(1024)

    def table(self, size: int, **fields: tuple[str, int]) -> int:
        self._builder.StartObject(size)
        for name, (kind, value) in fields.items():
            getattr(self._builder, f"Prepend{kind}Slot")(int(name[1:]), value, 0)
        return int(self._builder.EndObject())

    def ints(self, values: Sequence[int]) -> tuple[str, int]:
        self._builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            self._builder.PrependInt32(value)
        return self._offset(self._builder.EndVector())

    def tables(self, offsets: Sequence[int]) -> tuple[str, int]:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return self._offset(self._builder.EndVector())

    def text(self, value: str) -> tuple[str, int]:
        return self._offset(self._builder.CreateString(value))

    @staticmethod
    def _offset(value: int) -> tuple[str, int]:
        return "UOffsetTRelative", value

    def tensor(self, name: str, dims: Sequence[int], type: int = FLOAT, buffer: int = 0) -> int:
        said, shape = self.text(name), self.ints(dims)
        return self.table(4, f0=shape, f1=("Int8", type), f2=("Uint32", buffer), f3=said)

    def operator(
        self, code: int, inputs: Sequence[int], outputs: Sequence[int], options: tuple[int, int] | None = None
    ) -> int:
        fields = {"f0": ("Uint32", code), "f1": self.ints(inputs), "f2": self.ints(outputs)}
        if options is not None:
            fields |= {"f3": ("Uint8", options[0]), "f4": self._offset(options[1])}
        return self.table(5, **fields)

    def graph(
        self, tensors: Sequence[int], inputs: Sequence[int], outputs: Sequence[int], operators: Sequence[int]
    ) -> int:
        parts = [self.tables(tensors), self.ints(inputs), self.ints(outputs), self.tables(operators)]
        return self.table(5, **{f"f{index}": part for index, part in enumerate(parts)})

    def model(self, codes: Sequence[int], graphs: Sequence[int], buffers: Sequence[bytes] = ()) -> bytes:
        kept = [self.table(1, f0=self._offset(self._builder.CreateByteVector(data))) for data in (b"", *buffers)]
        known = [self.table(4, f0=("Int8", code), f2=("Int32", 1), f3=("Int32", code)) for code in codes]
        parts = {"f1": self.tables(known), "f2": self.tables(graphs), "f4": self.tables(kept)}
        self._builder.Finish(self.table(5, f0=("Uint32", 3), **parts), file_identifier=b"TFL3")
        return bytes(self._builder.Output())


def tiny() -> bytes:
    """-relu(x) for f32[2,3]."""
    file = _File()
    tensors = [file.tensor(name, [2, 3]) for name in ("x", "activated", "negated")]
    operators = [file.operator(0, [0], [1]), file.operator(1, [1], [2])]
    return file.model([RELU, NEG], [file.graph(tensors, [0], [2], operators)])


def doubling() -> bytes:
    """A WHILE over two further graphs: x doubled five times, and minus that."""
    file = _File()
    loop = (_WHILE_OPTIONS, file.table(2, f0=("Int32", 1), f1=("Int32", 2)))
    tensors = [file.tensor("i0", [], INT), file.tensor("x", [2]), file.tensor("i_last", [], INT)]
    tensors += [file.tensor("x_last", [2]), file.tensor("negated", [2])]
    operators = [file.operator(2, [0, 1], [2, 3], loop), file.operator(3, [3], [4])]
    main = file.graph(tensors, [0, 1], [4], operators)
    tensors = [file.tensor("i", [], INT), file.tensor("state", [2]), file.tensor("limit", [], INT, 2)]
    condition = file.graph([*tensors, file.tensor("going_on", [], BOOL)], [0, 1], [3], [file.operator(1, [0, 2], [3])])
    tensors = [file.tensor("i", [], INT), file.tensor("state", [2]), file.tensor("one", [], INT, 1)]
    tensors += [file.tensor("i_next", [], INT), file.tensor("doubled", [2])]
    sums = [((0, 2), 3), ((1, 1), 4)]
    operators = [file.operator(0, given, [made], (_ADD_OPTIONS, file.table(1))) for given, made in sums]
    body = file.graph(tensors, [0, 1], [3, 4], operators)
    return file.model([ADD, LESS, WHILE, NEG], [main, condition, body], [np.int32(1).tobytes(), np.int32(5).tobytes()])
