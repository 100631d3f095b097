"""Strange input for every face of the program, and what must never happen of it.

`cases` asks, drawn from a number; `judge` runs one case and judges it; `meaning` says what an answer may not hold;
`workers` runs many cases in processes that may die; `python -m benchmarks.fuzz` counts.
"""
