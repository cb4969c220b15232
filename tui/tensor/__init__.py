"""One value at a time: what the value screen looks at, and how its numbers and colours are drawn."""
