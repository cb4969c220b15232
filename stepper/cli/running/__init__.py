"""Runs of `stepper run`: recorded, watched, resumed."""
