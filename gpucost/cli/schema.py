"""`gpucost schema`: the JSON schema of a scenario file or of a row of a data table."""

import json
from typing import Any

import click

from gpucost.errors import UnknownNameError


@click.command(name="schema")
@click.argument("what", default="scenario")
def command(what: str) -> None:
    """Print the JSON schema of `scenario`, or of a row of a data table such as `offers`.

    \b
    gpucost schema scenario > scenario.schema.json
    gpucost schema offers
    """
    click.echo(json.dumps(_schema(what), indent=2, ensure_ascii=False))


def _schema(what: str) -> dict[str, Any]:
    if what == "scenario":
        from gpucost.scenario import json_schema

        return json_schema()
    from gpucost.schemas import TABLES, row_model

    if what not in TABLES:
        import difflib

        near = difflib.get_close_matches(what, ["scenario", *TABLES], n=3, cutoff=0.4)
        raise UnknownNameError("schema", what, near, f"There are: scenario, {', '.join(TABLES)}.")
    return row_model(what).model_json_schema()
