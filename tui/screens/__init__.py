"""The screens: one class a file; registry.py lists them."""
