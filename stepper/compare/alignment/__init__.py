"""Which layers of two models stand for each other."""
