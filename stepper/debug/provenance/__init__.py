"""Provenance of a value: which elements of inputs, constants and edits it depends on, found backwards and forwards."""
