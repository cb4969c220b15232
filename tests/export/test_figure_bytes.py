"""The same figure is the same bytes: in other folders, locales, time zones, processes, hash seeds, and after CRLF.

STEPPER_FIGURE_BYTES=all tries every combination.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path

import pytest

from tests.export.figure_bytes import NAMES, figures
from tests.export.runs import SAMPLES

ROOT = SAMPLES.parent
LOCALES = ("C", "tr_TR.UTF-8", "de_DE.UTF-8")
ZONES = ("UTC", "Asia/Kathmandu")
SEEDS = ("0", "1", "4242")


def copied(folder: Path, *, crlf: bool) -> Path:
    """The samples in another folder, perhaps with the line ends of Windows."""
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        for file in ("model.xml", "model.bin", "inputs.npz"):
            content = (SAMPLES / name / file).read_bytes()
            if crlf and file == "model.xml":
                content = content.replace(b"\n", b"\r\n")
            (folder / name / file).write_bytes(content)
    return folder


def hashes(folder: Path, mask: int, **environment: str) -> dict[str, str]:
    process = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "tests.export.figure_bytes", "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        umask=mask,
        capture_output=True,
        check=True,
        timeout=300,
    )
    found: dict[str, str] = json.loads(process.stdout)
    return found


def environments() -> Iterator[tuple[str, str, str, bool, int]]:
    if os.environ.get("STEPPER_FIGURE_BYTES") == "all":
        yield from product(LOCALES, ZONES, SEEDS, (False, True), (0o022, 0o077))
    else:
        yield "tr_TR.UTF-8", "Asia/Kathmandu", "1", True, 0o077


@pytest.fixture(scope="module")
def usual() -> dict[str, str]:
    before = Path.cwd()
    os.chdir(SAMPLES)
    try:
        return {name: sha256(content).hexdigest() for name, content in figures(Path())}
    finally:
        os.chdir(before)


@pytest.mark.parametrize(("locale", "zone", "seed", "crlf", "mask"), list(environments()))
def test_figures_are_the_same_bytes_everywhere(
    usual: dict[str, str], locale: str, zone: str, seed: str, crlf: bool, mask: int, tmp_path: Path
) -> None:
    models = copied(tmp_path / "other words, blanks and ö", crlf=crlf)
    found = hashes(models, mask, LC_ALL=locale, TZ=zone, PYTHONHASHSEED=seed)
    assert len(usual) > 60
    assert [name for name in usual if found[name] != usual[name]] == []
