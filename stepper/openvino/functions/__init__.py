"""Models as functions from arrays to arrays, in the process in which OpenVINO is."""
