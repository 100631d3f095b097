"""The HTML writer: one self-contained, accessible page without external references, and a fragment for notebooks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from gpucost.errors import UsageError
from gpucost.render.document import Block, Chart, Column, Document, Fact, Facts, Paragraph, Section, Table
from gpucost.render.numbers import format_value, with_unit
from gpucost.render.text import cell_text, head_text, is_numeric
from gpucost.render.vega import COLORS, specification

ROWS_SHOWN = 2000  # keeps a page far below 2 MB; the full list belongs into a workbook or CSV
_LONG = 28  # characters from which a cell gets room to wrap well
_CHART_ROWS = 200  # of the table that stands behind a chart
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data:"


def write_page(document: Document, path: str) -> None:
    """Write the page to `path`; an existing file is replaced only by a complete one."""
    from gpucost.render.files import write_text

    write_text(path, page(document))


def page(document: Document) -> str:
    """Return the whole page: charts drawn by an embedded Vega-Lite, no request to anywhere."""
    body = _Body(document)
    sections = "".join(body.section(section, f"part-{number}") for number, section in enumerate(document.sections, 1))
    return Template(_asset("page.html")).substitute(
        policy=_POLICY,
        title=escape(document.title),
        style=_asset("page.css"),
        header=body.header(),
        body=body.warnings() + sections + body.sources(),
        footer=body.footer(),
        charts="".join(body.scripts),
        colors=_json(COLORS),
        library=_library() if body.scripts else "window.vegaEmbed = () => {};",
        script=_asset("page.js"),
    )


def fragment(document: Document) -> str:
    """Return the document for a notebook cell: facts and tables; charts are drawn by `.chart()`."""
    body = _Body(document, charts=False)
    lead = f"<p><strong>{escape(document.lead)}</strong></p>" if document.lead else ""
    parts = [body.section(section, "") for section in document.sections if not section.detail]
    return f"<div><h3>{escape(document.title)}</h3>{lead}{''.join(parts)}{body.warnings()}</div>"


def _asset(name: str) -> str:
    return files("gpucost.render").joinpath("assets", name).read_text(encoding="utf-8")


def _library() -> str:
    try:
        import vl_convert
    except ImportError:
        raise UsageError(
            "an HTML report draws its charts with packages of the extra `report`, which are not installed. "
            "Run: pip install 'gpucost[report]', or write the report as .md, .json or .xlsx."
        ) from None
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace("</script", "<\\/script")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).replace("<", "\\u003c")


class _Body:
    """Walks one document; numbers its sources and keeps its charts' specifications for the end of the page."""

    def __init__(self, document: Document, charts: bool = True) -> None:
        self.document, self.charts = document, charts
        self.numbers = {source_id: number for number, source_id in enumerate(sorted(document.sources), 1)}
        self.scripts: list[str] = []
        self.tables = 0

    def header(self) -> str:
        links = "".join(
            f'<li><a href="#part-{number}">{escape(section.title)}</a></li>'
            for number, section in enumerate(self.document.sections, 1)
            if section.title
        )
        lead = f'<p class="lead">{escape(self.document.lead)}</p>' if self.document.lead else ""
        stamp = f"Prices as of {self.document.as_of}. " if self.document.as_of else ""
        stamp += f"Catalog {self.document.catalog_version}." if self.document.catalog_version else ""
        return (
            '<header><button class="theme" type="button">Light or dark</button>'
            f"<h1>{escape(self.document.title)}</h1>{lead}"
            f'<p class="stamp">{escape(stamp)}</p>'
            f'<nav aria-label="Parts of this report"><ul>{links}</ul></nav></header>'
        )

    def footer(self) -> str:
        request = escape(_json(dict(self.document.request)))
        return (
            f"<footer><details><summary>The request behind this report</summary><pre>{request}</pre></details>"
            "<p>Made by gpucost, offline, from dated facts with sources.</p></footer>"
        )

    def warnings(self) -> str:
        if not self.document.warnings:
            return ""
        items = "".join(f"<li>{escape(warning)}</li>" for warning in self.document.warnings)
        return f'<section class="warnings" aria-label="Warnings"><ul>{items}</ul></section>\n'

    def section(self, section: Section, anchor: str) -> str:
        blocks = "".join(part for block in section.blocks for part in self.block(block))
        if not anchor:
            return f"<h4>{escape(section.title)}</h4>{blocks}" if section.title else blocks
        heading = f'<h2 id="{anchor}">{escape(section.title)}</h2>' if section.title else ""
        label = f' aria-labelledby="{anchor}"' if section.title else ""
        return f"<section{label}>{heading}{blocks}</section>\n"

    def block(self, block: Block) -> Iterator[str]:
        if isinstance(block, Paragraph):
            tag = "pre" if block.style == "code" else "p"
            kind = f' class="{block.style}"' if block.style in ("lead", "note") else ""
            yield f"<{tag}{kind}>{escape(block.text)}{self.marks(block.source_ids)}</{tag}>"
        elif isinstance(block, Facts):
            yield (
                f"{f'<h3>{escape(block.title)}</h3>' if block.title else ''}<dl "
                f'class="facts">{"".join(map(self.fact, block.items))}</dl>'
            )
        elif isinstance(block, Table):
            yield self.table(block)
        elif isinstance(block, Chart) and self.charts:
            yield self.chart(block)

    def marks(self, source_ids: Sequence[str]) -> str:
        made = []
        for source_id in source_ids:
            row = self.document.sources.get(source_id)
            if row is None:
                continue
            title = ", ".join(str(row[key]) for key in ("publisher", "title", "published_on") if row.get(key))
            number = self.numbers[source_id]
            made.append(
                f'<a href="#source-{number}" title="{escape(title)}" aria-label="Source {number}: '
                f'{escape(title)}">[{number}]</a>'
            )
        return f"<sup>{''.join(made)}</sup>" if made and self.charts else ""

    def fact(self, fact: Fact) -> str:
        value = with_unit(format_value(fact.value, fact.unit), fact.unit)
        small = ""
        if fact.low is not None and fact.high is not None:
            low, high = (with_unit(format_value(end, fact.unit), fact.unit) for end in (fact.low, fact.high))
            small = f"{low} to {high}"
        small = " · ".join(part for part in (small, fact.note) if part)
        small = f"<small>{escape(small)}</small>" if small else ""
        return f"<div><dt>{escape(fact.label)}</dt><dd>{escape(value)}{self.marks(fact.source_ids)}{small}</dd></div>"

    def table(self, table: Table) -> str:
        if not table.rows:
            return f'<p class="note">{escape(table.note or "No rows.")}</p>'
        self.tables += 1
        name = f"table-{self.tables}"
        live = table.interactive and self.charts
        rows = table.rows[:ROWS_SHOWN]
        caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
        right = {column.key: is_numeric(column, rows) for column in table.columns}
        heads = "".join(_head(column, right[column.key], live) for column in table.columns)
        body = "".join(f"<tr>{self.cells(row, table.columns, right)}</tr>" for row in rows)
        foot = ""
        if table.total:
            totals = "".join(_total(table.total, column, right[column.key]) for column in table.columns)
            foot = f"<tfoot><tr>{totals}</tr></tfoot>"
        note = "".join(f'<p class="note">{escape(line)}</p>' for line in table.note.splitlines())
        if len(table.rows) > len(rows):
            note += (
                f'<p class="note">The first {len(rows):,} of {len(table.rows):,} rows; the workbook '
                f"and CSV hold all.</p>"
            )
        controls = _filter(name, len(rows)) if live else ""
        label = escape(table.title or "Table")
        shell = (
            f'<div class="wide" role="region" tabindex="0" aria-label="{label}, {self.tables}">'
            if self.charts
            else "<div>"
        )
        kind = ' class="sortable"' if live else ""
        return (
            f"{controls}{shell}<table "
            f'id="{name}"{kind}>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>{foot}</table></div>{note}'
        )

    def cells(self, row: Mapping[str, Any], shown: Sequence[Column], right: Mapping[str, bool]) -> str:
        return "".join(self.cell(row, column, right[column.key], index) for index, column in enumerate(shown))

    def cell(self, row: Mapping[str, Any], column: Column, right: bool, index: int) -> str:
        value = row.get(column.key)
        raw = f' class="number" data-value="{"" if value is None else repr(value)}"' if right else ""
        marks = self.marks([str(source_id) for source_id in _ids(row)]) if index == 0 else ""
        text = cell_text(row, column)
        kind = raw or (' class="long"' if len(text) > _LONG else "")
        return f"<td{kind}>{escape(text)}{marks}</td>"

    def chart(self, chart: Chart) -> str:
        name = f"chart-{len(self.scripts) + 1}"
        self.scripts.append(f'<script type="application/json" id="{name}">{_json(specification(chart))}</script>\n')
        controls = (
            f'<div id="{name}-controls" role="group" aria-label="Controls of {escape(chart.title)}"></div>'
            if chart.sliders
            else ""
        )
        return (
            f'<figure aria-label="{escape(chart.title)}">'
            f"<figcaption>{escape(chart.title)}<small>{escape(chart.note or chart.description)}</small></figcaption>"
            f'<div class="chart" role="img" aria-label="{escape(chart.description)}" data-spec="{name}"></div>'
            f"{controls}"
            f"<details><summary>The figures of this chart</summary>{self.table(_chart_table(chart))}</details></figure>"
        )

    def sources(self) -> str:
        if not self.document.sources:
            return ""
        rows = []
        for source_id, number in self.numbers.items():
            row = self.document.sources[source_id]
            cells = "".join(
                f"<td>{escape(str(row.get(key) or '–'))}</td>"
                for key in ("publisher", "title", "locator", "published_on", "accessed_on")
            )
            rows.append(f'<tr id="source-{number}"><th scope="row">[{number}] {escape(source_id)}</th>{cells}</tr>')
        heads = "".join(
            f'<th scope="col">{name}</th>'
            for name in ("source", "publisher", "title", "where", "published", "accessed")
        )
        return (
            '<section aria-labelledby="sources"><h2 id="sources">Sources</h2>'
            '<div class="wide" role="region" tabindex="0" aria-label="List of sources">'
            f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>\n"
        )


def _ids(row: Mapping[str, Any]) -> Sequence[str]:
    ids = row.get("source_ids") or ([row["source_id"]] if row.get("source_id") else [])
    return ids if isinstance(ids, (list, tuple)) else [str(ids)]


def _head(column: Column, right: bool, live: bool) -> str:
    text = escape(head_text(column))
    kind = ' class="number"' if right else ""
    return f'<th scope="col"{kind}>{f"<button type=button>{text}</button>" if live else text}</th>'


def _total(total: Mapping[str, Any], column: Column, right: bool) -> str:
    text = "" if total.get(column.key) is None else escape(cell_text(total, column))
    return f'<td class="number">{text}</td>' if right else f"<td>{text}</td>"


def _filter(name: str, rows: int) -> str:
    return (
        f'<div class="filter"><label for="{name}-filter">Filter</label>'
        f'<input id="{name}-filter" type="search" placeholder="words, such as h100 spot">'
        f'<span id="{name}-count" role="status">{rows} of {rows} rows</span></div>'
    )


def _chart_table(chart: Chart) -> Table:
    keys = [chart.x.key, chart.y.key, chart.series, chart.label, chart.low, chart.high, chart.value]
    units = {
        chart.x.key: chart.x.measure,
        chart.y.key: chart.y.measure,
        chart.low: chart.y.measure,
        chart.high: chart.y.measure,
    }
    present = [key for key in dict.fromkeys(keys) if key and any(key in row for row in chart.data)]
    shown = tuple(Column(key, unit=units.get(key, "")) for key in present)
    cut = len(chart.data) > _CHART_ROWS
    return Table(shown, list(chart.data)[:_CHART_ROWS], note=f"The first {_CHART_ROWS} points." if cut else "")
