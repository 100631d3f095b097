"""`gpucost rerun result.json`: reproduce a saved answer from the facts that it embeds."""

import json
from typing import Annotated, cast

import click

from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import FILE, FLAG
from gpucost.arguments.signature import PLACE
from gpucost.cli.options import Output, output_options, signature_options
from gpucost.cli.said import say


@click.command(name="rerun")
@signature_options
@output_options
def command(
    out: Output,
    path: Annotated[str, FILE, PLACE],
    explain: Annotated[
        bool, FLAG, "Say whether the figures are equal, and why not, instead of writing the answer."
    ] = False,
    accept_changed: v.AcceptChanged = False,
) -> None:
    """Compute a saved estimate again from the facts it embeds; --format json gives equal bytes in the same version.

    \b
    gpucost estimate --model 8b --tokens 100b --format json -o run.json
    gpucost rerun run.json --format json | cmp - run.json
    gpucost rerun run.json --explain
    """
    from gpucost.answers.saved import read_estimate, reading, with_changes_told
    from gpucost.answers.training import Estimate
    from gpucost.ask.estimate import rerun
    from gpucost.ask.result import Result
    from gpucost.catalog import open_catalog
    from gpucost.catalog.calibrations import training_calibration
    from gpucost.render.json import dumps
    from gpucost.training.rerun import verdict

    saved = read_estimate(path, accept_changed)
    calibration = training_calibration(open_catalog())
    with reading(path):
        fresh = json.loads(dumps(rerun(saved, calibration)))  # with the digits that JSON carries
        fresh = cast(Estimate, with_changes_told(fresh, saved))
        verdict_row = verdict(saved, fresh)
        say(f"{verdict_row['lead']}")
        out.result(Result(with_changes_told(verdict_row, saved) if explain else fresh))
