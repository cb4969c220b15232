"""Addresses: how one says which value of a run is meant (syntax), and what that is in a model (resolution)."""

from __future__ import annotations

from stepper.query.address_resolution import ResolutionError, Target, address_of, resolve, resolve_all
from stepper.query.address_syntax import (
    ALL_ITERATIONS,
    Address,
    AddressError,
    IterationRange,
    Iterations,
    Level,
    Name,
    NameKind,
    Range,
    address_given,
    exact_name,
    numpy_index,
    parse_address,
)

__all__ = [
    "ALL_ITERATIONS",
    "Address",
    "AddressError",
    "IterationRange",
    "Iterations",
    "Level",
    "Name",
    "NameKind",
    "Range",
    "ResolutionError",
    "Target",
    "address_given",
    "address_of",
    "exact_name",
    "numpy_index",
    "parse_address",
    "resolve",
    "resolve_all",
]
