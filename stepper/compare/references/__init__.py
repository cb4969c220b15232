"""References that a run can be compared with: models, recordings, archives, OpenVINO, ONNX."""
