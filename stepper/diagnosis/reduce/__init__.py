"""Faults made small: the smallest model that still shows what a large one does. `reducing.reduce_model` begins it."""
