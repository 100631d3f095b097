"""Measuring one's own machine: what its GPUs, links and steps attain, against what their datasheets promise."""
