"""Write the generated pages: the command reference, the data dictionary, the list of sources and the example report.

python docs/generate.py           writes them
python docs/generate.py --check   says which ones are out of date, exit code 1
"""

import csv
import sys
from importlib import import_module
from pathlib import Path

import click

from gpucost.cli import COMMANDS, cli
from gpucost.render.markdown import escape
from gpucost.schemas import TABLES, Column, Table

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_MADE = "<!-- Made by docs/generate.py; change the source, not this page. -->\n"
_SOURCE_TABLES = ("price_sources", "model_sources")


def command_page() -> str:
    """Describe every command as its --help does."""
    lines = [
        _MADE,
        "# Command reference",
        "",
        "Every command has `--help`. Answers go to standard output, talk to standard error.",
        "",
    ]
    lines += ["```text", _help(cli, "gpucost"), "```", ""]
    for name, (module, _) in COMMANDS.items():
        command = import_module(module).command
        lines += _command(command, f"gpucost {name}")
    return "\n".join(lines)


def _command(command: click.Command, path: str) -> list[str]:
    lines = [f"## {path}", "", "```text", _help(command, path), "```", ""]
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            lines += _command(command.commands[name], f"{path} {name}")
    return lines


def _help(command: click.Command, path: str) -> str:
    names = cli.context_settings["help_option_names"]
    context = click.Context(command, info_name=path, terminal_width=100, max_content_width=100, help_option_names=names)
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


def dictionary_page() -> str:
    """Describe every table and column of the data, from their one definition."""
    lines = [_MADE, "# Data dictionary", ""]
    lines += ["A column's unit is the suffix of its name. An empty cell is a missing value, never a zero.", ""]
    for table in TABLES.values():
        lines += _table(table)
    return "\n".join(lines)


def _table(table: Table) -> list[str]:
    lines = [f"## {table.name}", "", escape(table.description), ""]
    lines += [f"Files: `{table.files}`. Key: {', '.join(f'`{name}`' for name in table.key)}.", ""]
    lines += ["| column | kind | unit | what it means | may hold |", "|---|---|---|---|---|"]
    for column in table.columns:
        cells = (f"`{column.name}`", column.kind, column.unit, column.description, _limits(column))
        lines.append(f"| {cells[0]} | {' | '.join(escape(cell) for cell in cells[1:])} |")
    return [*lines, ""]


def _limits(column: Column) -> str:
    parts = ["required"] if column.required else []
    if column.choices:
        parts.append("one of " + ", ".join(column.choices))
    if column.refers_to:
        parts.append(f"a key of {column.refers_to}")
    if column.positive:
        parts.append("above 0")
    if column.low is not None or column.high is not None:
        parts.append(
            f"{'' if column.low is None else f'{column.low:g}'} … {'' if column.high is None else f'{column.high:g}'}"
        )
    return "; ".join(parts)


def sources_page() -> str:
    """List where every number comes from."""
    lines = [
        _MADE,
        "# Sources",
        "",
        "Every row of data names one of these by its id. `gpucost sources` searches them.",
        "",
    ]
    for name in _SOURCE_TABLES:
        table = TABLES[name]
        lines += [
            f"## {escape(table.description)}",
            "",
            "| id | publisher | title | where | published | accessed |",
            "|---|---|---|---|---|---|",
        ]
        with open(ROOT / table.files, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                keys = ("source_id", "publisher", "title", "locator", "published_on", "accessed_on")
                lines.append(f"| {' | '.join(escape(row.get(key) or '') for key in keys)} |")
        lines.append("")
    return "\n".join(lines)


def example_report() -> str:
    """Answer the example scenario."""
    from gpucost.api.report import report

    return report(ROOT / "reports/examples/scenario.toml").to_markdown()


PAGES = {
    "cli.md": command_page,
    "data-dictionary.md": dictionary_page,
    "sources.md": sources_page,
    "../reports/examples/report.md": example_report,
}


def main(check: bool) -> int:
    """Write the pages, or compare them."""
    stale = []
    for name, make in PAGES.items():
        path, text = DOCS / name, make().rstrip() + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.write_text(text, encoding="utf-8")
    if check and stale:
        print(f"out of date: {', '.join(stale)}; run: python docs/generate.py")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
