"""Loops and Ifs as frames: their ports, and what is particular about them."""
