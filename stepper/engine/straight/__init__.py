"""Bodies without nested graphs: each as one written function, and whole iterations of it in one go."""
