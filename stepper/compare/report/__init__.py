"""What a comparison found: evidence, verdict, explanation, and their words."""
