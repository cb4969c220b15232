"""From options to what they mean: models, inputs, variables, engines, files."""
