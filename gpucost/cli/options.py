"""Options of a command from its question's signature, the names that complete them, the settings that set them."""

import os
import sys
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gpucost.arguments import Argument, flag_of, read_list
from gpucost.arguments.kinds import FLAG, GPUS, INPUTS, MODELS, QUOTES, RENTS, TABLE
from gpucost.arguments.signature import Group, argument_of, arguments_of
from gpucost.arguments.vocabulary import AsOf, KnownAsOf
from gpucost.catalog.settings import Setting, spoken
from gpucost.cli.messages import printable as visible
from gpucost.cli.messages import say
from gpucost.errors import UnknownNameError, UsageError
from gpucost.gate import beside, shown

if TYPE_CHECKING:
    from gpucost.ask.result import Result
    from gpucost.catalog import Catalog
    from gpucost.render.document import Column
    from gpucost.render.rows import Rows


# --- The names that complete an option's value, from the shipped facts and your own book.

# Table of offers and the like -> the kind of its aliases.
_ALIASED = {"accelerators": "accelerator", "llms": "model", "systems": "system"}
# Kind of name -> the tables that hold it, and the column.
_COLUMNS = {
    "providers": (("offers",), "provider"),
    "regions": (("offers",), "region"),
    "vendors": (("accelerators",), "vendor"),
    "families": (("llms",), "family"),
    "currencies": (("exchange_rates",), "currency"),
    "sources": (("model_sources", "price_sources"), "source_id"),
    "length_distributions": (("length_distributions",), "name"),
}


def _names_of(table: str) -> list[str]:
    """Return the names of a kind: of accelerators, models, providers, regions, purchase options and so on."""
    from gpucost.answers import KINDS
    from gpucost.catalog.loader import ready_questions
    from gpucost.options import OPTIONS
    from gpucost.schemas import TABLES

    # known without a catalog: completion should be quick
    closed = {"options": OPTIONS, "tables": TABLES, "schemas": [*KINDS, *TABLES]}
    if table in closed:
        return list(closed[table])
    if table == "questions":
        return ["list", *ready_questions()]
    from gpucost.catalog import open_catalog

    catalog = open_catalog()
    tables, column = _COLUMNS.get(table, ((table,), "id"))
    # energy holds tariffs and grids, each region under its own item
    if table in ("electricity", "grid_carbon"):
        items = [str(row["item"]) for row in catalog.rows("energy")]
        names = [item.removeprefix(f"{table}.") for item in items if item.startswith(table)]
    elif table == "tax regimes":
        names = sorted({row["regime"] for row in catalog.rows("tax_regimes")})
    elif table == "sites":
        from gpucost.ownership.plan import sites

        names = sites(row["item"] for row in catalog.rows("ownership"))
    else:
        names = [row[column] for name in tables for row in catalog.rows(name)]
    if table == "regions":
        names += catalog.regions.names
    if table in _ALIASED:
        names += [row["alias"] for row in catalog.rows("aliases") if row["kind"] == _ALIASED[table]]
    return sorted({str(name) for name in names if name})


# --- Settings as the defaults of a command's options; a flag on the command line overrules them.


def defaults_of(command: click.Command, *path: str, settings: Sequence[Setting] | None = None) -> dict[str, Any]:
    """Return what settings say about the options of a command, called by `path`, and within of its subcommands."""
    all_settings = list(spoken()) if settings is None else settings
    values: dict[str, Any] = {}
    if all_settings:
        tables = tables_of(*path)
        for parameter in command.params:
            setting = _counting_setting(all_settings, tables, parameter) if parameter.name else None
            if setting is None:
                continue
            # as the option takes it: once, or several times
            value = setting.value
            if getattr(parameter, "multiple", False):
                value = (value,) if isinstance(value, str) else value
            elif not isinstance(value, str):
                raise UsageError(f"{setting.speaker}: {setting.name} takes one value, found {shown(value)}.")
            values[str(parameter.name)] = value
    if isinstance(command, click.Group):
        for inner, sub in command.commands.items():
            values[inner] = defaults_of(sub, *path, inner, settings=all_settings)
    return values


def tables_of(*path: str) -> list[str]:
    """Return the tables that speak to a command, as prefixes too, what speaks to more commands first.

    The bare name of a subcommand stands for it where no command bears that name.

    >>> tables_of("prices", "watch"), tables_of("prices", "history")
    (['prices', 'prices_watch'], ['prices', 'prices_history', 'history'])
    """
    tables = ["_".join(path[:number]).replace("-", "_") for number in range(1, len(path) + 1)]
    # `history` alone means `prices history`, but `watch` is a command of its own
    has_own_table = len(path) > 1 and path[-1] not in {name for name, *_ in beside(__file__, "commands")}
    return [*tables, path[-1].replace("-", "_")] if has_own_table else tables


def setting_names_of(parameter: click.Parameter) -> set[str]:
    """Return the long names of an option as settings write them."""
    opts = parameter.opts if isinstance(parameter, click.Option) else ()
    return {option.lstrip("-").replace("-", "_") for option in opts if option.startswith("--")}


def _counting_setting(settings: Sequence[Setting], tables: Sequence[str], parameter: click.Parameter) -> Setting | None:
    """Return the setting that counts for an option: of the strongest speaker the one that is meant for fewest."""
    names, reached = setting_names_of(parameter), []
    for number, item in enumerate(settings):
        # how narrowly a setting speaks of the option: 1 of all commands', more of this one's
        full_name = f"{item.command.replace('-', '_')}_{item.name}" if item.command else item.name
        reach = int(not item.command and item.name in names)
        for narrowness, table in enumerate(tables, 2):
            if any(full_name == f"{table}_{name}" for name in names):
                reach = narrowness
        if reach:
            reached.append((item.turn, reach, number))
    return settings[max(reached)[2]] if reached else None


def speaker_of(error: Exception, command: click.Command, arguments: Sequence[str], *path: str) -> str:
    """Return who gave the value that an error of a command is about, where a setting did; else an empty text."""
    try:
        settings = list(spoken())
    except UsageError:  # the file of settings itself is at fault, and says so
        return ""
    # the error is of a subcommand's option
    if isinstance(command, click.Group):
        for word in arguments:
            if word in command.commands:
                return speaker_of(error, command.commands[word], arguments, *path, word)
    for parameter in command.params:
        setting = _counting_setting(settings, tables_of(*path), parameter)
        is_typed = any(word.partition("=")[0] in parameter.opts for word in arguments)
        if setting is None or is_typed:
            continue
        # an error is about an option that it names, or whose setting holds the name that is unknown
        starts = tuple(f"{option}:" for option in parameter.opts)
        if getattr(error, "param", None) is parameter or str(error).startswith(starts):
            return setting.speaker
        if isinstance(error, UnknownNameError) and error.name == setting.value:
            return setting.speaker
    return ""


# --- What every command shares: options from the signature of its function, and the one way to hand over answers.

Function = Callable[..., Any]

# A way of writing, the ways that it excludes, the formats that it has where not all, what is said where they meet
_EXCLUDES: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...] = (
    (
        "document",
        ("fields", "explain", "lines", "print_plan", "quiet"),
        (),
        "{} is not a text file: leave --fields and similar options out.",
    ),
    (
        "quiet",
        ("fields", "explain", "lines", "print_plan", "details"),
        ("table",),
        "--quiet writes one line: leave --format, --details, --explain and similar options out.",
    ),
    ("lines", (), ("csv",), "--lines: only as CSV. Add --format csv, or -o FILE.csv."),
    (
        "explain",
        ("fields", "print_plan"),
        ("table", "md"),
        "--explain writes text or Markdown only. Leave --fields and similar options out.",
    ),
    ("print_plan", ("fields",), (), "--print-plan writes the whole plan. Leave --fields out."),
)

_DATES = (argument_of("as_of", AsOf), argument_of("known_as_of", KnownAsOf))
SEVERAL = (QUOTES, RENTS, TABLE, INPUTS, MODELS, GPUS)  # kinds of which a command takes several
_FORMATS = ("table", "json", "csv", "md")
# Endings that are no text; a list of rows is written by the first of them only.
_DOCUMENTS = {".xlsx": "to_excel", ".html": "to_html", ".htm": "to_html", ".pdf": "to_pdf"}
_ANSWERS_ONLY = (".pdf",)
ENDINGS = {".json": "json", ".csv": "csv", ".md": "md"}
_TEXTS = ("", ".", ".txt", ".text", ".log", ".out")  # of what is written for a person
# Endings of files that would hold a text, not what they say, whatever --format names.
_NOT_WRITTEN = (
    *(".docx", ".pptx", ".odt", ".ods", ".xls", ".xlsm"),
    *(".png", ".svg", ".jpg", ".jpeg", ".gif"),
    *(".parquet", ".feather", ".tsv", ".yaml", ".yml", ".toml", ".jsonl"),
    *(".gz", ".zip", ".bz2", ".xz", ".zst"),
)


def spoke(parameter: str) -> ParameterSource | None:
    """Return who gave an option of the running command its value: the command line, a setting, the default."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.get_parameter_source(parameter)


def is_setting(parameter: str) -> bool:
    """Tell whether an option of the running command has its value from a setting."""
    return spoke(parameter) is ParameterSource.DEFAULT_MAP


class Output:
    """Where and how an answer is to be written."""

    def __init__(
        self, format_: str | None, fields: str | None, file: str | None, more: Collection[str] = ()
    ) -> None:  # `more` endings that a command writes
        file = None if file == "-" else file  # the usual sign for the terminal
        self.ending = os.path.splitext(file or "")[1].lower()
        endings = {*_TEXTS, *ENDINGS, *_DOCUMENTS, *more}
        # an ending that nobody knows is fine where --format says what the file holds
        if self.ending not in endings and (format_ is None or self.ending in _NOT_WRITTEN):
            raise click.UsageError(
                f"{file}: gpucost does not write {self.ending}. Use .html (browsers print it), .pdf,"
                f" {', '.join(['.xlsx', *ENDINGS, *more])} or .txt."
            )
        if self.ending in {*ENDINGS, *_DOCUMENTS, *more} and is_setting("format_"):
            format_ = None  # a file that was named overrules a setting
        self.fields, self.file, self.chosen = fields, file, format_
        self.format = format_ or ENDINGS.get(self.ending, "table")
        self.is_document = self.ending in _DOCUMENTS
        self.is_plain = self.format == "table" and not self.fields and not self.is_document  # a screen for a person

    def result(
        self,
        result: "Result",
        *,
        explain: bool = False,
        lines: bool = False,
        print_plan: bool = False,
        details: bool = False,
        quiet: bool = False,
        launch: bool = False,
    ) -> None:
        """Write an answer: a workbook or a page by the file's ending, else text."""
        switches = {"explain": explain, "lines": lines, "print_plan": print_plan, "details": details, "quiet": quiet}
        switches_on = {name for name, on in switches.items() if on}
        # what settings say gives way to what is typed, or to the usual form
        while clash := self._clash(switches_on):
            reason, names = clash
            aside = {name for name in names if is_setting(name)}
            if not aside or len(aside) == len(names) > 1:
                raise click.UsageError(f"{reason}{' `gpucost config` names these settings.' if aside else ''}")
            switches_on -= aside
            self.fields = None if "fields" in aside else self.fields
            self.format = "table" if "format_" in aside else self.format
        if launch:
            if self.format != "table" and not is_setting("format"):
                raise click.UsageError(f"--launch writes a script, not {self.format}: leave one of them out.")
            from gpucost.render.launch import launch as start

            self.text(start(result.payload))
            return
        if self.is_document:
            self._no_text()
            getattr(result, _DOCUMENTS[self.ending])(self.file)
            return
        if "quiet" in switches_on:
            from gpucost.answers.saved import change_warnings

            self.text(result.headline)
            # one line, and what nobody may miss: that somebody edited the saved answer
            for warning in change_warnings(result.payload):
                say(warning)
            return
        plan = getattr(result, "to_plan", None) if "print_plan" in switches_on else None
        if plan and self.format != "table":
            import tomllib

            from gpucost.render.json import dumps

            if self.format != "json":  # a plan has no rows for another format
                raise click.UsageError("--print-plan writes a plan file, or JSON with --format json.")
            self.text(dumps(tomllib.loads(plan())))
            return
        how = {name: name in switches_on for name in ("explain", "lines", "details")}
        self.text(plan() if plan else result.written(self.format, self.fields, **how), written=not plan)
        if self.format == "csv" or self.fields or "print_plan" in switches_on:  # everything else carries its warnings
            for warning in result.payload.get("warnings") or ():
                say(warning)

    def _clash(self, switches: set[str]) -> tuple[str, set[str]] | None:
        """Return why some of what was said cannot be together, and the parameters that said it."""
        on = {*switches, *(["fields"] if self.fields else []), *(["document"] if self.is_document else [])}
        for name, excluded, formats, reason in _EXCLUDES:
            excluded_switches, wrong_format = on & set(excluded), formats and self.format not in formats
            if name in on and (excluded_switches or wrong_format):
                # the format is to blame only where the usual one would do
                blamed = ["format_"] if wrong_format and "table" in formats else []
                return reason.format(self.file), {name, *excluded_switches, *blamed}
        return None

    def rows(
        self,
        rows: "Rows",
        columns: "str | Sequence[str | Column]",
        catalog: "Catalog | None",
        warnings: Sequence[str] = (),
        title: str = "",
        **more: Any,
    ) -> None:
        """Write flat rows; `columns` are those of the terminal table, or the list that columns.csv has them of.

        --fields may name any key of the rows. The warnings are also said on stderr.
        """
        from gpucost.render.document import columns_of
        from gpucost.render.rows import render_rows, write_rows

        columns_shown = columns_of(columns) if isinstance(columns, str) else columns
        about = envelope(catalog, warnings) | more
        if self.ending in _ANSWERS_ONLY:
            raise click.UsageError(f"{self.file}: a list is not written as {self.ending}. Use .html, .xlsx or .csv.")
        if self.is_document:
            heading = title or str(click.get_current_context().command_path)
            write_rows(str(self.file), rows, columns_shown, self._no_text(), about, heading)
            return
        text = render_rows(
            rows, columns=columns_shown, format_=self.format, fields=self.fields, envelope=about, title=title
        )
        self.text(text, written=True)

    def _no_text(self) -> str | None:
        """Return --fields for a document; a format of texts contradicts it."""
        if self.chosen not in (None, "table"):
            raise click.UsageError(f"{self.file} is not a text file: leave --format out.")
        return self.fields

    def text(self, text: str, *, written: bool = False) -> None:
        """Write finished text to stdout, or whole to a file: an existing file is replaced only by a complete one.

        What a writer of `render` has not `written` may hold control characters: they are shown, not sent.
        """
        if self.is_document:
            raise click.UsageError(f"{self.file}: this command writes text. Name a file such as answer.txt.")
        text = text if written else visible(text)
        if self.file is None:
            click.echo(text.rstrip("\n"))
            sys.stdout.flush()  # before a warning is said: the two streams have no order of their own
            return
        from gpucost.store.files import write_text

        write_text(self.file, text)


def output_parameters(taken: Collection[str | None] = ()) -> list[click.Parameter]:  # `taken`: names of other options
    """Return --format, --fields and -o: how and where every command writes its answer."""
    # a question may have an argument `output`
    names = ["-o", "--output-file", *(() if "output" in taken else ("--output",))]
    help_ = "Write to FILE instead of the terminal; .xlsx makes a workbook, .html a page, .pdf a print."
    return [
        click.Option(
            ["--format", "format_"],
            type=click.Choice(_FORMATS),
            help="Output format; by default that of FILE's suffix.",
        ),
        click.Option(["--fields"], metavar="NAMES", help="Columns to show, separated by commas, in this order."),
        click.Option([*names, "output_file"], type=click.Path(dir_okay=False), metavar="FILE", help=help_),
    ]


def version_option() -> click.Option:
    """Return --catalog: which version of the facts a command answers from."""

    def heed(ctx: click.Context, _: click.Parameter, version: str | None) -> None:
        if version and not ctx.resilient_parsing:
            from gpucost.catalog.settings import facts_of

            ctx.with_resource(facts_of(version))

    return click.Option(
        ["--catalog"],
        metavar="VERSION",
        expose_value=False,
        is_eager=True,
        callback=heed,
        help="Answer from this version of the facts: one that an answer names, or a snapshot.",
    )


def parameter_of(argument: Argument) -> click.Parameter:
    """Return what a command line has for an argument: an option, or a word without one's name."""
    if not argument.place:
        return option_of(argument)
    value = argument.name.upper() if argument.kind.metavar == "TEXT" else argument.kind.metavar
    metavar = value if argument.required else f"[{value}]"
    return click.Argument(
        [argument.name], required=argument.required, metavar=metavar, shell_complete=_completion(argument)
    )


def option_of(argument: Argument) -> click.Option:
    """Return the option of an argument; its value stays as it was written, for one reader serves all faces."""
    flag, is_flag = flag_of(argument.name), argument.kind is FLAG
    text = argument.help
    if len(argument.kind.choices) > 4:  # a shorter list is the metavar already
        text += f" One of {', '.join(argument.kind.choices)}."
    if argument.required:
        text += "  [required]"
    elif argument.usual or (argument.default is not None and not is_flag):
        text += f"  [default: {argument.usual or argument.default}]"
    # a switch that is on, or that depends, needs a way to say no
    if is_flag and (argument.default or argument.usual):
        return click.Option([f"{flag}/--no-{flag[2:]}", argument.name], default=None, help=text)
    if is_flag:
        return click.Option([flag, argument.name], is_flag=True, default=None, flag_value=True, help=text)
    return click.Option(
        [flag, argument.name],
        metavar=argument.kind.metavar,
        help=text,
        multiple=argument.kind in SEVERAL,
        shell_complete=_completion(argument),
    )


def _completion(argument: Argument) -> Any:
    """Return what completes a value: the words of a closed list, or names of the catalog."""
    from click.shell_completion import CompletionItem

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:

        if is_file:
            return [CompletionItem(incomplete, type="file")]
        # of a list with commas the last part is being typed
        choices = argument.kind.choices or _names_of(argument.kind.names)
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(before + comma + word) for word in choices if word.lower().startswith(last.lower())]

    is_file = not argument.kind.names and argument.kind.metavar.endswith(("FILE", ".json"))
    return complete if argument.kind.choices or argument.kind.names or is_file else None


def _taking(function: Function, call: Function, parameters: Sequence[click.Parameter]) -> Function:
    """Return `call` under the name of `function`, with parameters before those that it has."""
    command = wraps(function)(call)
    # where click keeps what its own decorators add, the last first
    vars(command)["__click_params__"] = [*getattr(function, "__click_params__", []), *reversed(parameters)]
    return command


def output_options(function: Function) -> Function:
    """Add --format, --fields and -o; the command gets them as `out`."""

    def call(*args: Any, format_: str | None, fields: str | None, output_file: str | None, **kwargs: Any) -> Any:
        return function(*args, out=Output(format_, fields, output_file), **kwargs)

    return _taking(function, call, output_parameters())


def signature_options(function: Function) -> Function:
    """Add the arguments that a command's signature declares; it gets them read.

    Of a command that takes a `catalog`, --as-of and --known-as-of say of which days it is.
    """
    arguments, dated = arguments_of(function), "catalog" in function.__annotations__
    declared = (*arguments, *(_DATES if dated else ()))
    # a parameter that takes a group of arguments gets them as a dictionary
    groups = {
        name: entry
        for name, annotation in function.__annotations__.items()
        for entry in getattr(annotation, "__metadata__", ())
        if isinstance(entry, Group)
    }

    def call(*args: Any, **kwargs: Any) -> Any:
        stated = {item.name: kwargs.pop(item.name) for item in declared}
        values = read_list(arguments, stated, complete=True)
        if dated:
            from gpucost.catalog.shared import shared_catalog

            kwargs["catalog"] = shared_catalog(*read_list(_DATES, stated).values())
        for name, group in groups.items():
            kwargs[name] = {inner: values.pop(inner) for inner in group}
        return function(*args, **kwargs, **values)

    parameters = [parameter_of(argument) for argument in declared]
    parameters += [version_option()] if dated else []
    return _taking(function, call, parameters)


def catalog_options(function: Function) -> Function:
    """Add --as-of and --known-as-of alone; the command gets the `catalog` of those days."""

    def call(*args: Any, **kwargs: Any) -> Any:
        from gpucost.catalog.shared import shared_catalog

        days = read_list(_DATES, {item.name: kwargs.pop(item.name) for item in _DATES})
        return function(*args, catalog=shared_catalog(*days.values()), **kwargs)

    return _taking(function, call, [*(option_of(argument) for argument in _DATES), version_option()])


def envelope(catalog: "Catalog | None", warnings: Sequence[str] = ()) -> dict[str, Any]:
    """Return what every JSON list carries beside its rows; the warnings are also said on stderr."""
    from gpucost.answers import SCHEMA_VERSION

    for warning in warnings:
        say(warning)
    return {
        "schema_version": SCHEMA_VERSION,
        "catalog_version": catalog and catalog.version,
        "as_of": catalog and catalog.as_of.isoformat(),
        "warnings": list(warnings),
    }
