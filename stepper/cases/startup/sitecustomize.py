"""Begin the capture of a process of `stepper capture -- COMMAND` as soon as it imports openvino.

Python imports this when it starts, because its folder is on PYTHONPATH. Another sitecustomize is carried out as well.
Nothing but the standard library is imported before openvino is.
"""

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def _carry_out_the_other() -> None:
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


class _AfterOpenVINO:
    """Finds nothing; has the capture begin when openvino is loaded."""

    def __init__(self, settings: str) -> None:
        self.settings = settings

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return the module's own spec, whose loader begins the capture behind it."""
        if name != "openvino":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return spec
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            _begin(self.settings)

        loader.exec_module = exec_module
        return spec


def _begin(settings: str) -> None:
    """Begin the capture with the application's copy of this program, else the command's copy."""
    import json

    before, loaded, packages = list(sys.path), set(sys.modules), json.loads(settings)["packages"]
    error: Exception | None = None
    for paths in ([*before, *packages], [*packages, *before]):
        sys.path[:] = paths
        try:
            from stepper.cases.capturing import begin

            begin(settings)
        except Exception as failure:
            error = failure
            if "stepper" in loaded:  # the application uses another version, which stays
                break
            for name in [one for one in sys.modules if one.partition(".")[0] == "stepper"]:
                del sys.modules[name]
        else:
            error = None
            break
        finally:
            sys.path[:] = before
    if error is not None:
        reason = "".join(letter if letter.isprintable() else " " for letter in str(error))
        print(f"stepper capture: no calls are kept of process {os.getpid()}: {reason}", file=sys.stderr)


if settings := os.environ.get("STEPPER_CAPTURE"):
    sys.meta_path.insert(0, _AfterOpenVINO(settings))
_carry_out_the_other()
