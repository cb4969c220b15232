"""The walk through two runs side by side: tolerances, differences, where an error comes from."""
