"""Figures in pages of documentation, as far as it is the same for all programs that build such pages."""
