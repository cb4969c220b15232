"""The iterations of bodies on their way into the tables: which are recorded, in batches, stacks and rows of numbers."""
