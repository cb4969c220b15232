"""The story: why a value is what it is, or why a loop ended, as a strip of causes across iterations."""
