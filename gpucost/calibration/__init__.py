"""Fits and validations: reading published rows, predicting them, fitting to them, and choosing by sources not seen."""
