"""The terminal: left as it was found."""

from __future__ import annotations

import contextlib
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from textual.driver import Driver
    from textual.drivers.linux_driver import LinuxDriver

    _Base = LinuxDriver
else:
    _Base = object

_CLEAR: Final = "\x1b[H\x1b[2J"


class ClearingDriver(_Base):
    """To be named before a driver class: what is painted is cleared before the normal screen is put back.

    tmux takes lines of the other screen for lines of the normal one if the terminal was made smaller meanwhile.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._file: Any = LastingFile(self._file)

    def stop_application_mode(self) -> None:
        """Leave the other screen, empty."""
        self.write(_CLEAR)
        super().stop_application_mode()


class LastingFile:
    """A terminal that takes what is written to it also when it is gone.

    Textual writes in a thread that would end at the first error, and waits for it for ever.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write it, if the terminal is there; return the number of characters."""
        with contextlib.suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Have it shown, if the terminal is there."""
        with contextlib.suppress(OSError):
            self._file.flush()


def clearing(driver: type[Driver]) -> type[Driver]:
    """Return the class of a driver that clears what it has painted when it leaves the terminal."""
    return type(f"Clearing{driver.__name__}", (ClearingDriver, driver), {})
