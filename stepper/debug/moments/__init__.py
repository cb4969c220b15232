"""Two moments side by side: now, and A, which is another iteration, another branch or a reference."""
