"""Help in groups: which options stand together and which only --help-all shows, by one table."""

import click

from gpucost.gate import beside

_ANY = "any"  # in the table: a row for every command, or for every option of one
_SHORT = 18  # so many options are read at a glance: such a command shows them all
_COLUMN = 28  # signs of the column of names; a longer one has its text on the next line
_EVERYTHING = "gpucost.help_all"  # where a context keeps that --help-all was typed
_OTHER, _OUTPUT = "Options", "Output"


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups; the rare ones only where --help-all asks for them."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, and --help-all where an option is rare."""
        parameters = super().get_params(ctx)
        # a short command hides none, and answers --help-all all the same
        return [*parameters, _HELP_ALL if len(self.params) > _SHORT else _HIDDEN_HELP_ALL]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by their groups, in columns that stand below each other."""
        groups, hidden = grouped(self, ctx, everything=bool(ctx.meta.get(_EVERYTHING)))
        records = {
            title: [record for option in options if (record := option.get_help_record(ctx))]
            for title, options in groups.items()
        }
        # one width for all groups, so that their columns stand below each other
        width = max((len(first) for rows in records.values() for first, _ in rows if len(first) <= _COLUMN), default=0)
        for title, rows in records.items():
            with formatter.section(title):
                formatter.write_dl([(first.ljust(width), text) for first, text in rows], col_max=_COLUMN)
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{hidden} rarer options: {ctx.command_path} --help-all")


class GroupedParent(GroupedCommand, click.Group):
    """A command with subcommands, whose options stand in groups too."""

    command_class = GroupedCommand

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the subcommands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def grouped(
    command: click.Command, ctx: click.Context, *, everything: bool = False
) -> tuple[dict[str, list[click.Option]], int]:
    """Return the options of a command by their groups, in the table's order, and how many rare ones are left out."""
    table = {(of, option): (group, rare == "yes") for group, of, option, rare in beside(__file__, "groups")[1:]}
    titles = list(dict.fromkeys(group for group, _ in table.values()))
    # what no row of the table names stands before how an answer is written
    titles.insert(titles.index(_OUTPUT), _OTHER)
    groups: dict[str, list[click.Option]] = {title: [] for title in titles}
    name, short, hidden = command.name or "", len(command.params) <= _SHORT, 0
    for option in command.get_params(ctx):
        if not isinstance(option, click.Option) or option.hidden:
            continue
        # a row for the option of this command goes before one for the option of any, and for any option of this one
        own, usual = name_of(option), table.get((_ANY, name_of(option)), (_OTHER, False))
        group, rare = table.get((name, own)) or (usual[0], table.get((name, _ANY), usual)[1])
        if rare and not everything and not short:
            hidden += 1
        else:
            groups[group].append(option)
    return {title: options for title, options in groups.items() if options}, hidden


def name_of(option: click.Option) -> str:
    """Return the name by which the table knows an option."""
    return next(name for name in option.opts if name.startswith("--")).removeprefix("--")


def _show_all(ctx: click.Context, _: click.Parameter, is_typed: bool) -> None:
    if is_typed and not ctx.resilient_parsing:  # completion parses too
        ctx.meta[_EVERYTHING] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_HELP_ALL, _HIDDEN_HELP_ALL = (
    click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_all,
        help="Show the rarer options too.",
        hidden=hidden,
    )
    for hidden in (False, True)
)
