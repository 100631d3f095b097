"""What is made of questions: a choice of accelerators, comparisons, sweeps, reports of scenarios."""
