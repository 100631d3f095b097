"""Saved answers: any payload as a result that renders itself, and the way commands write it."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from gpucost.api.result import Result

Answered = TypeVar("Answered", bound=Mapping[str, Any])


def reproduced(payload: Answered) -> Answered:
    """Return a payload as it reads after it was saved: numbers with the digits that JSON carries."""
    from gpucost.render.json import dumps

    read: Answered = json.loads(dumps(payload))
    return read


def written(payload: Mapping[str, Any], format_: str, fields: str | None, rows_key: str) -> str:
    """Write a payload as text, JSON, CSV of its main list, or Markdown."""
    result = Result(payload)
    if format_ == "json":
        return result.to_json()
    if format_ == "csv" or fields:
        from gpucost.render.rows import render_rows

        rows = list(payload.get(rows_key) or [])
        flat = [{key: value for key, value in row.items() if not isinstance(value, (dict, list))} for row in rows]
        names = [name.strip() for name in fields.split(",")] if fields else list(flat[0]) if flat else []
        return render_rows(flat, columns=names, format_=format_, fields=fields, envelope={})
    return result.to_markdown() if format_ == "md" else result.to_text()
