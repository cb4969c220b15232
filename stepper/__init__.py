"""A debugger for the loops of a neural network (under construction)."""
