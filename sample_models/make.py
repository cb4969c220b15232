"""Makes the sample models of this folder: `python sample_models/make.py [NAME...]`; all of them without a name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import converted
import faulty
import loops
import shapes
import specification
import streams
from sample import Sample

FOLDER = Path(__file__).parent

SAMPLES: dict[str, Callable[[], Sample | streams.Streams]] = {
    "specification_lstm": specification.lstm,
    "reverse": loops.reverse,
    "for_loop": loops.for_loop,
    "while_loop": loops.while_loop,
    "do_while_loop": loops.do_while_loop,
    "for_with_condition": loops.for_with_condition,
    "nested_loop": shapes.nested_loop,
    "growing_tensor": shapes.growing_tensor,
    "rwkv_overflow": faulty.rwkv_overflow,
    "onnx_moving_average": converted.onnx_moving_average,
    "calls": streams.streams,
    "torch_power_iteration": converted.torch_power_iteration,
}
KEPT = {"date_normaliser": "trained elsewhere and kept as it is"}


def make(name: str) -> bool:
    """Write one sample and say so; False where a package that it needs is not installed."""
    try:
        sample = SAMPLES[name]()
    except ModuleNotFoundError as error:
        print(f"{name}: not made, it needs the package {error.name}, which is not installed")
        return False
    sample.write(FOLDER / name)
    shapes_by_name = ", ".join(f"{key} {list(value.shape)}" for key, value in sample.inputs.items())
    print(f"{name}: inputs {shapes_by_name}; outputs {', '.join(sample.formula)}")
    return True


def main(names: list[str]) -> int:
    """Make the named samples, or all; 0 if each could be made, 1 if one could not, 2 for a name that is unknown."""
    unknown = [name for name in names if name not in SAMPLES and name not in KEPT]
    if unknown:
        print(f"no sample is called {', '.join(unknown)}; there are {', '.join([*SAMPLES, *KEPT])}", file=sys.stderr)
        return 2
    made = True
    for name in names or [*SAMPLES, *KEPT]:
        if name in KEPT:
            print(f"{name}: {KEPT[name]}")
        else:
            made &= make(name)
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
