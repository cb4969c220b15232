"""Sessions in files: breakpoints, watches, marks, branches, labels, and the place."""
