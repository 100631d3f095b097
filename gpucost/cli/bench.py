"""`gpucost bench`: what this machine's GPUs attain, against their datasheets and machines on record."""

import sys
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from gpucost.bench.cases import GROUPS, PROFILES
from gpucost.cli.options import Output, catalog_options, output_options, own_options
from gpucost.units import TERA

if TYPE_CHECKING:
    from gpucost.render.document import Document


@click.command(name="bench")
@own_options("bench", groups=GROUPS, profiles=PROFILES)
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

    FILE keeps every figure as soon as it is there: a bench that was cut short goes on where it stopped. Nothing of
    the device is set. Needs PyTorch: pip install 'gpucost[bench]'. The short profile takes under three minutes, the
    full one eight to ten; check measures other shapes, to hold a calibrated prediction against.

    \b
    gpucost bench
    gpucost bench node7.json --profile full
    gpucost bench node7.json --show
    gpucost calibrate node7.json --save
    """
    from gpucost.bench import verdict
    from gpucost.bench.run import bench, read_bench
    from gpucost.render.bench import COLUMNS, SHEET, document

    found = (
        read_bench(file)
        if show
        else bench(
            file, profile=profile, device=device, gpus=gpus, groups=groups, folder=data_folder, anew=anew, report=_say
        )
    )
    chip = verdict.accelerator_of(catalog, str(found["machine"]["device"]))
    rows = _judged(catalog, found, chip)
    told = verdict.findings(found, chip, rows)
    if chip is None:
        told.insert(0, f"no accelerator on record is called {found['machine']['device']}: figures only, no peaks")
    gpus = found["machine"]["gpus"]
    against = " against the datasheet" if chip else ""
    title = f"{f'{gpus} × ' if gpus else ''}{found['machine']['device']}: measured{against}"
    roof, ranges = verdict.roofline(found, chip) if chip else [], verdict.ranges_of(found)
    if out.fields or out.format in ("json", "csv"):
        out.rows(rows, COLUMNS, catalog, told, title, roofline=roof, ranges=ranges)
        return
    dated = {"as_of": str(catalog.as_of), "catalog_version": catalog.version}
    shown = SHEET if out.ending == ".xlsx" else COLUMNS
    _write(out, document(title, rows, roof, ranges, told, shown=shown, **dated))


def _judged(catalog: Any, found: Any, chip: Any) -> list[dict[str, Any]]:
    """Return each kind of work beside its peak, machines on record, and published training steps of a known chip."""
    from gpucost.bench import verdict

    if chip is None:
        return verdict.rows_of(verdict.yardsticks(found, None, {}))
    shares = verdict.shares_by_machine(catalog.rows("bench_measurements"), catalog)
    sticks = verdict.yardsticks(found, chip, {key: median(known) for key, known in shares.items()})
    if chip.bf16_tflops and (own := _training_tflops(catalog, found, chip)):
        published = [rate / chip.bf16_tflops for rate in _training_tflops(catalog, None, chip)]
        usual = median(published) if published else None
        sticks.append(verdict.Yardstick("train", "training steps", chip.bf16_tflops, "TFLOP/s", max(own), usual))
        shares["train"] = published
    return verdict.rows_of(sticks, shares)


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
        asked = rows.training_rows(bench, chip.id)
    else:
        known = [row for row in catalog.rows("training_measurements") if row["core"] and row["precision"] == "bf16"]
        names = {row["gpu"] for row in known}
        same = {name for name in names if (other := verdict.accelerator_of(catalog, name)) and other.id == chip.id}
        asked = [row for row in known if row["gpu"] in same]
    found = training.gather(asked, catalog)
    if not found.rows:
        return []
    seen = training.observe(found)
    rates = np.exp(seen.log_measured) * model_flop(seen.case.shape, seen.case.recipe.sequence_tokens) / TERA
    dense = [(row.source, rate) for row, rate in zip(found.rows, rates, strict=True) if not row.architecture.experts]
    by_source = {name: [rate for source, rate in dense if source == name] for name, _ in dense}
    return [float(rate) for _, rate in dense] if bench else [float(median(found)) for found in by_source.values()]


def _write(out: Output, made: "Document") -> None:
    """Write a document as a page or a workbook, as Markdown or on the terminal."""
    from gpucost.render import markdown, text

    if out.is_document:
        from gpucost.render.rows import write_document

        write_document(made, str(out.file))
    else:
        made_text = markdown.write(made) if out.format == "md" else text.write(made, all_sections=True)
        out.text(made_text, written=True)


def _say(done: int, whole: int, name: str) -> None:
    """Show progress on a terminal."""
    if sys.stderr.isatty():
        end = "\n" if done == whole else ""
        click.echo(f"\r\x1b[K{done} of {whole} {name}"[:100] + end, err=True, nl=False)
