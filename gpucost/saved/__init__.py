"""Saved answers: compared, and run again."""
