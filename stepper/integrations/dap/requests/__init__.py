"""Requests by name, and what answers each; a module for each kind of them."""
