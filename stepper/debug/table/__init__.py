"""A table of a loop's run: iterations down, elements or operations across; sorted, filtered, searched."""
