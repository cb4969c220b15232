"""The commands of `stepper`, a file each."""
