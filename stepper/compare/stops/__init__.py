"""A stop of the debugger beside another run: differences of its values, over iterations, the first of the run."""
