"""Finding moments of a run: where an expression holds, and where an address is."""
