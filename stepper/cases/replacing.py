"""Methods of classes in place of which others stand for a while, also where several do and end in any order."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple


class ReplacedMethods:
    """Methods and functions that were replaced, until they are put back."""

    def __init__(self) -> None:
        self._replaced: list[_Replaced] = []

    @property
    def are_in_place(self) -> bool:
        """Return True from the first replacement until all are put back."""
        return bool(self._replaced)

    def replace(self, holder: Any, name: str, made: Callable[..., Any]) -> None:
        """Have a function called in place of one of a class or module, with that as its first argument."""
        with _changing:
            old, was_own = getattr(holder, name), name in vars(holder)

            @functools.wraps(old)
            def method(*arguments: Any, **options: Any) -> Any:
                return made(old, *arguments, **options) if self._replaced else old(*arguments, **options)

            self._replaced.append(_Replaced(holder, name, method, old, was_own))
            setattr(holder, name, method)

    def replace_setter(self, holder: Any, name: str, made: Callable[..., None]) -> None:
        """Have a function called in place of what sets a property, with that as its first argument."""
        with _changing:
            old, was_own = getattr(holder, name), name in vars(holder)

            def put(one: Any, value: Any) -> None:
                if self._replaced:
                    made(old.fset, one, value)
                else:
                    old.fset(one, value)

            setter = property(old.fget, put, old.fdel, old.__doc__)
            self._replaced.append(_Replaced(holder, name, setter, old, was_own))
            setattr(holder, name, setter)

    def replace_getter(self, holder: Any, name: str, made: Callable[..., Any]) -> None:
        """Have a function called in place of what gets a property, with that as its first argument."""
        with _changing:
            old, was_own = getattr(holder, name), name in vars(holder)

            def get(one: Any) -> Any:
                return made(old.fget, one) if self._replaced else old.fget(one)

            getter = property(get, old.fset, old.fdel, old.__doc__)
            self._replaced.append(_Replaced(holder, name, getter, old, was_own))
            setattr(holder, name, getter)

    def put_back(self) -> None:
        """Put the old ones in their places."""
        replaced, self._replaced = self._replaced, []
        with _changing:
            for one in reversed(replaced):
                one.put_back()


class _Replaced(NamedTuple):
    """A method of ours, and the one in the place of which it stands, the holder's own or inherited."""

    holder: Any
    name: str
    method: Any
    old: Any
    was_own: bool

    def put_back(self) -> None:
        """Put the old one in its place; where another one stands before ours now, that does it when it goes."""
        if vars(self.holder).get(self.name) is not self.method:
            _left[id(self.method)] = self
            return
        last = self
        while id(last.old) in _left:
            last = _left.pop(id(last.old))
        if last.was_own:
            setattr(self.holder, self.name, last.old)
        else:
            delattr(self.holder, self.name)


_changing = threading.Lock()
_left: dict[int, _Replaced] = {}
"""Methods by their id that have ended, and only hand on."""
