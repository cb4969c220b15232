"""How a run is controlled and looked at: addresses, expressions, statistics, stopping, time travel.

`stepper.debug(model, inputs)` is this module called: a debugger of a model of any kind that can be opened, in one word.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    def __call__(self, model: Any, inputs: Any, **options: Any) -> Any:
        """A `Debugger` of a path, a model that was read, or a live `openvino.Model`; options are the debugger's."""
        import stepper

        return stepper.open_debugger(model, inputs, **options)


sys.modules[__name__].__class__ = _CallableModule
