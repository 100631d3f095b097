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
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks import gallery
from benchmarks.day import stand_still
from gpucost import cli as command_line
from gpucost.catalog import Catalog
from gpucost.catalog.asof import current_rows
from gpucost.cli import COMMANDS, cli
from gpucost.cli.help import grouped, name_of
from gpucost.formula.language import Input, Line
from gpucost.gate import beside
from gpucost.render.markdown import escape
from gpucost.schemas import HISTORY, TABLES, TableColumn
from gpucost.units import unit_of
from tools import derived

ROOT = Path(__file__).resolve().parent.parent
_MADE = "<!-- Made by docs/generate.py; change the source, not this page. -->\n"


def _command_page() -> str:
    """List the commands in their groups, and describe the options that several of them take."""
    lines = [
        _MADE,
        "# Commands",
        "",
        "Every command has `--help`; `--help-all` adds its rarer options. Answers go to stdout, messages to stderr.",
        "",
        *(
            f"- [{title}](cli-{_slug(title)}.md): "
            + ", ".join(f"[{name}](cli-{_slug(title)}.md#gpucost-{name})" for name in commands)
            for title, commands in _groups().items()
        ),
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


def _commands_page(title: str) -> str:
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
    for command in waiting:  # which grows by the subcommands of each
        waiting += getattr(command, "commands", {}).values()
        for group, option in _options_of(command):
            first, _, count = shared.get(_key(option), (group, option, 0))
            shared[_key(option)] = (first, option, count + 1)
    # groups in the order of `groups.csv`; a group that it does not hold goes first
    order = list(dict.fromkeys(group for group, *_ in beside(command_line.__file__, "groups")[1:]))
    often = {key: entry for key, entry in shared.items() if entry[2] >= 2}
    return dict(sorted(often.items(), key=lambda item: order.index(item[1][0]) if item[1][0] in order else -1))


_REQUIRED = "  [required]"


def _key(option: click.Option) -> tuple[str, str]:
    # an option that one command requires and another does not is still one option
    return option.opts[0], (option.help or "").removesuffix(_REQUIRED)


def _option_table(options: Iterable[tuple[str, click.Option]], *, shared: bool = False) -> list[str]:
    lines, last = ["| | option | meaning |", "|---|---|---|"], ""
    for group, option in options:
        # as click writes it: with the metavariable, the default and the range
        name, text = option.get_help_record(click.Context(cli)) or ("", "")
        text = text.replace(_REQUIRED, "" if shared else " Required.")
        lines.append(f"| {group if group != last else ''} | `{escape(name)}` | {escape(text)} |")
        last = group
    return lines


def _command(command: click.Command, path: str) -> list[str]:
    # click's mark for lines that are not to be wrapped: a command's examples stand behind it
    text, *examples = inspect.cleandoc(command.help or "").split("\b\n")
    lines = [f"## {path}", "", " ".join(text.split()), ""]
    if examples:
        lines += ["```text", "\n".join(examples).rstrip(), "```", ""]
    metavars = [
        parameter.make_metavar(click.Context(command))
        for parameter in command.params
        if isinstance(parameter, click.Argument)
    ]
    if metavars:
        lines += [f"Takes {', '.join(f'`{metavar}`' for metavar in metavars)}.", ""]
    options = _options_of(command)
    shared = [
        f"`{option.opts[0]}`{' (required)' if _REQUIRED in (option.help or '') else ''}"
        for group, option in options
        if _key(option) in _shared_options() and group != "Output"
    ]
    special = [(group, option) for group, option in options if _key(option) not in _shared_options()]
    if command.name == "sweep":
        lines += ["Beside its own options it takes those of its questions, each with several values.", ""]
    if special:
        lines += [*_option_table(special), ""]
    if shared:
        lines += [f"Shared: {', '.join(shared)}.", ""]
    if isinstance(command, click.Group):  # its subcommands below it
        for name in sorted(command.commands):
            lines += _command(command.commands[name], f"{path} {name}")
    return lines


def _dictionary_page() -> str:
    """Describe every table and column of the data, from their one definition."""
    tables = [*TABLES.values(), HISTORY]
    times = Counter((column.name, column.description) for table in tables for column in table.columns)
    # a name's most common meaning: the last to be written stays
    usual = {name: text for (name, text), _ in reversed(times.most_common())}
    # what three tables or more have under one name and with one meaning is described once
    shared = {(name, text) for name, text in usual.items() if times[name, text] >= 3}
    lines = [_MADE, "# Data dictionary", ""]
    lines += ["A column's unit is the suffix of its name ([units](concepts.md#units)): `_gib` is 2^30 bytes, links are"]
    lines += [
        "per GPU and one direction, peaks are dense. An empty cell is a missing value, never a zero. Cells are texts"
    ]
    lines += ["unless a column says otherwise; **bold** columns must be filled.", ""]
    lines += ["## Columns of several tables", "", "| column | what it means |", "|---|---|"]
    lines += [f"| `{name}` | {escape(text)} |" for name, text in sorted(shared)] + [""]
    for table in tables:
        lines += [f"## {table.name}", "", escape(table.description), ""]
        lines += [f"`{table.files}`, by {', '.join(f'`{name}`' for name in table.key)}.", ""]
        special = [column for column in table.columns if (column.name, column.description) not in shared]
        if special:
            lines += ["| column | what it means |", "|---|---|"]
            for column in special:
                parts = [column.description]
                if column.kind not in ("text", "number") and not column.choices:
                    parts[0] += f" ({column.kind})"
                if column.choices:
                    parts.append("one of " + ", ".join(column.choices))
                if column.refers_to and column.refers_to != "sources":  # every row has a source
                    parts.append(f"a key of {column.refers_to}")
                lines.append(f"| {_marked(column)} | {escape('; '.join(parts))} |")
            lines.append("")
        if others := [_marked(column) for column in table.columns if column not in special]:
            lines += [f"Also {', '.join(others)}.", ""]
    return "\n".join(lines)


def _marked(column: TableColumn) -> str:
    return f"**`{column.name}`**" if column.required else f"`{column.name}`"


# what tells the copies of a publication apart: the version at the end of its title, the commit in its locator
_VERSION = re.compile(r" (at|of) ([0-9a-f]{7,40}|20\d\d-\d\d(-\d\d)?)$")
_COMMIT = re.compile(r"@[0-9a-f]{7,40}| \([^)]*\)$")


def _sources_page() -> str:
    """List where every number comes from: a row for each publication, however many of its versions were read."""
    lines = [
        _MADE,
        "# Sources",
        "",
        "Every row of data names its source by id: `gpucost data sources WORD` finds it, with the exact version that",
        "was read. Here each publication stands once; *versions* counts the copies of it that were read.",
        "",
    ]
    for name in ("price_sources", "model_sources"):
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
            # the day of a version, or the day it was read where it has none
            newest = max(row["published_on"] or row["accessed_on"] for row in rows)
            cells = [publisher if publisher != last else "", "", str(len(rows)) if len(rows) > 1 else "", newest]
            cells[1] = f"{escape(title)}: {escape(_COMMIT.sub('', rows[0]['locator']))}"
            lines.append(f"| {escape(cells[0])} | {cells[1]} | {cells[2]} | {cells[3]} |")
            last = publisher
        lines.append("")
    return "\n".join(lines)


def _method_page() -> str:
    """Put the evaluated formulas into the page that explains them."""
    from tests.money.test_docs import MARKS, formulas

    # between the marks the page is generated, around them it is written by hand
    before, behind = (ROOT / "docs/tco-method.md").read_text("utf-8").split(MARKS[0])
    return f"{before}{MARKS[0]}\n{formulas()}\n{MARKS[1]}{behind.split(MARKS[1])[1]}"


def _bills_page() -> str:
    """List the formulas of the bills: what engine, workbook and --explain read."""
    from gpucost.money import serving_bill as serving
    from gpucost.money import training_bill as training

    lines = [_MADE, "# Formulas of the bills", ""]
    lines += ["The engine evaluates these lines and the workbook writes them as live cells. Inputs come first.", ""]
    lines += _bill("A training run", (*training.SPEED_INPUTS, *training.INPUTS), (*training.SPEED, *training.LINES))
    inputs = (*serving.DEMAND_INPUTS, *serving.INPUTS, *serving.HOSTED_INPUTS)
    return "\n".join([*lines, *_bill("A month of serving", inputs, (*serving.WITH_DEMAND, *serving.HOSTED))])


def _bill(title: str, inputs: Iterable[Input], formulas: Iterable[Line]) -> list[str]:
    lines = [f"## {title}", "", "| input | unit | what it is |", "|---|---|---|"]
    lines += [f"| `{entry.name}` | {unit_of(entry.name)} | {escape(entry.description)} |" for entry in inputs]
    lines += ["", "| line | formula | unit | what it is |", "|---|---|---|---|"]
    for line in formulas:
        lines.append(f"| `{line.name}` | `{line.text}` | {line.measure} | {escape(line.description)} |")
    return [*lines, ""]


def _example_report() -> str:
    """Answer the example scenario."""
    from gpucost.library.report import report

    return report(ROOT / "reports/examples/scenario.toml").to_markdown()


def _made_by(module: str, function: str, *tables: str) -> str:
    """Return what a function of another module makes, of the texts of tables where it reads some.

    Its module is imported only then: most files are made without it, and some take seconds to import.
    """
    return getattr(import_module(module), function)(*((ROOT / table).read_text("utf-8") for table in tables))


@cache
def _as_it_stands() -> Catalog:
    """Open the catalog on the day of its newest facts: what is derived moves with them, not with the calendar."""
    from gpucost.catalog import open_catalog

    return open_catalog(open_catalog().dated)


def _derived(table: str, rows: Callable[[Catalog], list[dict[str, Any]]]) -> str:
    """Return a table that follows from others as CSV, so that what reads it need not read those."""
    out = StringIO()
    writer = csv.DictWriter(out, TABLES[table].names, lineterminator="\n")
    writer.writeheader()

    def cell(value: object) -> object:
        if isinstance(value, float):
            return f"{value:.8g}"  # beyond these digits machines differ
        return int(value) if isinstance(value, bool) else value

    for row in rows(_as_it_stands()):
        writer.writerow({column: cell(value) for column, value in row.items()})
    return out.getvalue()


def price_file(path: Path) -> str:
    """Fill in what follows from the rest of a price row that leaves it empty: its id, the price of a GPU, its terms."""
    from gpucost.catalog.book_files import Draft
    from gpucost.catalog.book_rows import Completion
    from gpucost.catalog.price_files import prices_of_rows
    from gpucost.catalog.shipped import Shipped

    text = path.read_text("utf-8")
    rows = list(csv.DictReader(StringIO(text, newline="")))
    # new rows have no id yet; others are never touched, for prices are append-only
    new = [(line, row) for line, row in enumerate(rows, 2) if not row["offer_id"]]
    if not new:
        return text
    drafts = [
        Draft("offers", path, str(path), line, {name: cell for name, cell in row.items() if cell}) for line, row in new
    ]
    # completed as a row of a price book is, over the shipped facts
    shipped = Shipped(ROOT)
    prices = prices_of_rows(shipped.store, "new", drafts, Completion(shipped, {}, {}))
    for (_, row), completed in zip(new, shipped.store.fetch(f"{prices.numbered} ORDER BY n"), strict=True):
        for name in TABLES["offers"].names:
            # a cell that was filled in stays, but for names, of which a person may write another spelling
            stands_for_itself = row[name] and name not in ("provider", "gpu", "system_id")
            value = completed[name]
            if not stands_for_itself and value is not None and name not in ("source_id", "confidence"):
                row[name] = int(value) if isinstance(value, bool) else value
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
# in the order in which one needs the other: tables before what is made of them
OUTPUTS = (
    *(
        Output(f"pricing/offers/{path.name}", partial(price_file, path))
        for path in sorted(_HISTORY.parent.glob("*.csv"))
        if path != _HISTORY
    ),
    # prices that sources of the history listed lately, for commands that do not read the history; before the pages that
    # answer from prices
    Output(
        "pricing/offers/from-history.csv",
        partial(_derived, "offers", lambda catalog: current_rows(catalog.store, catalog.dated)),
    ),
    Output("pricing/quote_fates.csv", partial(_derived, "quote_fates", derived.quote_fates)),
    Output("models/measured_chips.csv", partial(_derived, "measured_chips", derived.measured_chips)),
    Output("models/training_records.csv", partial(_derived, "training_records", derived.training_records)),
    Output("pricing/list_declines.csv", partial(_derived, "list_declines", derived.generation_declines)),
    Output(
        "pricing/monthly_prices.csv",
        partial(_derived, "monthly_prices", derived.monthly_prices),
        takes_minutes=True,
    ),
    Output("docs/price-index.csv", partial(_made_by, "benchmarks.price_index", "table"), takes_minutes=True),
    Output("docs/price-index.svg", partial(_made_by, "benchmarks.price_index", "picture", "docs/price-index.csv")),
    Output("docs/price-index.md", partial(_made_by, "benchmarks.price_index", "page", "docs/price-index.csv")),
    Output("docs/cli.md", _command_page),
    *(Output(f"docs/cli-{_slug(title)}.md", partial(_commands_page, title)) for title in _groups()),
    Output("docs/data-dictionary.md", _dictionary_page),
    Output("docs/sources.md", _sources_page),
    Output("docs/tco-method.md", _method_page),
    Output("docs/bills.md", _bills_page),
    Output("docs/published-runs.md", partial(_made_by, "benchmarks.published_runs", "page"), tested=True),
    Output("reports/examples/report.md", _example_report),
    Output("docs/accuracy.csv", partial(_made_by, "benchmarks.accuracy", "renewed_table"), takes_minutes=True),
    Output("docs/accuracy-rows.csv", partial(_made_by, "benchmarks.accuracy", "renewed_rows"), takes_minutes=True),
    Output("docs/accuracy-speeds.svg", partial(_made_by, "benchmarks.reliability", "speeds", "docs/accuracy-rows.csv")),
    Output("docs/accuracy-levels.svg", partial(_made_by, "benchmarks.reliability", "levels", "docs/accuracy-rows.csv")),
    Output("docs/terms.csv", partial(_made_by, "benchmarks.terms", "table"), takes_minutes=True, when_named=True),
    Output("docs/accuracy.md", partial(_made_by, "benchmarks.accuracy_page", "page", "docs/accuracy.csv"), tested=True),
    Output("docs/few-shot.csv", partial(_made_by, "benchmarks.few_shot", "table"), takes_minutes=True),
    # drawn by another program, whose versions differ: made where they are asked for by name
    *(
        Output(f"{gallery.FOLDER}/{picture.name}.svg", partial(gallery.drawn, picture.name), when_named=True)
        for picture in gallery.PICTURES
    ),
    Output("docs/gallery.md", gallery.page),
)


def stale(output: Output, write: bool) -> bool:
    """Tell whether a file is not what it would be now, and write it where that is asked for."""
    # one newline at the end, whatever a maker leaves there
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
    options = parser.parse_args()
    stand_still()
    unknown = [name for name in options.files if not any(output.path.endswith(name) for output in OUTPUTS)]
    if unknown:
        paths = ", ".join(output.path for output in OUTPUTS)
        parser.error(f"{', '.join(unknown)} is not generated; there are {paths}")

    def due(output: Output) -> bool:
        if options.files:
            return any(output.path.endswith(name) for name in options.files)
        return not (output.when_named or (options.check and (output.takes_minutes or output.tested)))

    # in turn: a file that is written here is read by those behind it
    outdated = [output.path for output in OUTPUTS if due(output) and stale(output, not options.check)]
    for path in outdated:
        print(f"out of date: {path}" if options.check else f"written: {path}")
    if options.check and not options.files:
        unseen = [output.path for output in OUTPUTS if not (due(output) or output.when_named)]
        print(f"not looked at, for they take minutes or a test holds them: {', '.join(unseen)}")
    if options.check and outdated:
        print("run: python -m docs.generate")
    return 1 if options.check and outdated else 0


if __name__ == "__main__":
    sys.exit(main())
