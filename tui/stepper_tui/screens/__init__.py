"""The screens: command_line.py lists them."""
