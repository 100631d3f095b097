"""`gpucost rerun result.json`: reproduce a saved answer from the facts that it embeds."""

import json

import click

from gpucost.cli.options import Output, list_options, output_options
from gpucost.cli.said import say


@click.command(name="rerun")
@list_options("rerun")
@output_options
def command(out: Output, path: str, explain: bool) -> None:
    """Compute a saved estimate again from its own facts; --format json gives equal bytes under the same version.

    \b
    gpucost estimate --model 8b --tokens 100b --format json -o run.json
    gpucost rerun run.json --format json | cmp - run.json
    gpucost rerun run.json --explain
    """
    from gpucost.answers.read import read_estimate, reading
    from gpucost.api.result import Result
    from gpucost.catalog import open_catalog
    from gpucost.catalog.calibrations import training_calibration
    from gpucost.render.json import dumps
    from gpucost.training.rerun import rerun, verdict

    saved = read_estimate(path, changed=True)
    calibration = training_calibration(open_catalog())
    with reading(path):
        fresh = json.loads(dumps(rerun(saved, calibration)))  # with the digits that JSON carries
        found = verdict(saved, fresh)
        say(f"{found['lead']}")
        out.result(Result(found if explain else fresh))
