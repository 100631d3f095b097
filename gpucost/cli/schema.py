"""`gpucost schema`: the JSON schema of a scenario file, of an answer, or of a row of a data table."""

import json
from typing import Annotated, Any

import click

from gpucost.arguments.kinds import named
from gpucost.arguments.signature import PLACE
from gpucost.cli.options import signature_options
from gpucost.errors import UnknownNameError, nearest


@click.command(name="schema")
@signature_options
def command(what: Annotated[str, named("NAME", "schemas"), PLACE] = "scenario") -> None:
    """Print the JSON schema of a scenario file, an answer (estimate, inference, tco, mix, report …) or a table's row.

    \b
    gpucost schema scenario > scenario.schema.json
    gpucost schema estimate
    gpucost schema offers
    """
    click.echo(json.dumps(_schema(what), indent=2, ensure_ascii=False))


# the command whose answer bears another name
_COMMANDS = {"report": "scenario", "compare": "comparison", "validate": "validation"}


def _schema(name: str) -> dict[str, Any]:
    if name == "scenario":
        from gpucost.library.scenario import json_schema

        return json_schema()
    from gpucost.answers import KINDS
    from gpucost.answers.schema import answer_schema
    from gpucost.schemas import TABLES, row_model

    kind = _COMMANDS.get(name, name)
    if kind in KINDS:
        return answer_schema(kind)
    if name not in TABLES:
        near = nearest(name, [*KINDS, *TABLES], 3, 0.4)
        raise UnknownNameError("schema", name, near, f"There are: {', '.join([*KINDS, 'report', *TABLES])}.")
    return row_model(name).model_json_schema()
