"""The engine of training runs: where seconds meet USD."""
