"""Sweeps: grids of arguments, cut into chunks that any machine can answer, joined in one order."""
