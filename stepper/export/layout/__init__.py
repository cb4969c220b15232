"""Where the boxes and wires of a figure are: our own layered layout."""
