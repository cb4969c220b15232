"""Session, layout and inputs of the application."""
