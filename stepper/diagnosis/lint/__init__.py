"""Rules that a file can break: read off the model alone, without inputs and without a run."""
