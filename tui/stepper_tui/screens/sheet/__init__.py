"""The table screen: iterations down, elements or operations across."""
