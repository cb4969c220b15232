"""A Python function FILE.py:NAME as a reference.

It runs in a process of its own. NAME is a function that returns a torch module, or another callable of arrays; inputs
come in the order of the model's, outputs may be one, several in a tuple or a list, or a dictionary.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.processes.starting import python_command

_MARK = ".py:"
_MOST_SECONDS = 600


def names_function(text: str) -> bool:
    """Return True for FILE.py:NAME."""
    path, mark, name = text.rpartition(_MARK)
    return bool(path and mark and name.isidentifier())


def ask_function(text: str, inputs: Sequence[Array]) -> dict[int, Array]:
    """Return the outputs of the callable that FILE.py:NAME gives, on these inputs. UsageError if it fails."""
    path, _mark, name = text.rpartition(_MARK)
    with tempfile.TemporaryDirectory(prefix="stepper-") as folder:
        given, made = Path(folder) / "inputs.npz", Path(folder) / "outputs.npz"
        np.savez(given, *inputs)
        words = python_command(f"from {__name__} import main; main()", f"{path}.py", name, str(given), str(made))
        try:
            ended = subprocess.run(words, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise UsageError(f"--with {text}: gives no outputs within {_MOST_SECONDS} s") from None
        if ended.returncode or not made.exists():
            said = ended.stderr.strip().splitlines()
            raise UsageError(f"--with {text}: {said[-1] if said else 'it ends without outputs'}")
        with np.load(made) as archive:
            return {index: archive[f"arr_{index}"] for index in range(len(archive.files))}


def _called(function: Any, arrays: Sequence[Array]) -> list[Array]:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(function, torch.nn.Module):
        with torch.no_grad():
            return _flat(function.eval()(*[torch.from_numpy(array) for array in arrays]))
    return _flat(function(*arrays))


def _flat(value: Any) -> list[Array]:
    """Return outputs as arrays, those of tuples, lists and dictionaries in their order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [array for one in value for array in _flat(one)]
    return [np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)]


def main() -> None:
    """Call the function and save what it gives."""
    path, name, given, made = sys.argv[1:]
    sys.path.insert(0, str(Path(path).absolute().parent))
    spec = importlib.util.spec_from_file_location("reference", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    with np.load(given) as archive:
        arrays = [archive[f"arr_{index}"] for index in range(len(archive.files))]
    np.savez(made, *_called(getattr(module, name)(), arrays))
