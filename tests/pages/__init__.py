"""Four pages made with figures, and pictures of them: a README, documentation by Sphinx, a paper, a slide."""
