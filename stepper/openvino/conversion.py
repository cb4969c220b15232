"""The conversion of a model of another format into an IR, which runs where OpenVINO runs, and why it fails."""

from __future__ import annotations

import re
from typing import Final

from stepper.ir.excerpts import excerpt
from stepper.openvino import runtime
from stepper.processes.messages import CONVERTING

_UNKNOWN: Final = re.compile(r"No conversion rule found for operations: (.+)")
_FAILED: Final = re.compile(r"Conversion is failed for: (.+)")
_NODE: Final = re.compile(r"<Node\([^)]*\): ([^>]*)>")
_DETAILS: Final = re.compile(r"(?s)\n(?:\s*\n)?Summary:.*")
_FRAME: Final = ("Exception", "Check '", "FrontEnd API", "Model wasn't", "While validating", "-- ")
_LONGEST_NAMES: Final = 120
_LONGEST_REASON: Final = 160


def convert(source: str, target: str) -> None:
    """Read the model and write it as an IR, nothing compressed. RuntimeError with OpenVINO's words."""
    import openvino

    core = openvino.Core()
    runtime.announce(CONVERTING)
    # The same front ends as openvino.convert_model has, which would tell its makers of each use.
    model = core.read_model(source)
    openvino.save_model(model, target, compress_to_fp16=False)


def conversion_complaint(error: BaseException) -> str:
    """Return why a model is not converted, and what can be done, from an exception of OpenVINO's converter."""
    text = str(error)
    if "Unable to read the model" in text:
        return "is not a model that OpenVINO can read: the file is damaged, or of another format than its suffix says"
    without_rule, failed = _UNKNOWN.search(text), _FAILED.search(text)
    if without_rule is None and failed is None:
        return f"OpenVINO cannot convert it: {runtime.complaint(error)}"
    if without_rule is not None:
        names = excerpt(without_rule[1].strip(), _LONGEST_NAMES)
        return (
            f"OpenVINO cannot convert it: it has no rule for {names}; put other operations in their place before, or "
            "convert it with an extension that has them (openvino.convert_model) and open the .xml"
        )
    assert failed is not None
    name, node = excerpt(failed[1].strip(), _LONGEST_NAMES), _NODE.search(text)
    which = f"{name} '{excerpt(node[1])}'" if node is not None else name
    said = [line for line in _DETAILS.sub("", text).splitlines() if line.strip() and not line.startswith(_FRAME)]
    why = excerpt(said[-1].strip(), _LONGEST_REASON) if said else "it gives no reason"
    return (
        f"OpenVINO cannot convert {which}: {why}; correct that operation in the model, or convert it where it was made "
        "and open the .xml"
    )
