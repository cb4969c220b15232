"""Random models with loops, built from a seed by the means of OpenVINO, which only the hunt's process imports."""
