"""Rules of a comparison with a reference; `check.comparing` finds where they are broken."""

from __future__ import annotations

from typing import Final

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.rule import RUN, Rule, add

DIFFERS: Final = Rule(
    "D501",
    "differs-from-reference",
    RUN,
    ERROR,
    says="the run parts from {reference}: {reason}",
    means="the model does not compute what the reference does",
    do="look at both sides there: stepper compare {model} --with {reference}",
    source="the reference",
)
add(DIFFERS)
REFUSED: Final = Rule(
    "D502",
    "reference-stops",
    RUN,
    WARNING,
    says="{reference} stops: {reason}",
    means="the model runs here and not there",
    do="look at what the message names; stepper lint tells what OpenVINO refuses",
    source="the reference",
)
add(REFUSED)


DEPARTS: Final = Rule(
    "D503",
    "runtime-departs",
    RUN,
    NOTE,
    says="the run parts from {reference}: {reason}",
    means="OpenVINO computes this otherwise than the specification says; with --rules openvino both agree",
    do="write the model so that both mean the same; stepper lint names what is known",
    source="semantics 11",
)
add(DEPARTS)
