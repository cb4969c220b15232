"""The terminal: left as it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

    def stop_application_mode(self) -> None:
        """Leave the other screen, empty."""
        self.write(_CLEAR)
        super().stop_application_mode()


def clearing(driver: type[Driver]) -> type[Driver]:
    """Return the class of a driver that clears what it has painted when it leaves the terminal."""
    return type(f"Clearing{driver.__name__}", (ClearingDriver, driver), {})
