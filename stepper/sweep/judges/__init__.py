"""What is said of a run: where a breakpoint stops it, what check finds, where it parts from a reference."""
