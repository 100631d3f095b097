"""Everything that is generated: reference pages, data dictionary, sources, formulas, accuracy, the example report.

python -m docs.generate                   writes what is out of date and names it
python -m docs.generate --check           names what is out of date, exit code 1
python -m docs.generate --check cli.md    looks at the named files only

The accuracy table takes minutes, the rest seconds.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterable
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks import gallery
from gpucost.catalog import Catalog
from gpucost.cli import COMMANDS, cli
from gpucost.formula.language import Input, Line
from gpucost.render.markdown import escape
from gpucost.schemas import HISTORY, TABLES, DataTable, TableColumn
from gpucost.units import unit_of

ROOT = Path(__file__).resolve().parent.parent
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
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
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
    for table in [*TABLES.values(), HISTORY]:
        lines += _table(table)
    return "\n".join(lines)


def _table(table: DataTable) -> list[str]:
    lines = [f"## {table.name}", "", escape(table.description), ""]
    lines += [f"Files: `{table.files}`. Key: {', '.join(f'`{name}`' for name in table.key)}.", ""]
    lines += ["| column | kind | unit | what it means | may hold |", "|---|---|---|---|---|"]
    for column in table.columns:
        cells = (f"`{column.name}`", column.kind, column.unit, column.description, _limits(column))
        lines.append(f"| {cells[0]} | {' | '.join(escape(cell) for cell in cells[1:])} |")
    return [*lines, ""]


def _limits(column: TableColumn) -> str:
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


def method_page() -> str:
    """Put the evaluated formulas into the page that explains them."""
    from tests.money.test_docs import MARKS, formulas

    before, rest = (ROOT / "docs/tco-method.md").read_text("utf-8").split(MARKS[0])
    return f"{before}{MARKS[0]}\n{formulas()}\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def bills_page() -> str:
    """List the formulas of the bills: what engine, workbook and --explain read."""
    from gpucost.money import serving_bill as serving
    from gpucost.money import training_bill as training

    lines = [_MADE, "# Formulas of the bills", ""]
    lines += ["The engine evaluates these lines and the workbook writes them as live cells. Inputs come first.", ""]
    lines += _bill("A training run", (*training.SPEED_INPUTS, *training.INPUTS), (*training.SPEED, *training.LINES))
    given = (*serving.DEMAND_INPUTS, *serving.INPUTS, *serving.HOSTED_INPUTS)
    return "\n".join([*lines, *_bill("A month of serving", given, (*serving.WITH_DEMAND, *serving.HOSTED))])


def _bill(title: str, inputs: Iterable[Input], formulas: Iterable[Line]) -> list[str]:
    lines = [f"## {title}", "", "| input | unit | what it is |", "|---|---|---|"]
    lines += [f"| `{entry.name}` | {unit_of(entry.name)} | {escape(entry.description)} |" for entry in inputs]
    lines += ["", "| line | formula | unit | what it is |", "|---|---|---|---|"]
    for line in formulas:
        lines.append(f"| `{line.name}` | `{line.text}` | {line.measure} | {escape(line.description)} |")
    return [*lines, ""]


def example_report() -> str:
    """Answer the example scenario."""
    from gpucost.library.report import report

    return report(ROOT / "reports/examples/scenario.toml").to_markdown()


def published_runs_page() -> str:
    """Hold estimates against published runs."""
    from benchmarks.published_runs import page

    return page()


def accuracy_table() -> str:
    """Recompute every held-out figure; a table that differs within the solvers' tolerance stays."""
    from benchmarks import accuracy

    made = accuracy.table()
    stored = accuracy.TABLE.read_text("utf-8")
    return made if accuracy.differences(stored, made) else stored


def accuracy_rows() -> str:
    """Write the held-out prediction of every row; a file whose rows barely moved stays."""
    from benchmarks import accuracy

    found, answers = accuracy.held_out()
    made = accuracy.rows_table(found, answers["source"])
    stored = accuracy.ROWS.read_text("utf-8") if accuracy.ROWS.is_file() else ""
    return made if accuracy.rows_differ(stored, made) else stored


def accuracy_speeds() -> str:
    """Draw predicted against measured speeds."""
    from benchmarks import accuracy, reliability

    return reliability.speeds(reliability.read(accuracy.ROWS.read_text("utf-8")))


def accuracy_levels() -> str:
    """Draw the coverage of ranges."""
    from benchmarks import accuracy, reliability

    return reliability.levels(reliability.read(accuracy.ROWS.read_text("utf-8")))


def accuracy_page() -> str:
    """Show the accuracy table."""
    from benchmarks import accuracy

    return accuracy.page((ROOT / "docs/accuracy.csv").read_text("utf-8"))


def terms_table() -> str:
    """Ask again what each term of the models earns outside its proposal."""
    from benchmarks import terms

    return terms.table()


def few_shot_table() -> str:
    """Measure again what a few runs of an unseen source teach."""
    from benchmarks import few_shot

    return few_shot.table()


def few_shot_page() -> str:
    """Show that by source."""
    from benchmarks import few_shot

    return few_shot.page((ROOT / "docs/few-shot.csv").read_text("utf-8"))


def price_index_table() -> str:
    """Compute the index again."""
    from benchmarks import price_index

    return price_index.table()


def price_index_picture() -> str:
    """Draw the index."""
    from benchmarks import price_index

    return price_index.picture(price_index.read(price_index.TABLE.read_text("utf-8")))


def price_index_page() -> str:
    """Show the index and the forecasts."""
    from benchmarks import price_index

    return price_index.page(price_index.TABLE.read_text("utf-8"))


def current_prices() -> str:
    """Derive the prices that sources of the history listed lately, for commands that do not read the history."""
    from gpucost.catalog import open_catalog
    from gpucost.catalog.asof import current_rows

    catalog = open_catalog()
    return _as_csv("offers", current_rows(catalog.store, catalog.dated))


def spot_moves() -> str:
    """Derive how far spot prices move, for ranges of answers that do not read the history."""
    from gpucost.catalog.prices import spot_moves

    return _as_csv("spot_moves", spot_moves(_as_it_stands()))


def price_moves() -> str:
    """Derive what became of quotes until they were looked at again, for the prices that answers expect."""
    from gpucost.catalog.price_moves import price_moves as moves
    from gpucost.catalog.price_moves import sighted_pairs

    catalog = _as_it_stands()
    return _as_csv("price_moves", moves(sighted_pairs(catalog), catalog.as_of))


def measured_chips() -> str:
    """Count the measurements of each chip, for rankings that lead with none that nobody measured."""
    from gpucost.catalog import open_catalog
    from gpucost.errors import UnknownNameError

    catalog, rows = open_catalog(), []
    for kind in ("training", "serving"):
        found: dict[str, list[dict[str, Any]]] = {}
        for row in catalog.rows(f"{kind}_measurements"):
            try:
                found.setdefault(catalog.accelerator(row["gpu"]).id, []).append(row)
            except UnknownNameError:
                continue
        for chip, seen in sorted(found.items()):
            rates = [
                2 * row["measured_output_tok_s_per_gpu"] * row["active_params_b"]
                for row in seen
                if kind == "serving" and row["measured_output_tok_s_per_gpu"] and row["active_params_b"]
            ]
            rows.append(
                {
                    "kind": kind,
                    "accelerator_id": chip,
                    "measurements": len(seen),
                    "sources": len({row["source_id"] for row in seen}),
                    "largest_gpus": max(row["n_gpus"] or 1 for row in seen),
                    "highest_gflop_per_s_per_gpu": max(rates, default=None),
                }
            )
    return _as_csv("measured_chips", rows)


def list_declines() -> str:
    """Derive how list prices fell per year, for plans that do not read the history."""
    from gpucost.catalog.prices import generation_declines

    return _as_csv("list_declines", generation_declines(_as_it_stands()))


def monthly_price_rows() -> str:
    """Derive what a GPU-hour cost month by month, for forecasts and the index, which do not read the history."""
    from gpucost.catalog.price_months import monthly_prices

    return _as_csv("monthly_prices", monthly_prices(_as_it_stands()))


def _as_it_stands() -> Catalog:
    """Open the catalog on the day of its newest facts: what is derived moves with them, not with the calendar."""
    from gpucost.catalog import open_catalog

    return open_catalog(open_catalog().dated)


def _as_csv(name: str, rows: list[dict[str, object]]) -> str:
    out = StringIO()
    writer = csv.DictWriter(out, TABLES[name].names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({column: _cell(value) for column, value in row.items()})
    return out.getvalue()


def _cell(value: object) -> object:
    return f"{value:.8g}" if isinstance(value, float) else int(value) if isinstance(value, bool) else value


def price_file(path: Path) -> str:
    """Fill in what follows from the rest of a price row that leaves it empty: its id, the price of a GPU, its terms."""
    from gpucost.catalog.book_files import Draft
    from gpucost.catalog.book_rows import Completion
    from gpucost.catalog.price_files import prices_of_rows
    from gpucost.catalog.shipped import Shipped

    text = path.read_text("utf-8")
    rows = list(csv.DictReader(StringIO(text, newline="")))
    if all(row["offer_id"] for row in rows):
        return text
    short = [(line, row) for line, row in enumerate(rows, 2) if not row["offer_id"]]
    cells = [{name: cell for name, cell in row.items() if cell} for _, row in short]
    drafts = [Draft("offers", path, str(path), line, found) for (line, _), found in zip(short, cells, strict=True)]
    shipped = Shipped(ROOT)
    prices = prices_of_rows(shipped.store, "new", drafts, Completion(shipped, {}, {}))
    for (_, row), made in zip(short, shipped.store.fetch(f"{prices.numbered} ORDER BY n"), strict=True):
        for name in TABLES["offers"].names:
            stands_for_itself = row[name] and name not in ("provider", "gpu", "system_id")
            if not stands_for_itself and made[name] is not None and name not in ("source_id", "confidence"):
                row[name] = int(made[name]) if isinstance(made[name], bool) else made[name]
    out = StringIO()
    writer = csv.DictWriter(out, TABLES["offers"].names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


class Output(NamedTuple):
    """A generated file and what makes its text."""

    path: str
    make: Callable[[], str]
    takes_minutes: bool = False
    when_named: bool = False  # takes a quarter of an hour or another program: made and checked only by its name


_HISTORY = ROOT / "pricing/offers/from-history.csv"
OUTPUTS = (
    *(
        Output(f"pricing/offers/{path.name}", partial(price_file, path))
        for path in sorted(_HISTORY.parent.glob("*.csv"))
        if path != _HISTORY
    ),
    Output("pricing/offers/from-history.csv", current_prices),  # before the pages that answer from prices
    Output("pricing/spot_moves.csv", spot_moves),
    Output("pricing/price_moves.csv", price_moves),
    Output("models/measured_chips.csv", measured_chips),
    Output("pricing/list_declines.csv", list_declines),
    Output("pricing/monthly_prices.csv", monthly_price_rows),
    Output("docs/price-index.csv", price_index_table, takes_minutes=True),
    Output("docs/price-index.svg", price_index_picture),  # after the table that it shows
    Output("docs/price-index.md", price_index_page),
    Output("docs/cli.md", command_page),
    Output("docs/data-dictionary.md", dictionary_page),
    Output("docs/sources.md", sources_page),
    Output("docs/tco-method.md", method_page),
    Output("docs/bills.md", bills_page),
    Output("docs/published-runs.md", published_runs_page),
    Output("reports/examples/report.md", example_report),
    Output("docs/accuracy.csv", accuracy_table, takes_minutes=True),
    Output("docs/accuracy-rows.csv", accuracy_rows, takes_minutes=True),
    Output("docs/accuracy-speeds.svg", accuracy_speeds),  # after the rows that it shows
    Output("docs/accuracy-levels.svg", accuracy_levels),
    Output("docs/terms.csv", terms_table, takes_minutes=True, when_named=True),
    Output("docs/accuracy.md", accuracy_page),  # after the table that it shows
    Output("docs/few-shot.csv", few_shot_table, takes_minutes=True),
    Output("docs/few-shot.md", few_shot_page),
    # drawn by another program, whose versions differ: made where they are asked for by name
    *(
        Output(f"{gallery.FOLDER}/{one.name}.svg", partial(gallery.drawn, one.name), when_named=True)
        for one in gallery.PICTURES
    ),
    Output("docs/gallery.md", gallery.page),
)


def stale(output: Output, write: bool) -> bool:
    """Tell whether a file is not what it would be made to be, and write it where that is asked for."""
    path, text = ROOT / output.path, output.make().rstrip() + "\n"
    if path.is_file() and path.read_text("utf-8") == text:
        return False
    if write:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return True


def main() -> int:
    """Write what is out of date, or name it."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description="Write what is generated.")
    parser.add_argument("--check", action="store_true", help="name what is out of date instead of writing it")
    parser.add_argument("files", nargs="*", help="only these, by the end of their path")
    asked = parser.parse_args()
    unknown = [name for name in asked.files if not any(output.path.endswith(name) for output in OUTPUTS)]
    if unknown:
        parser.error(f"{', '.join(unknown)} is not generated; there are {', '.join(one.path for one in OUTPUTS)}")
    chosen = [
        one
        for one in OUTPUTS
        if any(one.path.endswith(name) for name in asked.files) or not (asked.files or one.when_named)
    ]
    found = [one.path for one in chosen if stale(one, not asked.check)]
    for path in found:
        print(f"out of date: {path}" if asked.check else f"written: {path}")
    if asked.check and found:
        print("run: python -m docs.generate")
    return 1 if asked.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
