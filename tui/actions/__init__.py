"""What keys and commands do, a group a file."""
