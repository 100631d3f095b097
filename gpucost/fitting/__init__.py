"""Does a model fit: the search for a layout that does, the changes that help, the answer with its formulas."""
