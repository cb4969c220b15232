"""The terminal application of the stepper."""
