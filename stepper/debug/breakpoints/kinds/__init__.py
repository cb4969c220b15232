"""Kinds of data breakpoints, a file each, found by being here; data_breakpoints.py says how one is written."""
