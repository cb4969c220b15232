"""What carries out each operation type, version by version: `python -m tests.ops.coverage` prints the table."""

from __future__ import annotations

from stepper.operation_types import DEFINITIONS
from stepper.ops import registry
from stepper.ops.registry import STRUCTURAL


def claims(type: str, version: int) -> list[str]:
    """Everything that says it carries out this definition: a kernel or the engine."""
    found = []
    if registry.find(type, version) is not None:
        found.append("kernel")
    if type in STRUCTURAL:
        found.append("engine")
    return found


def table() -> dict[str, dict[int, list[str]]]:
    """The claims for every definition of every type of the operation sets."""
    return {type: {version: claims(type, version) for version in versions} for type, versions in DEFINITIONS.items()}


def main() -> None:
    """Print a line for each type."""
    for type, versions in table().items():
        print(f"{type:<52}", "; ".join(f"{version} {', '.join(found)}" for version, found in versions.items()))


if __name__ == "__main__":
    main()
