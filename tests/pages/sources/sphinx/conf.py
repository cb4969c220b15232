"""Settings of the documentation."""

project = "Loops"
author = "stepper"
extensions = ["stepper.integrations.sphinx"]
numfig = True
copyright = "2026, stepper"
html_theme = "alabaster"
latex_documents = [("index", "loops.tex", "Loops", "stepper", "howto")]
latex_elements = {"papersize": "a4paper", "fontpkg": r"\usepackage{mathptmx}\usepackage[scaled]{helvet}"}
