"""From the options of the command line to the model to run and who computes its operations."""

from __future__ import annotations

import argparse
import sys

from stepper.cli.printing import say
from stepper.compare.openvino_opening import open_model
from stepper.compare.openvino_runtime import Runtime
from stepper.compare.partner import OPENVINO, OpenVINOPartner
from stepper.errors import UsageError
from stepper.ir.model import Model


def opened_model(options: argparse.Namespace) -> Model:
    """The model that is named; converted where it is no IR, which is told on stderr."""
    quiet = getattr(options, "quiet", False)
    return open_model(options.model, None if quiet else lambda text: say(f"stepper: {text}", file=sys.stderr))


def partner_of(options: argparse.Namespace, model: Model) -> OpenVINOPartner:
    """Who computes what. UsageError for what does not go together, and for a pattern that fits nothing in the model."""
    choices = dict(_choice(text) for text in options.engine_for)
    partner = OpenVINOPartner(options.engine, choices, _runtime(options))
    if OPENVINO not in (options.engine, *choices.values()) and (options.device or options.precision):
        given = "--device" if options.device else "--precision"
        raise UsageError(f"{given} is for OpenVINO; give it operations with --engine or --engine-for")
    partner.check(model)
    return partner


def _runtime(options: argparse.Namespace) -> Runtime:
    return Runtime(options.device or "CPU", options.precision or "f32", options.extension)


def _choice(text: str) -> tuple[str, str]:
    pattern, equals, engine = text.rpartition("=")
    if not equals or not pattern:
        raise UsageError(f"--engine-for '{text}' is no PATTERN=ENGINE, such as MatMul=openvino")
    return pattern, engine
