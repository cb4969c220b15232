"""The facts of a whole run: its loops with all that they carry and give over the iterations, and how they end."""
