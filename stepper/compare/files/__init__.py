"""Differences of two model files, and which of them explains a difference of their runs."""
