"""Owning against renting, joined with the facts: inputs from the catalog and a plan, answers from money's formulas."""
