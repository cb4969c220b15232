"""The textbook's figure of a loop: iterations side by side, with the numbers of a run, for a page of a given width."""
