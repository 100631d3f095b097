"""`gpucost schema`: the JSON schema of a scenario file, of an answer, or of a row of a data table."""

import json
from typing import Any

import click

from gpucost.errors import UnknownNameError


@click.command(name="schema")
@click.argument("what", default="scenario")
def command(what: str) -> None:
    """Print the JSON schema of a scenario file, an answer (estimate, inference, tco, mix, report) or a table's row.

    \b
    gpucost schema scenario > scenario.schema.json
    gpucost schema estimate
    gpucost schema offers
    """
    click.echo(json.dumps(_schema(what), indent=2, ensure_ascii=False))


def _schema(what: str) -> dict[str, Any]:
    if what == "scenario":
        from gpucost.api.scenario import json_schema

        return json_schema()
    from gpucost.answer_schemas import ANSWERS, answer_schema
    from gpucost.schemas import TABLES, row_model

    if what in ANSWERS:
        return answer_schema(what)
    if what not in TABLES:
        import difflib

        near = difflib.get_close_matches(what, ["scenario", *ANSWERS, *TABLES], n=3, cutoff=0.4)
        raise UnknownNameError("schema", what, near, f"There are: scenario, {', '.join([*ANSWERS, *TABLES])}.")
    return row_model(what).model_json_schema()
