"""`gpucost bench`: what this machine's GPUs attain, against their datasheets and machines on record."""

import sys
from statistics import median
from typing import Any

import click

from gpucost.bench.cases import GROUPS, PROFILES
from gpucost.cli.help import GroupedCommand
from gpucost.cli.options import Output, catalog_options, output_options
from gpucost.units import TERA


@click.command(name="bench", cls=GroupedCommand)
@click.argument("file", type=click.Path(dir_okay=False), default="bench.json", required=False)
@click.option("--profile", type=click.Choice(PROFILES), default="short", show_default=True, help="How much to measure.")
@click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), default="auto", help="What to measure.")
@click.option("--gpus", type=click.IntRange(1, 64), help="Use this many GPUs; by default all visible ones.")
@click.option(
    "--group",
    "groups",
    type=click.Choice(GROUPS),
    multiple=True,
    metavar="NAME",
    help=f"Measure these groups only. One of {', '.join(GROUPS)}.",
)
@click.option(
    "--data-folder", type=click.Path(exists=True, file_okay=False), help="Folder with the data loader's files."
)
@click.option("--anew", is_flag=True, help="Start over even if FILE holds a bench.")
@click.option("--show", is_flag=True, help="Measure nothing; show what FILE holds.")
@output_options
@catalog_options
def command(
    out: Output,
    catalog: Any,
    file: str,
    profile: str,
    device: str,
    gpus: int | None,
    groups: tuple[str, ...],
    data_folder: str | None,
    anew: bool,
    show: bool,
) -> None:
    """Measure memory, matrix products, attention, links, training and serving steps, and judge them.

    FILE keeps each figure as soon as it is measured, so that an interrupted bench resumes where it stopped. No setting
    of the device is changed. Needs PyTorch: pip install 'gpucost[bench]'. The short profile takes under three minutes,
    the full one eight to ten; check measures other shapes, to test a calibrated prediction.

    \b
    gpucost bench
    gpucost bench node7.json --profile full
    gpucost bench node7.json --show
    gpucost calibrate node7.json --save
    """
    from gpucost.bench import verdict
    from gpucost.bench.file import read_bench
    from gpucost.bench.run import bench
    from gpucost.render.bench import document

    measured = (
        read_bench(file)
        if show
        else bench(
            file,
            profile=profile,
            device=device,
            gpus=gpus,
            groups=groups,
            folder=data_folder,
            anew=anew,
            report=_show_progress,
        )
    )
    chip = verdict.accelerator_of(catalog, str(measured["machine"]["device"]))
    # each kind of work beside its peak, machines on record, and published training steps of a known chip
    if chip is None:
        rows = verdict.rows_of(verdict.yardsticks(measured, None, {}))
    else:
        shares = verdict.shares_by_machine(catalog.rows("bench_measurements"), catalog)
        # of machines on record the middle one: what is usual, beside the datasheet's peak
        medians = {key: median(machine_shares) for key, machine_shares in shares.items()}
        sticks = verdict.yardsticks(measured, chip, medians)
        peak = chip.bf16_tflops
        if peak and (fastest_tflops := _training_tflops(catalog, measured, chip)):
            published = [rate / peak for rate in _training_tflops(catalog, None, chip)]
            usual = median(published) if published else None
            sticks.append(verdict.Yardstick("train", "training steps", peak, "TFLOP/s", max(fastest_tflops), usual))
            shares["train"] = published
        rows = verdict.rows_of(sticks, shares)
    findings = verdict.findings(measured, chip, rows)
    if chip is None:
        # the device is not on record, so no peak and no machine stands beside the figures
        findings.insert(0, f"no accelerator on record matches {measured['machine']['device']}: figures only, no peaks")
    gpus = measured["machine"]["gpus"]
    against = " against the datasheet" if chip else ""
    title = f"{f'{gpus} × ' if gpus else ''}{measured['machine']['device']}: measured{against}"
    roof, ranges = verdict.roofline(measured, chip) if chip else [], verdict.ranges_of(measured)
    # for a program: the rows, and beside them the points of the roof
    if out.fields or out.format in ("json", "csv"):
        out.rows(rows, "bench", catalog, findings, title, roofline=roof, ranges=ranges)
        return
    dated = {"as_of": str(catalog.as_of), "catalog_version": catalog.version}
    list_name = "bench sheet" if out.ending == ".xlsx" else "bench"
    page = document(title, rows, roof, ranges, findings, list_name=list_name, **dated)
    if out.is_document:
        from gpucost.render.rows import write_document

        write_document(page, str(out.file))
        return
    from gpucost.render import markdown, text

    out.text(markdown.write(page) if out.format == "md" else text.write(page, all_sections=True), written=True)


def _training_tflops(catalog: Any, bench: Any, chip: Any) -> list[float]:
    """Return model TFLOP/s of a bench's dense 16-bit training steps, or the median of every published source's.

    Published are the rows marked core that were measured on the same chip.
    """
    import numpy as np

    from gpucost.bench import file as rows
    from gpucost.bench import verdict
    from gpucost.calibration import training
    from gpucost.physics.transformer import model_flop

    if bench:
        rows_of_chip = rows.training_rows(bench, chip.id)
    else:
        core_rows = [row for row in catalog.rows("training_measurements") if row["core"] and row["precision"] == "bf16"]
        names = {row["gpu"] for row in core_rows}
        chips = {name: verdict.accelerator_of(catalog, name) for name in names}
        same = {name for name, named_chip in chips.items() if named_chip and named_chip.id == chip.id}
        rows_of_chip = [row for row in core_rows if row["gpu"] in same]
    gathered = training.gather(rows_of_chip, catalog, as_written=True)
    if not gathered.rows:
        return []
    seen = training.observe(gathered)
    # tokens per second times the FLOP of a token: what the model needs, whatever is recomputed
    rates = np.exp(seen.log_measured) * model_flop(seen.case.shape, seen.case.recipe.sequence_tokens) / TERA
    # mixtures of experts route tokens, which is no matter of the chip's products
    dense = [(row.source, rate) for row, rate in zip(gathered.rows, rates, strict=True) if not row.architecture.experts]
    by_source = {name: [rate for source, rate in dense if source == name] for name, _ in dense}
    if bench:
        return [float(rate) for _, rate in dense]
    return [float(median(rates_of_source)) for rates_of_source in by_source.values()]


def _show_progress(done: int, total: int, name: str) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        # carriage return and "erase to the end": the line is written over, cut so that it stays one
        click.echo(f"\r\x1b[K{done} of {total} {name}"[:100] + end, err=True, nl=False)
