"""Networks that nobody here wrote, from packages and from scripts; see `recipes`."""
