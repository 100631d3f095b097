"""Prices from their sources: one module per source fetches and reads it; all pass the same completion and checks."""
