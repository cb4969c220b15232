"""Random models with loops, built from a seed by the means of OpenVINO. Nothing but the process of the hunt imports it."""
