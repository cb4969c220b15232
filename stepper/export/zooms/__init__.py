"""Parts of a figure: the neighbourhood of an operation, all ways from one to another, an overview with a detail."""
