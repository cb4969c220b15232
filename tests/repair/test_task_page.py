"""The page docs/tasks/numbers-differ-from-pytorch.md: its commands find its five mistakes, and print what it shows."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepper.cli import main
from tests.repair.faulty_networks import Network, network, outputs_of, random_inputs, read, with_lengths
from tests.test_docs import ROOT, fences, fits

PAGE = ROOT / "docs" / "tasks" / "numbers-differ-from-pytorch.md"
TEXTS = [fence.text for fence in fences(PAGE)]
COMMANDS = [text.strip() for text in TEXTS if text.startswith("stepper fix")]
SHOWN = [text for text in TEXTS if text.startswith("outputs differ")]
HEALTHY = network(Network())
FAULTY = [
    network(replace(Network(), transposes_weights=False)),
    network(replace(Network(), gain=0.9)),
    network(replace(Network(), begins_with="begin")),
    with_lengths(counts=False),
    network(replace(Network(), takes_size=False)),
]
ORIGINAL = """
import numpy as np
import stepper

def make():
    return lambda *inputs: tuple(stepper.run("original/model.xml", dict(zip(("x", "begin"), inputs))).values())
"""


def prepared(folder: Path, number: int) -> None:
    """Write the files that the page names: the faulty model, inputs, and the outputs of the original."""
    healthy = read(with_lengths(counts=True) if number == 3 else HEALTHY, folder, "original")
    faulty = read(FAULTY[number], folder, "converted")
    inputs = random_inputs(healthy)
    names = [layer.name for layer in faulty.graph.parameters]
    np.savez(folder / "inputs.npz", **{names[position]: value for position, value in inputs.items()})
    np.savez(folder / "torch.npz", **{f"out_{key}": value for key, value in outputs_of(healthy, inputs).items()})
    for suffix in ("xml", "bin"):
        (folder / "converted" / f"model.{suffix}").rename(folder / f"model.{suffix}")
    (folder / "app.py").write_text(ORIGINAL, encoding="utf-8")


@pytest.mark.parametrize("number", range(5))
def test_the_command_of_the_page_prints_what_it_shows(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared(tmp_path, number)
    monkeypatch.chdir(tmp_path)
    assert len(SHOWN) == len(FAULTY)
    assert main(shlex.split(COMMANDS[0])[1:]) == 1
    printed = capsys.readouterr().out
    assert fits(printed, f"{SHOWN[number]}...\n"), printed
    assert main(["compare", "fixed.xml", "--with", "torch.npz", "--inputs", "inputs.npz", "--quiet"]) == 0


def test_the_original_may_be_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert main(shlex.split(COMMANDS[1])[1:]) == 1
    assert "1. Constant 'gain': 1.37 instead of 0.9" in capsys.readouterr().out
