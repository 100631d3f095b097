"""The engine of training runs: where seconds meet USD.

Facts become cases; physics runs once per distinct physical key; prices follow, one vectorised path for all.
"""
