"""Which of OpenVINO's transformations changes what a model computes."""
