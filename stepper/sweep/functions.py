"""Functions that the user names, `pkg.module:function`: each call gives the arrays of an input, by name or position.

They are the user's own, and may print, raise, leave and hang.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from stepper.element_types import Array
from stepper.errors import InputError, LimitReached, UsageError
from stepper.sweep.limits import NotReturned, helper_of_this_thread
from stepper.wording import excerpt

_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_LONGEST_REASON: Final = 300


def check_function(text: str) -> None:
    """Raise UsageError for what is not written as `pkg.module:function`."""
    if not _FUNCTION.fullmatch(text):
        raise UsageError(f"--generate {text}: expected pkg.module:function, which takes a number and returns arrays")


def arrays_called(text: str, number: int, seconds: float | None = None) -> dict[str, Array]:
    """Return what a function returns for a number. InputError where it raises, or returns something else.

    LimitReached where it does not return within so many seconds.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):  # the answer of the sweep is on stdout
            given = _function(text)(number) if seconds is None else _returned_within(seconds, text, number)
    except UsageError:
        raise
    except NotReturned:
        raise LimitReached(f"{text}({number}) did not return within {seconds:g} s, the limit for each input") from None
    except (Exception, SystemExit) as error:  # it is the user's own
        raise InputError(f"{text}({number}) raised {_reason(error)}") from None
    if not isinstance(given, Mapping):
        raise InputError(f"{text}({number}) returned {type(given).__name__}, and a dict of arrays by name is expected")
    try:
        return {str(key): np.asarray(value) for key, value in given.items()}
    except ValueError as error:
        raise InputError(f"{text}({number}): {_reason(error)}") from None


def _returned_within(seconds: float, text: str, number: int) -> Any:
    """Return what a function returns, which is given so many seconds; importing its module is not."""
    helper = helper_of_this_thread()
    return helper.returned(seconds, helper.returned(None, _function, text), number)


@lru_cache(maxsize=1)
def _function(text: str) -> Any:
    check_function(text)
    module, _, name = text.partition(":")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            _import_from_here(module.partition(".")[0])
            found = getattr(importlib.import_module(module), name, None)
    except (Exception, SystemExit) as error:  # whatever the user's module does
        raise UsageError(f"--generate {text}: {module} cannot be imported: {_reason(error)}") from None
    if not callable(found):
        raise UsageError(f"--generate {text}: {module} has no function '{name}'")
    return found


def _import_from_here(package: str) -> None:
    """Import the module or package that the user named from the working folder, if it lies there.

    The folder becomes the last of the module path: its other files hide no module of Python or of a package.
    """
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    spec = PathFinder.find_spec(package, [folder])
    if spec is None or spec.loader is None or package in sys.modules:
        return
    sys.modules[package] = module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules[package])
    except BaseException:
        del sys.modules[package]
        raise


def load_function(text: str) -> None:
    """Import the module of a function. UsageError where that fails, or the function is not there."""
    _function(text)


def function_hash(text: str) -> str:
    """Return a hash of the file of a function; empty for none, or one that is in no file. UsageError as above."""
    if not text:
        return ""
    path = getattr(sys.modules[_function(text).__module__], "__file__", None)
    try:
        return "" if path is None else hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""


def _reason(error: BaseException) -> str:
    return excerpt(" ".join(f"{type(error).__name__}: {error}".split()), _LONGEST_REASON)
