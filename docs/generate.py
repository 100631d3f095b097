"""Everything that is generated: reference pages, data dictionary, sources, formulas, accuracy, the example report.

python -m docs.generate                   writes what is out of date and names it
python -m docs.generate --check           names what is out of date, exit code 1; not what takes long or tests hold
python -m docs.generate --check docs/cli*.md    looks at the named files only

The tables of accuracy, of few runs, of the index and of monthly prices take long; the rest takes under 20 s together.
"""

import argparse
import csv
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks import gallery
from benchmarks.day import stand_still
from gpucost import cli as command_line
from gpucost.catalog import Catalog
from gpucost.cli import COMMANDS, cli
from gpucost.cli.help import grouped, name_of
from gpucost.formula.language import Input, Line
from gpucost.gate import beside
from gpucost.render.markdown import escape
from gpucost.schemas import HISTORY, TABLES, DataTable, TableColumn
from gpucost.units import unit_of

ROOT = Path(__file__).resolve().parent.parent
_MADE = "<!-- Made by docs/generate.py; change the source, not this page. -->\n"
_SOURCE_TABLES = ("price_sources", "model_sources")


def command_page() -> str:
    """List the commands in their groups, and describe the options that several of them take."""
    lines = [
        _MADE,
        "# Commands",
        "",
        "Every command has `--help`; `--help-all` adds its rarer options. Answers go to stdout, messages to stderr.",
        "",
        *(f"- [{title}](cli-{_slug(title)}.md): {_linked(commands)}" for title, commands in _groups().items()),
        "",
        "## Shared options",
        "",
        "They mean the same wherever they stand. Each command's page names the shared ones that it takes, but for"
        " those of the output, which all take.",
        "",
        *_option_table(((group, option) for group, option, _ in _shared_options().values()), shared=True),
        "",
    ]
    return "\n".join(lines)


def commands_page(title: str) -> str:
    """Describe the commands of a group: what each does, examples, the options that are its own."""
    lines = [_MADE, f"# {title}", "", "Options that several commands share: [Commands](cli.md#shared-options).", ""]
    for name in _groups()[title]:
        lines += _command(_loaded(name), f"gpucost {name}")
    return "\n".join(lines)


def _groups() -> dict[str, list[str]]:
    """Return the commands of each group, in the order of `gpucost --help`; a subcommand stands under its command."""
    groups: dict[str, list[str]] = {}
    for name, group, module, _ in beside(command_line.__file__, "commands")[1:]:
        if module:
            groups.setdefault(group, []).append(name)
    return groups


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def _linked(names: Iterable[str]) -> str:
    groups = {name: title for title, commands in _groups().items() for name in commands}
    return ", ".join(f"[{name}](cli-{_slug(groups[name])}.md#gpucost-{name})" for name in names)


def _loaded(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def _options_of(command: click.Command) -> list[tuple[str, click.Option]]:
    """Return the options of a command, each with its group."""
    everything = command.name != "sweep"  # it takes what its questions take: described there
    groups, _ = grouped(command, click.Context(command), everything=everything)
    pairs = ((group, option) for group, options in groups.items() for option in options)
    return [(group, option) for group, option in pairs if not name_of(option).startswith("help")]


@cache
def _shared_options() -> dict[tuple[str, str], tuple[str, click.Option, int]]:
    """Return the options that two commands or more declare with the same sentence."""
    shared: dict[tuple[str, str], tuple[str, click.Option, int]] = {}
    waiting = [_loaded(name) for name in COMMANDS]
    for command in waiting:
        waiting += getattr(command, "commands", {}).values()
        for group, option in _options_of(command):
            first, _, count = shared.get(_key(option), (group, option, 0))
            shared[_key(option)] = (first, option, count + 1)
    order = list(dict.fromkeys(group for group, *_ in beside(command_line.__file__, "groups")[1:]))
    often = {key: entry for key, entry in shared.items() if entry[2] >= 2}
    return dict(sorted(often.items(), key=lambda item: order.index(item[1][0]) if item[1][0] in order else -1))


_REQUIRED = "  [required]"


def _key(option: click.Option) -> tuple[str, str]:
    return option.opts[0], (option.help or "").removesuffix(_REQUIRED)


def _option_table(options: Iterable[tuple[str, click.Option]], *, shared: bool = False) -> list[str]:
    lines, last = ["| | option | meaning |", "|---|---|---|"], ""
    for group, option in options:
        name, text = option.get_help_record(click.Context(cli)) or ("", "")
        text = text.replace(_REQUIRED, "" if shared else " Required.")
        lines.append(f"| {group if group != last else ''} | `{escape(name)}` | {escape(text)} |")
        last = group
    return lines


def _command(command: click.Command, path: str) -> list[str]:
    text, *examples = inspect.cleandoc(command.help or "").split("\b\n")
    lines = [f"## {path}", "", " ".join(text.split()), ""]
    if examples:
        lines += ["```text", "\n".join(examples).rstrip(), "```", ""]
    words = [
        parameter.make_metavar(click.Context(command))
        for parameter in command.params
        if isinstance(parameter, click.Argument)
    ]
    if words:
        lines += [f"Takes {', '.join(f'`{word}`' for word in words)}.", ""]
    options = _options_of(command)
    shared = [
        f"`{option.opts[0]}`{' (required)' if _REQUIRED in (option.help or '') else ''}"
        for group, option in options
        if _key(option) in _shared_options() and group != "Output"
    ]
    own = [(group, option) for group, option in options if _key(option) not in _shared_options()]
    if command.name == "sweep":
        lines += ["Beside its own options it takes those of its questions, each with several values.", ""]
    if own:
        lines += [*_option_table(own), ""]
    if shared:
        lines += [f"Shared: {', '.join(shared)}.", ""]
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            lines += _command(command.commands[name], f"{path} {name}")
    return lines


def dictionary_page() -> str:
    """Describe every table and column of the data, from their one definition."""
    tables = [*TABLES.values(), HISTORY]
    times = Counter((column.name, column.description) for table in tables for column in table.columns)
    usual = {name: text for (name, text), _ in reversed(times.most_common())}  # a name's most common meaning
    shared = {(name, text) for name, text in usual.items() if times[name, text] >= _COMMON}
    lines = [_MADE, "# Data dictionary", ""]
    lines += ["A column's unit is the suffix of its name ([units](concepts.md#units)): `_gib` is 2^30 bytes, links are"]
    lines += [
        "per GPU and one direction, peaks are dense. An empty cell is a missing value, never a zero. Cells are texts"
    ]
    lines += ["unless a column says otherwise; **bold** columns must be filled.", ""]
    lines += ["## Columns of several tables", "", "| column | what it means |", "|---|---|"]
    lines += [f"| `{name}` | {escape(text)} |" for name, text in sorted(shared)] + [""]
    for table in tables:
        lines += _table(table, shared)
    return "\n".join(lines)


_COMMON = 3  # tables that have a column of one name and one meaning: it is described once


def _table(table: DataTable, shared: Collection[tuple[str, str]]) -> list[str]:
    lines = [f"## {table.name}", "", escape(table.description), ""]
    lines += [f"`{table.files}`, by {', '.join(f'`{name}`' for name in table.key)}.", ""]
    own = [column for column in table.columns if (column.name, column.description) not in shared]
    if own:
        lines += ["| column | what it means |", "|---|---|"]
        lines += [f"| {_marked(column)} | {_meaning(column)} |" for column in own] + [""]
    if others := [_marked(column) for column in table.columns if column not in own]:
        lines += [f"Also {', '.join(others)}.", ""]
    return lines


def _marked(column: TableColumn) -> str:
    return f"**`{column.name}`**" if column.required else f"`{column.name}`"


def _meaning(column: TableColumn) -> str:
    limits = _limits(column)
    kind = "" if column.kind in ("text", "number") or column.choices else f" ({column.kind})"
    return escape(f"{column.description}{kind}{f'; {limits}' if limits else ''}")


def _limits(column: TableColumn) -> str:
    parts = []
    if column.choices:
        parts.append("one of " + ", ".join(column.choices))
    if column.refers_to and column.refers_to != "sources":
        parts.append(f"a key of {column.refers_to}")
    return "; ".join(parts)


def sources_page() -> str:
    """List where every number comes from: a row for each publication, however many of its versions were read."""
    lines = [
        _MADE,
        "# Sources",
        "",
        "Every row of data names its source by id: `gpucost data sources WORD` finds it, with the exact version that",
        "was read. Here each publication stands once; *versions* counts the copies of it that were read.",
        "",
    ]
    for name in _SOURCE_TABLES:
        table = TABLES[name]
        lines += [f"## {escape(table.description)}", "", "| publisher | title, and where | versions | newest |"]
        lines += ["|---|---|--:|---|"]
        with open(ROOT / table.files, encoding="utf-8", newline="") as file:
            publications: dict[tuple[str, str], list[dict[str, str]]] = {}
            for row in csv.DictReader(file):
                publications.setdefault((row["publisher"], _VERSION.sub("", row["title"])), []).append(row)
        last = ""
        for (publisher, title), rows in sorted(
            publications.items(), key=lambda item: [part.lower() for part in item[0]]
        ):
            newest = max(row["published_on"] or row["accessed_on"] for row in rows)
            cells = [publisher if publisher != last else "", "", str(len(rows)) if len(rows) > 1 else "", newest]
            cells[1] = f"{escape(title)}: {escape(_short(rows[0]['locator']))}"
            lines.append(f"| {escape(cells[0])} | {cells[1]} | {cells[2]} | {cells[3]} |")
            last = publisher
        lines.append("")
    return "\n".join(lines)


_VERSION = re.compile(r" (at|of) ([0-9a-f]{7,40}|20\d\d-\d\d(-\d\d)?)$")
_COMMIT = re.compile(r"@[0-9a-f]{7,40}| \([^)]*\)$")


def _short(locator: str) -> str:
    """Return a locator without the commit that was read."""
    return _COMMIT.sub("", locator)


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

    known = accuracy.held_out()
    made = accuracy.rows_table(known.found, known.items["source"])
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


def quote_fates() -> str:
    """Derive whether quotes could still be had when their sellers were looked up again, and at what price."""
    from tools.derived import quote_fates as fates

    return _as_csv("quote_fates", fates(_as_it_stands()))


def measured_chips() -> str:
    """Count the measurements of each chip, for what stands beside an answer."""
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


def training_records() -> str:
    """List the highest speed measured on each chip in each precision, of dense models and of mixtures of experts."""
    from gpucost.calibration.training import gather
    from gpucost.catalog import open_catalog
    from gpucost.workloads.training import make_workload, sizes

    catalog = open_catalog()
    measured = catalog.rows("training_measurements")
    source_of = {row["id"]: row["source_id"] for row in measured}
    found = gather(measured, catalog)
    records: dict[tuple[str, str, bool], dict[str, Any]] = {}
    for figure in found.figures:
        row = found.rows[figure.row]
        if row.method != "full":
            continue
        key = (row.accelerator.id, row.layout.precision, bool(row.architecture.experts))
        workload = make_workload(row.architecture, sequence_tokens=int(row.sequence_tokens))
        tflops = round(sizes(workload).model_flop_per_token * figure.value / 1e12, 1)
        if tflops > records.get(key, {}).get("model_tflops_per_gpu", 0.0):
            records[key] = {
                **dict(zip(("accelerator_id", "precision", "experts"), key, strict=True)),
                "model_tflops_per_gpu": tflops,
                "model": row.architecture.name,
                "gpus": row.layout.gpus,
                "measurement_id": row.id,
                "source_id": source_of[row.id],
            }
    return _as_csv("training_records", [records[key] for key in sorted(records)])


def list_declines() -> str:
    """Derive how list prices fell per year, for plans that do not read the history."""
    from tools.derived import generation_declines

    return _as_csv("list_declines", generation_declines(_as_it_stands()))


def monthly_price_rows() -> str:
    """Derive what a GPU-hour cost month by month, for forecasts and the index, which do not read the history."""
    from tools.derived import monthly_prices

    return _as_csv("monthly_prices", monthly_prices(_as_it_stands()))


@cache
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
    takes_minutes: bool = False  # or a third of the time of all others: checked only by its name
    tested: bool = False  # a test of the default run holds it: checked only by its name
    when_named: bool = False  # takes a quarter of an hour or another program: made and checked only by its name


_HISTORY = ROOT / "pricing/offers/from-history.csv"
OUTPUTS = (
    *(
        Output(f"pricing/offers/{path.name}", partial(price_file, path))
        for path in sorted(_HISTORY.parent.glob("*.csv"))
        if path != _HISTORY
    ),
    Output("pricing/offers/from-history.csv", current_prices),  # before the pages that answer from prices
    Output("pricing/quote_fates.csv", quote_fates),
    Output("models/measured_chips.csv", measured_chips),
    Output("models/training_records.csv", training_records),
    Output("pricing/list_declines.csv", list_declines),
    Output("pricing/monthly_prices.csv", monthly_price_rows, takes_minutes=True),
    Output("docs/price-index.csv", price_index_table, takes_minutes=True),
    Output("docs/price-index.svg", price_index_picture),  # after the table that it shows
    Output("docs/price-index.md", price_index_page),
    Output("docs/cli.md", command_page),
    *(Output(f"docs/cli-{_slug(title)}.md", partial(commands_page, title)) for title in _groups()),
    Output("docs/data-dictionary.md", dictionary_page),
    Output("docs/sources.md", sources_page),
    Output("docs/tco-method.md", method_page),
    Output("docs/bills.md", bills_page),
    Output("docs/published-runs.md", published_runs_page, tested=True),
    Output("reports/examples/report.md", example_report),
    Output("docs/accuracy.csv", accuracy_table, takes_minutes=True),
    Output("docs/accuracy-rows.csv", accuracy_rows, takes_minutes=True),
    Output("docs/accuracy-speeds.svg", accuracy_speeds),  # after the rows that it shows
    Output("docs/accuracy-levels.svg", accuracy_levels),
    Output("docs/terms.csv", terms_table, takes_minutes=True, when_named=True),
    Output("docs/accuracy.md", accuracy_page, tested=True),  # after the table that it shows
    Output("docs/few-shot.csv", few_shot_table, takes_minutes=True),
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
    stand_still()
    unknown = [name for name in asked.files if not any(output.path.endswith(name) for output in OUTPUTS)]
    if unknown:
        parser.error(f"{', '.join(unknown)} is not generated; there are {', '.join(one.path for one in OUTPUTS)}")
    chosen = [
        one
        for one in OUTPUTS
        if any(one.path.endswith(name) for name in asked.files)
        or not (asked.files or one.when_named or (asked.check and (one.takes_minutes or one.tested)))
    ]
    found = [one.path for one in chosen if stale(one, not asked.check)]
    for path in found:
        print(f"out of date: {path}" if asked.check else f"written: {path}")
    if asked.check and found:
        print("run: python -m docs.generate")
    return 1 if asked.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
