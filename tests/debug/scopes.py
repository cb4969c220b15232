"""A scope of given values, for expressions alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepper.errors import UsageError
from stepper.query.address_syntax import Address, parse_address


class Values:
    """Values by the text of their addresses: now, one iteration before, and in the reference."""

    def __init__(
        self,
        now: Mapping[str, Any] | None = None,
        before: Mapping[str, Any] | None = None,
        reference: Mapping[str, Any] | None = None,
        iteration: int = 0,
    ) -> None:
        self.now, self.before, self.expected = (
            {parse_address(text): value for text, value in (given or {}).items()} for given in (now, before, reference)
        )
        self.number = iteration
        self.read: list[str] = []

    def value(self, address: Address) -> Any:
        return self._found(self.now, address)

    def previous(self, address: Address) -> Any:
        return self._found(self.before, address)

    def reference(self, address: Address) -> Any:
        return self._found(self.expected, address)

    def iteration(self) -> int:
        return self.number

    def iteration_of(self, loop: str) -> int:
        raise UsageError(f"there is no loop {loop}")

    def _found(self, values: Mapping[Address, Any], address: Address) -> Any:
        self.read.append(str(address))
        if address not in values:
            raise UsageError(f"there is no value of {address}")
        return values[address]
