"""Actions that keys and commands carry out, a group a file."""
