"""The command language of the debugger: `Interpreter(debugger).execute("next 3")` gives an `Answer`."""

from stepper.commands.command_session import Answer, Session
from stepper.commands.interpreter import Interpreter
from stepper.commands.session_commands import ScriptError, script_lines

__all__ = ["Answer", "Interpreter", "ScriptError", "Session", "script_lines"]
