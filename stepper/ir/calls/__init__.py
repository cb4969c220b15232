"""Many calls of a model as one loop around it: an iteration is a call."""
