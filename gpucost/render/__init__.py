"""Rendering: saved results become text, JSON, CSV, Markdown, Excel and HTML. It computes nothing."""
