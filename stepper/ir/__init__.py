"""The file format: XML and .bin to an immutable Model. Knows nothing of execution."""
