"""The other side of a comparison, as far as it can be tested without OpenVINO (with it: tests/conformance)."""
