"""Requests by name: what each carries, and the function that answers it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeVar

from msgspec import Struct

from stepper.integrations.dap.session import DapSession

A = TypeVar("A", bound=Struct)


class RequestKind(Struct, frozen=True, eq=False):
    """A request: the type of its arguments, and what answers it with a body (None: an empty one).

    `moves`: the run moves when it is answered. `needs_run`: it asks or changes the run, which is for one thread.
    """

    arguments: Any
    answer: Callable[[DapSession, Any], Any]
    moves: bool = False
    needs_run: bool = True


_MODULES: Final = ("life", "moving", "breaking", "looking", "evaluating", "following")
_KINDS: Final[dict[str, RequestKind]] = {}


def request(
    *names: str, arguments: type[A] | Any, moves: bool = False, needs_run: bool = True
) -> Callable[[Callable[[DapSession, A], Any]], Callable[[DapSession, A], Any]]:
    """Register a function as what answers the requests of these names."""

    def register(answer: Callable[[DapSession, A], Any]) -> Callable[[DapSession, A], Any]:
        for name in names:
            _KINDS[name] = RequestKind(arguments, answer, moves, needs_run)
        return answer

    return register


@cache
def request_kinds() -> dict[str, RequestKind]:
    """Return all requests by name."""
    for module in _MODULES:
        import_module(f"{__package__}.{module}")
    return _KINDS
