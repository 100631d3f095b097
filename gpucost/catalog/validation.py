"""Judging data that is not trusted: each bad cell is refused as file:row:column, and a bad file loads nothing."""
