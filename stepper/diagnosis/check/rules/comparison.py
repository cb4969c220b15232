"""Rules of a comparison with a reference; `check.comparing` finds where they are broken."""

from __future__ import annotations

from typing import Final

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.rule import RUN, add

DIFFERS: Final = add(
    "D501",
    "differs-from-reference",
    RUN,
    ERROR,
    says="the run parts from {reference}: {reason}",
    means="the model does not compute what the reference does",
    do="look at both sides there: stepper compare {model} --with {reference}",
    source="the reference",
)
REFUSED: Final = add(
    "D502",
    "reference-stops",
    RUN,
    WARNING,
    says="{reference} stops: {reason}",
    means="the model runs here and not there",
    do="look at what the message names; stepper lint tells what OpenVINO refuses",
    source="the reference",
)


DEPARTS: Final = add(
    "D503",
    "runtime-departs",
    RUN,
    NOTE,
    says="the run parts from {reference}: {reason}",
    means="OpenVINO computes this otherwise than the specification says; with --rules openvino both agree",
    do="write the model so that both mean the same; stepper lint names what is known",
    source="OpenVINO 2026.4.1, measured",
)
