"""Find faults that a run shows: watch one run as the overview does, and apply its own rules."""
