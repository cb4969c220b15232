"""The thread that drives the debugger, and what it hands to the screens."""
