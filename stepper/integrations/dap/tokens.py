"""The token of a port: what a client says before anything is done for it.

Every user of a machine can connect to its ports, and a client has the rights of whoever serves it. The token of a port
is printed by who serves it, and kept where that user alone can read it: an adapter of the same user finds it there.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from stepper.files.user_cache import roomy, user_cache
from stepper.integrations.dap.messages import Request

CHOSEN: Final = "STEPPER_DAP_TOKEN"
"""The variable of the environment that has the token where its user chooses it."""
_FOLDER: Final = "ports"
_MOST_KEPT: Final = 4096
NO_TOKEN: Final = (
    'this port asks for its token: "token": "..." among the arguments of launch or attach; stepper dap --port prints it'
)


class _Token(Struct, frozen=True):
    """The token among the arguments of a request."""

    token: str = ""


def new_token() -> str:
    """Return the token of a port: the one that the user has chosen, else a new one."""
    return os.environ.get(CHOSEN) or secrets.token_urlsafe()


def has_token(message: bytes, token: str) -> bool:
    """True if a request brings this token among its arguments."""
    try:
        given = msgspec.json.decode(msgspec.json.decode(message, type=Request).arguments, type=_Token).token
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode("utf-8", "surrogateescape"))


def keep(port: int, token: str) -> None:
    """Keep the token of a port for adapters of the same user; where it cannot be kept, they must be told."""
    forget(port)
    roomy(_file(port).parent, _MOST_KEPT)  # those of programs that were killed go
    with contextlib.suppress(OSError), open(_file(port), "x", opener=_private) as file:
        file.write(token)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def forget(port: int) -> None:
    """Take the token of a port away."""
    with contextlib.suppress(OSError):
        _file(port).unlink(missing_ok=True)


def with_token(message: bytes, port: int) -> bytes:
    """Return a request with the token that is kept of a port, unless it brings one or there is none."""
    content: dict[str, Any] = msgspec.json.decode(message)
    with contextlib.suppress(OSError, UnicodeError):
        content["arguments"] = {"token": _file(port).read_text(encoding="utf-8"), **content["arguments"]}
    return msgspec.json.encode(content)


def _file(port: int) -> Path:
    return user_cache() / _FOLDER / str(port)
