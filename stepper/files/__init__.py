"""Files on disk: what may be written and how, locks, configuration, which names are models."""
