"""Every definition of every operation type is carried out by exactly one: a kernel or the engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from operator import itemgetter
from pathlib import Path

import pytest

from stepper.operation_types import DEFINITIONS, definition
from stepper.ops import registry
from stepper.ops.registry import FILE_OF, STRUCTURAL
from tests.ops.coverage import table
from tests.ops.recording import cases, families
from tests.tables import each_row

OTHER_LIST = os.environ.get("STEPPER_OPERATIONS_TABLE")

TESTED_ELSEWHERE = {
    ("ReadValue", 3): "engine/test_variables.py",
    ("ReadValue", 6): "engine/test_variables.py",
    ("Assign", 3): "engine/test_variables.py",
    ("Assign", 6): "engine/test_variables.py",
    ("RandomUniform", 8): "ops/test_random_numbers.py",
    ("BinaryConvolution", 1): "ops/test_convolution.py",
    ("StringTensorPack", 15): "ops/test_strings.py",
    ("StringTensorUnpack", 15): "ops/test_strings.py",
}
"""Kernels without a recorded case (state, chance, texts and bits, which a recording does not hold), and their tests."""


@each_row("type", DEFINITIONS)
def test_each_definition_is_carried_out_by_exactly_one(type: str) -> None:
    for version, claims in table()[type].items():
        assert len(claims) == 1, f"{type}-{version}: {claims or 'nothing'}"


def test_nothing_is_listed_that_does_not_exist() -> None:
    definitions = {(type, version) for type, versions in DEFINITIONS.items() for version in versions}
    assert DEFINITIONS.keys() >= STRUCTURAL
    assert registry.all_kernels().keys() <= definitions


def test_each_kernel_is_found_by_importing_the_file_that_the_table_names_and_no_other() -> None:
    script = (
        "import sys, stepper.ops.registry as registry\n"
        "from importlib import import_module\n"
        "for line in sys.stdin:\n"
        "    file, type = line.split()\n"
        "    import_module(f'stepper.ops.{file}')\n"
        "    assert type in {type for type, _ in registry._KERNELS}, line\n"
        "print(*sorted({type for type, _ in registry._KERNELS}))\n"
    )
    table = "".join(f"{file} {type}\n" for type, file in sorted(FILE_OF.items(), key=itemgetter(1)))
    done = subprocess.run([sys.executable, "-c", script], input=table, capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(FILE_OF)


def test_all_207_types_of_the_operation_sets_are_there() -> None:
    assert len(DEFINITIONS) == 207


@pytest.mark.skipif(OTHER_LIST is None, reason="STEPPER_OPERATIONS_TABLE names no other list of the operations")
def test_the_list_of_definitions_is_that_of_the_other_list() -> None:
    assert OTHER_LIST is not None
    other = json.loads(Path(OTHER_LIST).read_text(encoding="utf-8"))
    assert {type: tuple(entry["versions_defined"]) for type, entry in other.items()} == DEFINITIONS


def test_each_kernel_is_held_against_the_runtime_or_tested_elsewhere() -> None:
    recorded = {(case.type, definition(case.type, case.version)) for family in families() for case in cases(family)}
    assert registry.all_kernels().keys() - recorded == TESTED_ELSEWHERE.keys()
    for module in TESTED_ELSEWHERE.values():
        assert (Path(__file__).parents[1] / module).exists()
