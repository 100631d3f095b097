"""Holding predictions against measurements: reading rows as published, predicting them, and reporting the errors."""
