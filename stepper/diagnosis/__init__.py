"""Diagnosis: faults of a model are named without being asked where; rules of its file first."""
