"""Texts of models for OpenVINO: as the file has them, and changed."""
