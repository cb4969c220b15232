"""Loops around one operation or layer."""
