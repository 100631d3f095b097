"""Workloads in physical terms and how fast they run: what several questions share, without a price."""
