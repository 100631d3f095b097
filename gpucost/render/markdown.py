"""The Markdown writer: a whole document, with every section, its sources and its warnings."""

import re
from collections.abc import Iterator

from gpucost.render.document import (
    Document,
    KeyFigures,
    Paragraph,
    Table,
    cell_text,
    cell_writer,
    fact_text,
    head_text,
    is_numeric,
    printable,
)
from gpucost.render.text import Terminal, plot

# plots stand in a code block, which no renderer wraps; 90 characters fit on most screens
_PLOT = Terminal(width=90, color=False, unicode=True)


def write(document: Document) -> str:
    """Return the document as GitHub-flavoured Markdown."""
    document = printable(document)
    # old prices go before everything else; warnings that concern figures follow the answer
    lines = [f"> **Warning.** {escape(document.notice)}", ""] if document.notice else []
    lines += [f"# {escape(document.title)}", ""]
    if document.lead:
        lines += [f"**{escape(document.lead)}**", ""]
    if document.stamp:
        lines += [" · ".join(document.stamp), ""]
    lines += [line for warning in document.warnings for line in (f"> **Warning.** {escape(warning)}", "")]
    lines += [line for remark in document.remarks for line in (f"> {escape(remark)}", "")]
    for section in document.sections:
        if section.title:
            lines += [f"## {escape(section.title)}", ""]
        for block in section.blocks:
            if isinstance(block, Paragraph) and block.style == "code":
                lines += ["```", *block.text.splitlines(), "```", ""]
            elif isinstance(block, Paragraph):
                lines += [f"**{escape(block.text)}**" if block.style == "lead" else escape(block.text), ""]
            elif isinstance(block, KeyFigures):
                lines += [f"**{escape(block.title)}**", ""] if block.title else []
                for fact in block.items:
                    label = f"{escape(fact.label)}:" if block.style == "plain" else f"**{escape(fact.label)}**"
                    lines.append(f"- {label} {escape(fact_text(fact))}")
                lines.append("")
            elif isinstance(block, Table):
                lines += [*table_lines(block), ""]
            else:
                # the picture as text, and in words for those who read it aloud
                _, *picture = plot(block, _PLOT)
                lines += [f"**{escape(block.title)}**", "", "```text", *picture, "```", ""]
                lines += [escape(block.description), ""]
    if document.sources:
        lines += [
            "## Sources",
            "",
            "| id | publisher | title | where | published | accessed |",
            "|---|---|---|---|---|---|",
        ]
    for source_id, source in sorted(document.sources.items()):
        cells = (source.get(key) or "" for key in ("publisher", "title", "locator", "published_on", "accessed_on"))
        lines.append(f"| {' | '.join(map(escape, (source_id, *cells)))} |")
    return "\n".join(lines).rstrip() + "\n"


_SIGNS = re.compile(r"[\\&<>|*_`\[\]]|\s\s|[^\S ]|^ | $")  # of Markdown and HTML, and spaces that are no single blank


def escape(text: object) -> str:
    """Keep text from being read as Markdown or HTML."""
    text = str(text)
    # most cells hold no such sign, and a report has thousands of them
    if text.isalnum() or not _SIGNS.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign in "|*_`[]":
        escaped = escaped.replace(sign, "\\" + sign)
    return " ".join(escaped.split())


def table_lines(table: Table) -> Iterator[str]:
    """Write a table with its heading row and alignment."""
    if table.title:
        yield from (f"**{escape(table.title)}**", "")
    if not table.rows:
        yield escape(table.note or "No rows.")
        return
    columns = table.filled
    yield f"| {' | '.join(escape(head_text(column)) for column in columns)} |"
    yield f"|{'|'.join('---:' if is_numeric(column, table.rows) else '---' for column in columns)}|"
    # what writes a column is made once, not for each of its cells
    writers = [cell_writer(column) for column in columns]
    for row in table.rows:
        yield f"| {' | '.join([escape(write(row)) for write in writers])} |"
    if table.total:
        sums = (
            "" if table.total.get(column.key) is None else f"**{escape(cell_text(table.total, column))}**"
            for column in columns
        )
        yield f"| {' | '.join(sums)} |"
    if table.note:
        yield ""
        yield from (f"- {escape(line)}" for line in table.note.splitlines())
