"""Sessions in files (breakpoints, watches, marks, branches, labels, the place); chosen inputs."""
