"""Pages of documentation, and what makes them."""
