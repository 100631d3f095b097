"""What every command shares: options from the signature of its function, and the one way to hand over answers."""

import os
import sys
from collections.abc import Callable, Collection, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gpucost.arguments import Argument, flag_of, read_list
from gpucost.arguments.kinds import FLAG, GPUS, MODELS, QUOTES, RENTS, TABLE
from gpucost.arguments.signature import Group, argument_of, arguments_of
from gpucost.arguments.vocabulary import AsOf, KnownAsOf
from gpucost.cli.messages import printable as visible
from gpucost.cli.messages import say
from gpucost.gate import beside

if TYPE_CHECKING:
    from gpucost.ask.result import Result
    from gpucost.catalog import Catalog
    from gpucost.render.document import Column
    from gpucost.render.rows import Rows

Function = Callable[..., Any]

# a way of writing, the ways that it excludes, the formats that it has where not all, what is said where they meet
_EXCLUDES: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...] = (
    (
        "document", ("fields", "explain", "lines", "print_plan", "quiet"), (),
        "{} is no text: leave --fields and the like out.",
    ),
    (
        "quiet", ("fields", "explain", "lines", "print_plan", "details"), ("table",),
        "--quiet writes one line: leave --format, --details, --explain and the like out.",
    ),
    ("lines", (), ("csv",), "--lines: only as CSV. Add --format csv, or -o FILE.csv."),
    (
        "explain", ("fields", "print_plan"), ("table", "md"),
        "--explain: only as a text or Markdown. Leave --fields and the like out.",
    ),
    ("print_plan", ("fields",), (), "--print-plan: only whole. Leave --fields out."),
)  # fmt: skip

DATES = (argument_of("as_of", AsOf), argument_of("known_as_of", KnownAsOf))
SEVERAL = (QUOTES, RENTS, TABLE, MODELS, GPUS)  # kinds of which a command takes several
FORMATS = ("table", "json", "csv", "md")
DOCUMENTS = {".xlsx": "to_excel", ".html": "to_html", ".htm": "to_html"}  # endings that are no text
ENDINGS = {".json": "json", ".csv": "csv", ".md": "md"}
TEXTS = ("", ".", ".txt", ".text", ".log", ".out")  # of what is written for a person
# endings of files that would hold a text, not what they say, whatever --format names
UNWRITTEN = (
    ".pdf", ".docx", ".pptx", ".odt", ".ods", ".xls", ".xlsm", ".png", ".svg", ".jpg", ".jpeg", ".gif", ".parquet",
    ".feather", ".tsv", ".yaml", ".yml", ".toml", ".jsonl", ".gz", ".zip", ".bz2", ".xz", ".zst",
)  # fmt: skip


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
        known = {*TEXTS, *ENDINGS, *DOCUMENTS, *more}
        if self.ending not in known and (format_ is None or self.ending in UNWRITTEN):
            raise click.UsageError(
                f"{file}: {self.ending} is not written. Take .html (browsers print it),"
                f" {', '.join(['.xlsx', *ENDINGS, *more])} or .txt."
            )
        if self.ending in {*ENDINGS, *DOCUMENTS, *more} and is_setting("format_"):
            format_ = None  # a file that was named overrules a setting
        self.fields, self.file, self.chosen = fields, file, format_
        self.format = format_ or ENDINGS.get(self.ending, "table")
        self.is_document = self.ending in DOCUMENTS
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
        said = {"explain": explain, "lines": lines, "print_plan": print_plan, "details": details, "quiet": quiet}
        heeded = self._heeded({name for name, on in said.items() if on})
        if launch:
            from gpucost.render.launch import launch as launched

            self.text(launched(result.payload))
            return
        if self.is_document:
            self._no_text()
            getattr(result, DOCUMENTS[self.ending])(self.file)
            return
        plan = getattr(result, "to_plan", None) if "print_plan" in heeded else None
        if "quiet" in heeded:
            from gpucost.answers.saved import changes_told

            self.text(result.headline)
            for warning in changes_told(result.payload):
                say(warning)
            return
        if plan and self.format != "table":
            self.text(self._plan_as_data(plan()))
            return
        how = {name: name in heeded for name in ("explain", "lines", "details")}
        self.text(plan() if plan else result.written(self.format, self.fields, **how), written=not plan)
        if self.format == "csv" or self.fields or "print_plan" in heeded:  # everything else carries its warnings
            for warning in result.payload.get("warnings") or ():
                say(warning)

    def _heeded(self, said: set[str]) -> set[str]:
        """Return the switches that count: what settings say gives way to what is typed, or to the usual form."""
        while clash := self._clash(said):
            words, names = clash
            aside = {name for name in names if is_setting(name)}
            if not aside or len(aside) == len(names) > 1:
                raise click.UsageError(f"{words}{' `gpucost config` names these settings.' if aside else ''}")
            said = said - aside
            self.fields = None if "fields" in aside else self.fields
            self.format = "table" if "format_" in aside else self.format
        return said

    def _clash(self, said: set[str]) -> tuple[str, set[str]] | None:
        """Return why some of what was said cannot be together, and the parameters that said it."""
        on = {*said, *(["fields"] if self.fields else []), *(["document"] if self.is_document else [])}
        for name, excluded, formats, words in _EXCLUDES:
            found, strange = on & set(excluded), formats and self.format not in formats
            if name in on and (found or strange):
                blamed = ["format_"] if strange and "table" in formats else []  # else the usual one is no help either
                return words.format(self.file), {name, *found, *blamed}
        return None

    def rows(
        self, rows: "Rows", columns: "str | Sequence[str | Column]", catalog: "Catalog | None",
        warnings: Sequence[str] = (), title: str = "", **more: Any,
    ) -> None:  # fmt: skip
        """Write flat rows; `columns` are those of the terminal table, or the list that columns.csv has them of.

        --fields may name any key of the rows. The warnings are also said on stderr.
        """
        from gpucost.render.rows import render_rows, write_rows

        columns_shown, around = (
            columns_of(columns) if isinstance(columns, str) else columns,
            envelope(catalog, warnings) | more,
        )
        if self.is_document:
            write_rows(str(self.file), rows, columns_shown, self._no_text(), around, title or self._command())
            return
        text = render_rows(
            rows, columns=columns_shown, format_=self.format, fields=self.fields, envelope=around, title=title
        )
        self.text(text, written=True)

    def _plan_as_data(self, plan: str) -> str:
        """Return a plan file as JSON; it has no rows for another format."""
        import tomllib

        from gpucost.render.json import dumps

        if self.format != "json":
            raise click.UsageError("--print-plan writes a plan file, or JSON with --format json.")
        return dumps(tomllib.loads(plan))

    def _no_text(self) -> str | None:
        """Return --fields for a document; a format of texts contradicts it."""
        if self.chosen not in (None, "table"):
            raise click.UsageError(f"{self.file} is no text: leave --format out.")
        return self.fields

    @staticmethod
    def _command() -> str:
        return str(click.get_current_context().command_path)

    def text(self, text: str, *, written: bool = False) -> None:
        """Write finished text to stdout, or whole to a file: an existing file is replaced only by a complete one.

        What a writer of `render` has not `written` may hold control characters: they are shown, not sent.
        """
        if self.is_document:
            raise click.UsageError(f"{self.file}: this command writes text. Name a file such as answer.txt.")
        text = text if written else visible(text)
        if self.file is None:
            click.echo(text.rstrip("\n"))
            sys.stdout.flush()
            return
        from gpucost.store.files import write_text

        write_text(self.file, text)


def output_parameters(taken: Collection[str | None] = ()) -> list[click.Parameter]:
    """Return --format, --fields and -o: how and where every command writes its answer."""
    names = ["-o", "--output-file", *(() if "output" in taken else ("--output",))]
    help_ = "Write to FILE instead of the terminal; .xlsx makes a workbook, .html a page."
    return [
        click.Option(
            ["--format", "format_"], type=click.Choice(FORMATS), help="Output format; by default that of FILE's suffix."
        ),
        click.Option(["--fields"], metavar="NAMES", help="Columns to show, separated by commas, in this order."),
        click.Option([*names, "output_file"], type=click.Path(dir_okay=False), metavar="FILE", help=help_),
    ]


def parameter_of(argument: Argument) -> click.Parameter:
    """Return what a command line has for an argument: an option, or a word without one's name."""
    if not argument.place:
        return option_of(argument)
    words = argument.name.upper() if argument.kind.metavar == "TEXT" else argument.kind.metavar
    metavar = words if argument.required else f"[{words}]"
    return click.Argument(
        [argument.name], required=argument.required, metavar=metavar, shell_complete=_completion(argument)
    )


def option_of(argument: Argument) -> click.Option:
    """Return the option of an argument; its value stays as it was written, for one reader serves all faces."""
    flag, is_flag = flag_of(argument.name), argument.kind is FLAG
    text = argument.help
    if len(argument.kind.choices) > 4:
        text += f" One of {', '.join(argument.kind.choices)}."
    if argument.required:
        text += "  [required]"
    elif argument.usual or (argument.default is not None and not is_flag):
        text += f"  [default: {argument.usual or argument.default}]"
    if is_flag and (argument.default or argument.usual):
        return click.Option([f"{flag}/--no-{flag[2:]}", argument.name], default=None, help=text)
    if is_flag:
        return click.Option([flag, argument.name], is_flag=True, default=None, flag_value=True, help=text)
    return click.Option(
        [flag, argument.name], metavar=argument.kind.metavar, help=text, multiple=argument.kind in SEVERAL,
        shell_complete=_completion(argument),
    )  # fmt: skip


def _completion(argument: Argument) -> Any:
    """Return what completes a value: the words of a closed list, or names of the catalog."""
    from click.shell_completion import CompletionItem

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from gpucost.cli.names import names_of

        if is_file:
            return [CompletionItem(incomplete, type="file")]
        words = argument.kind.choices or names_of(argument.kind.names)
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(before + comma + word) for word in words if word.lower().startswith(last.lower())]

    is_file = not argument.kind.names and argument.kind.metavar.endswith(("FILE", ".json"))
    return complete if argument.kind.choices or argument.kind.names or is_file else None


def _taking(function: Function, call: Function, parameters: Sequence[click.Parameter]) -> Function:
    """Return `call` under the name of `function`, with parameters before those that it has."""
    command = wraps(function)(call)
    vars(command)["__click_params__"] = [*getattr(function, "__click_params__", []), *reversed(parameters)]
    return command


def output_options(function: Function) -> Function:
    """Add --format, --fields and -o; the command gets them as `out`."""

    def call(*args: Any, format_: str | None, fields: str | None, output_file: str | None, **given: Any) -> Any:
        return function(*args, out=Output(format_, fields, output_file), **given)

    return _taking(function, call, output_parameters())


def signature_options(function: Function) -> Function:
    """Add the arguments that a command's signature declares; it gets them read.

    Of a command that takes a `catalog`, --as-of and --known-as-of say of which days it is.
    """
    takes, dated = arguments_of(function), "catalog" in function.__annotations__
    groups = {name: group for name, one in function.__annotations__.items() if (group := _group(one)) is not None}

    def call(*args: Any, **given: Any) -> Any:
        stated = {item.name: given.pop(item.name) for item in (*takes, *(DATES if dated else ()))}
        values = read_list(takes, stated, complete=True)
        if dated:
            from gpucost.catalog import open_catalog

            given["catalog"] = open_catalog(*read_list(DATES, stated).values())
        for name, group in groups.items():
            given[name] = {inner: values.pop(inner) for inner in group}
        return function(*args, **given, **values)

    parameters = [parameter_of(argument) for argument in (*takes, *(DATES if dated else ()))]
    return _taking(function, call, parameters)


def _group(annotation: Any) -> Group | None:
    """Return the arguments that a parameter gets as a dictionary, where it is such a one."""
    return next((one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, Group)), None)


def catalog_options(function: Function) -> Function:
    """Add --as-of and --known-as-of alone; the command gets the `catalog` of those days."""

    def call(*args: Any, **rest_of_arguments: Any) -> Any:
        from gpucost.catalog import open_catalog

        days = read_list(DATES, {item.name: rest_of_arguments.pop(item.name) for item in DATES})
        return function(*args, catalog=open_catalog(*days.values()), **rest_of_arguments)

    return _taking(function, call, [option_of(argument) for argument in DATES])


@cache
def columns_of(list_: str) -> tuple[str, ...]:
    """Return the columns of a list as columns.csv has them: on a narrow terminal those with a larger `leaves` go first.

    >>> columns_of("watch")[:2]
    ('what', 'now@unit')
    """
    lines = [cells for name, *cells in beside(__file__, "columns") if name == list_]
    return tuple(f"{name}{heading and f'={heading}'}{leaves and f':{leaves}'}" for name, heading, leaves in lines)


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
