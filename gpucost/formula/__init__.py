"""A formula is one line of text that Python, a spreadsheet, the documentation and `--explain` all read."""
