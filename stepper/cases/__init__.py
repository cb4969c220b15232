"""Cases: folders with a model, its inputs and what is known of a run, and how running applications give them."""
