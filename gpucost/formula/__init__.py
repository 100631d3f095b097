"""A formula is one line of text that Python, a spreadsheet, the documentation and `--explain` all read.

`language` knows the grammar, `arrays` evaluates over NumPy columns, `spreadsheet` writes live cells. None knows money.
"""
