"""What is wrong with a model, without being asked where: rules of its file, and what a run of it shows."""
