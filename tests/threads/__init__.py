"""The 35 threads in which people lost time with a loop, as small models, and what the program says of each."""
