"""From the options of the command line to the model to run and who computes its operations."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from stepper.cli.options.specs import given_shapes
from stepper.errors import UsageError
from stepper.files.kinds import is_model_path
from stepper.openvino.opening import open_model
from stepper.openvino.partner import NUMPY, OPENVINO, OpenVINOPartner
from stepper.openvino.runtime import Runtime
from stepper.terminal import say

if TYPE_CHECKING:
    from stepper.ir.model import Model


def opened_model(options: argparse.Namespace, path: str | None = None) -> Model:
    """Return the model that is named (or another one); converted where it is not an IR, with a message on stderr.

    Where the options say so it is the loop over its calls.
    """
    quiet = getattr(options, "quiet", False)
    notify = None if quiet else lambda text: say(f"stepper: {text}", file=sys.stderr)
    shapes = given_shapes(getattr(options, "shape", [])) if path is None else {}
    model = open_model(options.model if path is None else path, notify, getattr(options, "timeout", None), shapes)
    if getattr(options, "calls", None) or getattr(options, "carry", None):
        from stepper.cli.options.calls import put_calls  # few runs are of many calls

        beside = options.command == "compare" and is_model_path(options.reference)
        return put_calls(model, options, some=beside)
    if path is None and (kept := getattr(options, "kept_calls", None)) is not None:
        from stepper.ir.calls import with_calls

        return with_calls(model, kept)
    return model


def choices_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the engines for patterns. UsageError for what is not PATTERN=ENGINE."""
    return dict(_choice(text) for text in options.engine_for)


def partner_of(options: argparse.Namespace, model: Model) -> OpenVINOPartner:
    """Return who computes what. UsageError for contradictions, and for a pattern that fits nothing in the model."""
    choices = choices_of(options)
    partner = OpenVINOPartner(options.engine, choices, runtime_of(options))
    if OPENVINO not in (options.engine, *choices.values(), getattr(options, "reference", None)):
        ensure_no_device(options, "give it operations with --engine or --engine-for")
    partner.check(model)
    return partner


def is_usual(options: argparse.Namespace) -> bool:
    """Return True if the options leave it to numpy to compute, and to OpenVINO only what has no kernel."""
    return options.engine == NUMPY and not (options.engine_for or options.device or options.precision)


def fallback_of(options: argparse.Namespace, engine: str = NUMPY) -> OpenVINOPartner:
    """Return the partner for operations without a kernel where numpy computes all others; on the CPU, in f32."""
    return OpenVINOPartner(engine, runtime=Runtime(extensions=options.extension, timeout=options.timeout))


def runtime_of(options: argparse.Namespace) -> Runtime:
    """OpenVINO as the options describe it; not imported yet."""
    extensions = getattr(options, "extension", ())
    return Runtime(options.device or "CPU", options.precision or "f32", extensions, timeout=options.timeout)


def ensure_no_device(options: argparse.Namespace, advice: str) -> None:
    """Raise UsageError for a device or a precision where OpenVINO has nothing to compute."""
    for name, given in (("--device", options.device), ("--precision", options.precision)):
        if given:
            raise UsageError(f"{name} is for OpenVINO; {advice}")


def _choice(text: str) -> tuple[str, str]:
    pattern, equals, engine = text.rpartition("=")
    if not equals or not pattern:
        raise UsageError(f"--engine-for '{text}' is not PATTERN=ENGINE, such as MatMul=openvino")
    return pattern, engine
