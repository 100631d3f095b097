"""The catalog: facts with their sources and dates, loaded into DuckDB, and the names that find them."""
