"""A model as a program in plain numpy."""
