"""How fast a layout runs, and why: throughput and rooflines."""
