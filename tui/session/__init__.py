"""What the application keeps: layout, inputs, session."""
