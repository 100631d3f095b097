"""Configurations of models read into architectures."""
