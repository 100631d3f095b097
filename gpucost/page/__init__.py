"""A page to plan on: served on loopback, answered by the same code as the commands (extra `serve`)."""
