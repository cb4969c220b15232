"""From the options of the command line to a debugger: of which model, on which inputs, beside which reference."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stepper.cli.options.specs import (
    bound_inputs,
    fallback_of,
    given_states,
    opened_model,
    partner_of,
    protected_files,
    runtime_of,
)
from stepper.engine.rules import Rules

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.element_types import Array
    from stepper.ir.model import Model


def debugger_of(options: Namespace, *, kept: Mapping[str | int, Any] | None = None) -> Debugger:
    """Return a debugger of the model on the inputs that the options give.

    `kept` are inputs by position, for those that the options do not give.
    """
    model = opened_model(options)
    # Inputs are wanted before the model is opened, so that a missing one is found at once.
    return debugger_on(model, dict(enumerate(bound_inputs(model, options, kept))), options)


def debugger_on(model: Model, inputs: Mapping[int, Array], options: Namespace) -> Debugger:
    """Return a debugger of the model on these inputs, by position."""
    from stepper.debug.debugger import DEFAULT_MEMORY, Debugger  # the application is painted before

    partner = partner_of(options, model)
    if options.open_sequences:
        from stepper.ir.reader import open_sequences  # few want it

        model = open_sequences(model)
    debugger = Debugger(
        model,
        dict(inputs.items()),
        options.rules or Rules.SPEC,
        memory=getattr(options, "memory", None) or DEFAULT_MEMORY,
        max_iterations=options.max_iterations,
        states={**getattr(options, "kept_states", {}), **given_states(model, options)},
        partner=partner,
    )
    debugger.protected += protected_files(options)
    return debugger


def put_reference(debugger: Debugger, options: Namespace) -> None:
    """Compare with what the options name as the reference, if they do."""
    if options.reference is None:
        return
    from stepper.compare.references.reference_opening import debug_reference  # loads what compares

    debugger.reference = debug_reference(
        options.reference,
        debugger.machine,
        debugger.inputs,
        runtime_of(options),
        options.model,
        fallback_of(options),
    )
