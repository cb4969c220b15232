"""The command language of the debugger: `Interpreter(debugger).execute("next 3")` gives an `Answer`."""

from stepper.debug.commands.interpreter import Interpreter
from stepper.debug.commands.scripts import ScriptError, script_lines
from stepper.debug.commands.session import Answer, Session

__all__ = ["Answer", "Interpreter", "ScriptError", "Session", "script_lines"]
