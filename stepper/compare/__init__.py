"""The same run elsewhere: OpenVINO, ONNX, or a recorded trace; where is the first difference."""
