"""Tests of stepper.openvino that need no OpenVINO."""
