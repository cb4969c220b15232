"""How a value is named and asked about: addresses, and expressions over them."""
