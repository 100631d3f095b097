"""Invoices as FOCUS rows: an answer written as them, read back from files, and held against what was planned."""
