"""Lists of facts: `gpucost gpus`, `systems`, `models` and `sources`."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import click

from gpucost.arguments.kinds import FLAG, GPU, MODEL, PROVIDER, SYSTEM, named, whole
from gpucost.arguments.signature import PLACE
from gpucost.cli.help import GroupedCommand
from gpucost.cli.options import Output, is_setting, output_options, signature_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpucost.catalog import Catalog


# --- Accelerators.

_MOST_BESIDE = 4  # accelerators whose columns one screen holds
_NOT_KNOWN = "not known"
_SPEEDS = (
    "GB/s: measured 'of' a stated peak, or computed; cycles: to the use of a load. `gpucost data sources --table"
    " memory_speeds`."
)
_LINK_TAIL = re.compile(r"[ +].*")  # of a link's name: the switch beside it
# The facts that stand above the memories, and those below: a label and the columns that one cell holds.
_BEFORE = (
    ("chip, year", "architecture", "year"),
    ("multiprocessors", "multiprocessors"),
    ("FP32 cores", "fp32_cores"),
)
_AFTER = (
    ("TFLOP/s fp32 int8", "fp32_tflops", "int8_tflops"),
    ("TFLOP/s bf16 fp8 fp4", "bf16_tflops", "fp8_tflops", "fp4_tflops"),
    ("link", "scaleup_link"),
    ("link GB/s × GPUs", "scaleup_gb_per_s", "scaleup_gpus"),
    ("PCIe GB/s", "pcie_gb_per_s"),
    ("power W", "tdp_w"),
    ("ECC", "ecc"),
    ("MIG instances", "mig_slices"),
    ("street price USD", "street_low_usd", "street_high_usd"),
    ("launch price USD", "launch_usd"),
    ("warranty", "warranty"),
    ("in data centres", "data_centre_use"),
)


def _side_by_side(catalog: "Catalog", rows: "Sequence[Mapping[str, Any]]") -> list[dict[str, Any]]:
    """Return a row per fact and a column per accelerator: what it is, and its memories from the smallest on."""
    from gpucost.catalog.chips import memory_speeds, terms_of

    # of a chip: that of one multiprocessor, times their number
    def total_mib(row: "Mapping[str, Any]", level: str) -> str | None:
        levels = [fact for fact in catalog.rows("memory_hierarchy") if fact["level"] == level]
        matching = [fact for fact in levels if str(row["architecture"]).startswith(fact["architecture"])]
        if not matching or not row["multiprocessors"]:
            return None
        kib_each = matching[0]["kib_per_multiprocessor"]
        return f"{kib_each * row['multiprocessors'] / 1024:.0f} MiB"

    rows = [{**row, **terms_of(catalog, row)} for row in rows]
    speeds = {row["id"]: memory_speeds(catalog, row) for row in rows}
    facts = [_fact(label, rows, *names) for label, *names in _BEFORE]
    # the memories from the smallest on, each with its size where one is on record, then its speeds
    for level in ("registers", "shared memory"):
        facts.append({"what": level, **{row["id"]: total_mib(row, level) for row in rows}})
        facts += _speeds_of(level, rows, speeds)
    facts += _speeds_of("L1", rows, speeds, "L1")
    facts += [_fact("L2 or last cache MB", rows, "l2_mb"), *_speeds_of("L2", rows, speeds)]
    facts += _speeds_of("last cache", rows, speeds, "last cache")
    facts.append(_fact("memory GiB", rows, "memory_gib", "memory_type"))
    # of the device's memory the stated peak is that of its datasheet
    of = {row["id"]: speeds[row["id"]].get("device memory", {}) | {"peak": [row["hbm_gb_per_s"]]} for row in rows}
    facts += _speeds_of("device memory", rows, {id_: {"device memory": peaks} for id_, peaks in of.items()})
    facts += [_fact(label, rows, *names) for label, *names in _AFTER]
    return [fact for fact in facts if any(fact[row["id"]] is not None for row in rows)]


def _fact(label: str, rows: "Sequence[Mapping[str, Any]]", *names: str) -> dict[str, Any]:
    """Return one fact of every chip, of one column or of two in a cell."""
    from gpucost.catalog.chips import is_sold
    from gpucost.render.document import format_value

    def cell(row: "Mapping[str, Any]") -> Any:
        value = row[names[0]]
        if names[0] == "street_low_usd":
            if not is_sold(row):
                return "for rent only"
            return None if value is None else f"{value:,.0f}–{row[names[1]] or value:,.0f}"
        if names[0] in ("ecc", "mig_slices"):
            if value is None or not value:
                return None if value is None else "no"
            return "yes" if names[0] == "ecc" else value
        if names[-1] == "scaleup_gpus":
            return f"{value:g} × {row[names[1]]}" if value else None
        return value if len(names) == 1 else " ".join(format_value(row[name]) for name in names)

    return {"what": label, **{row["id"]: cell(row) for row in rows}}


def _speeds_of(
    level: str, rows: "Sequence[Mapping[str, Any]]", speeds: "Mapping[str, Any]", heading: str = " "
) -> "Iterator[dict[str, Any]]":
    """Give bandwidth and latency of a memory below its size; of one without a size, `heading`, what a source says."""
    of_level = {row["id"]: speeds[row["id"]].get(level, {}) for row in rows}
    written = {
        "GB/s": {id_: _bandwidth(speed) for id_, speed in of_level.items()},
        "cycles": {id_: _span(speed.get("cycles")) or _NOT_KNOWN for id_, speed in of_level.items()},
    }
    for quantity, cells in written.items():
        if not heading.strip() or any(text != _NOT_KNOWN for text in cells.values()):
            yield {"what": f"{heading} {quantity}", **cells}


def _bandwidth(speed: "Mapping[str, list[float]]") -> str:
    """Write what was measured, of which stated peak, else what is computed.

    >>> _bandwidth({"measured": [4862.9], "peak": [8986.0]}), _bandwidth({"computed": [19491.8]}), _bandwidth({})
    ('4,863 of 8,986', '19,492 computed', 'not known')
    """
    measured, peak, computed = (_span(speed.get(name)) for name in ("measured", "peak", "computed"))
    of = " of ".join(filter(None, (measured, peak and (peak if measured else f"peak {peak}"))))
    return of or (f"{computed} computed" if computed else _NOT_KNOWN)


def _span(values: "Sequence[float] | None") -> str:
    """Write the lowest and the highest of what sources say, lowest first: 219–291."""
    return "–".join(dict.fromkeys(f"{value:,.0f}" for value in (values[0], values[-1]))) if values else ""


def _in_lines(rows: "Sequence[Mapping[str, Any]]") -> "Iterator[dict[str, Any]]":
    """Write generations for a person: under the name of their line, each figure with its ratio to the one before."""
    line: tuple[str, str] | None = None
    for row in rows:
        if line != (row["vendor"], row["line"]):
            line = (row["vendor"], row["line"])
            yield dict.fromkeys((*row, "new"), "") | {"generation": row["line"], "year": row["vendor"]}
            before: list[str] = []
        new = [name for name in row["precisions"] if name not in before]
        before = row["precisions"]
        link = "none"
        if row["scaleup_gb_per_s"]:
            name = _LINK_TAIL.sub("", row["scaleup_link"] or "")
            link = f"{name} {_with_ratio(row['scaleup_gb_per_s'], None)}".strip()
        yield {
            **{name: row[name] for name in ("generation", "year", "id", "fp32_cores")},
            "new": " ".join(new) or "–",
            "scaleup_gb_per_s": link,
            **{
                name: _with_ratio(row[name], row[f"{name.split('_')[0]}_ratio"])
                for name in ("half_tflops", "memory_gib", "hbm_gb_per_s", "tdp_w")
            },
        }


def _with_ratio(value: float | None, ratio: float | None) -> str | None:
    """Write a figure and what it is of the generation before.

    >>> _with_ratio(989.4, 989.4 / 312), _with_ratio(79.6, None)
    ('989 ×3.2', '79.6')
    """
    if value is None:
        return None
    return (f"{value:,.0f}" if value >= 100 else f"{value:.3g}") + (f" ×{ratio:.2g}" if ratio else "")


@click.command(name="gpus", cls=GroupedCommand)
@signature_options
@output_options
def gpus(
    catalog: "Catalog",
    out: Output,
    name: Annotated[str | None, GPU, PLACE] = None,
    gpu: Annotated[str | None, GPU, "GPU or family, such as h100; the same as NAME."] = None,
    vendor: Annotated[str | None, named("NAME", "vendors"), "Only this vendor's accelerators."] = None,
    generations: Annotated[bool, FLAG, "A row per generation, with its ratios to the one before."] = False,
    systems: Annotated[bool, FLAG, "Whole machines, such as dgx-h100; by default all that makers sell."] = False,
    switches: Annotated[bool, FLAG, "What torch.compile, FP8, a power limit, ECC, MIG and sparsity gain."] = False,
) -> None:
    """Accelerators: dense peaks, usable memory, links per GPU and direction, power.

    Peaks are dense; sparse_ratio says how much higher the marketed sparse peak is. Empty means unknown. Two to four
    names are shown side by side, with their memories from registers to HBM (size, bandwidth, latency), ECC, MIG, prices
    to buy, warranty and where they may stand: a desktop card beside one of a data centre. --generations
    gives a row per generation of a maker: 16-bit peak, memory, bandwidth, link and power, each with its ratio to the
    generation before, its link and cores, and the precisions that it brought. --systems gives whole machines: PFLOP/s,
    memory, power and price. --switches says what each gains or loses where somebody measured it, else that it is not
    known.

    \b
    gpucost gpus h100
    gpucost gpus h100-sxm,mi300x,b200
    gpucost gpus rtx-4090,h100-pcie
    gpucost gpus --generations --vendor nvidia
    gpucost gpus --systems dgx-a100,dgx-h100,gb200-nvl72
    gpucost gpus --switches h100-sxm
    gpucost gpus --vendor amd --fields id,memory_gib,bf16_tflops --format csv
    """
    from gpucost.catalog.chips import generations as generations_of
    from gpucost.catalog.chips import switches as switches_of
    from gpucost.catalog.chips import whole_systems
    from gpucost.catalog.names import chosen, listed

    if name is not None and gpu is not None and not is_setting("gpu"):
        raise click.UsageError(f"name accelerators either as NAME or with --gpu, not both: {name},{gpu}.")
    gpu_names = name if name is not None else gpu
    if generations + systems + switches > 1:
        raise click.UsageError("--generations, --systems and --switches exclude each other. Choose one.")
    if systems:
        machines = whole_systems(catalog, listed(gpu_names) if gpu_names else ())
        for row in machines if out.is_plain else ():
            # in thousands of USD, as a span
            ends = [row["price_low_usd"], row["price_high_usd"] or row["price_low_usd"]]
            row["price"] = None if ends[0] is None else f"{ends[0] / 1000:,.0f}–{ends[1] / 1000:,.0f}k"
            row |= {kind: row[f"{kind}_pflops"] for kind in ("bf16", "fp8", "fp4")}
        notes = ["Peaks are dense, of all accelerators together; prices in USD, as last seen in the year beside them."]
        out.rows(machines, "gpus systems" if out.is_plain else "gpus systems data", catalog, notes)
        return
    if switches:
        # of one chip only the switches that it has
        chip = None if gpu_names is None else catalog.accelerator(gpu_names).id
        chips = {row["id"]: row for row in catalog.rows("accelerators")}
        effects = switches_of(catalog, None if chip is None else chips[chip])
        for row in effects if out.is_plain else ():
            row["gain"] = _gain(row["low_fraction"], row["high_fraction"]) if row["available"] else "not there"
            if row["changes"] == "memory of each part" and row["low_fraction"] is not None:
                row["gain"] = f"× {1 + row['low_fraction']:.3g}"
        notes = [] if gpu_names is None else catalog.taken(gpu_names)
        notes = [*notes, "Not known: no source on record measured it."]
        out.rows(effects, "gpus switches" if out.is_plain else "gpus switches data", catalog, notes)
        return
    rows = catalog.rows("accelerators") if not generations else generations_of(catalog)
    notes = []
    names = [] if gpu_names is None else listed(gpu_names)
    if gpu_names is not None:
        # a name means all chips of its family; side by side the flagship of each, which is said
        ids_by_name = {part: [chip.id for chip in catalog.accelerators(part)] for part in names}
        beside = out.is_plain and not generations and len(names) > 1
        if beside and all(catalog.flagship(part) or len(ids) == 1 for part, ids in ids_by_name.items()):
            ids, notes = [catalog.accelerator(part).id for part in names], catalog.taken(*names)
        else:
            ids = list(dict.fromkeys(id_ for of_name in ids_by_name.values() for id_ in of_name))
        rows = sorted((row for row in rows if row["id"] in ids), key=lambda row: ids.index(row["id"]))
    rows = chosen(rows, "vendor", vendor, (row["vendor"] for row in catalog.rows("accelerators")))
    if generations:
        out.rows(list(_in_lines(rows)) if out.is_plain else rows, "gpus generations", catalog)
        return
    if out.is_plain and len(names) > 1 and len(rows) <= _MOST_BESIDE:
        columns = ("what", *(f"{row['id']}" for row in rows))
        out.rows(_side_by_side(catalog, rows), columns, catalog, [*notes, _SPEEDS])
        return
    out.rows(rows, "gpus", catalog)


def _gain(low: float | None, high: float | None) -> str:
    """Write a gain or a loss with its ends.

    >>> _gain(0.157, 0.272), _gain(-0.0625, -0.0625), _gain(0, 0), _gain(None, None)
    ('+16% to +27%', '-6%', 'none', 'not known')
    """
    if low is None or high is None:
        return "not known"
    ends = dict.fromkeys(f"{end:+.0%}" if end else "none" for end in (low, high))
    return " to ".join(ends)


# --- Nodes, instances and racks.


@click.command(name="systems", cls=GroupedCommand)
@signature_options
@output_options
def systems(
    catalog: "Catalog",
    out: Output,
    name: Annotated[str | None, SYSTEM, PLACE] = None,
    gpu: Annotated[str | None, GPU, "Only systems with this GPU or family."] = None,
    provider: Annotated[str | None, PROVIDER, "Only this provider's instances."] = None,
) -> None:
    """Nodes, instances and racks: how many GPUs, how they are linked, and by which network nodes meet.

    Links are per GPU and one direction; an empty network means that none is known.

    \b
    gpucost data systems p5.48xlarge
    gpucost data systems --gpu h100-sxm
    """
    from gpucost.catalog.names import chosen, listed

    rows = catalog.rows("systems")
    if name is not None:
        # a name may mean several machines: all of them are listed
        ids = {match.id for part in listed(name) for match in catalog.systems(part)}
        rows = [row for row in rows if row["id"] in ids]
    if gpu is not None:
        gpus = {match.id for part in listed(gpu) for match in catalog.accelerators(part)}
        rows = [row for row in rows if row["accelerator_id"] in gpus]
    rows = chosen(rows, "provider", provider, (row["provider"] for row in catalog.rows("systems") if row["provider"]))
    out.rows(rows, "systems", catalog)


# --- Architectures, presets or not, with their parameters counted.


@click.command(name="models", cls=GroupedCommand)
@signature_options
@output_options
def models(
    catalog: "Catalog",
    out: Output,
    name: Annotated[str | None, MODEL, PLACE] = None,
    family: Annotated[str | None, named("NAME", "families"), "Only this family, such as 'Llama 3.1'."] = None,
    context: Annotated[int, whole(1, 1_000_000_000, "TOKENS"), "Tokens of the sequence whose cache is counted."] = 8192,
) -> None:
    """Model architectures. NAME is a preset, a size such as 11b, or the path of a config.json or params.json.

    Parameters are counted from the layers, with the published figures beside them. The cache is that of one sequence
    at 16 bits, without recurrent state; weights are those of the language model in the format of the file. A size
    without a preset becomes a plausible dense architecture with the status `synthesised`. A single match is shown
    line by line.

    \b
    gpucost models llama-3
    gpucost models 11b
    gpucost models ./config.json --context 128000 --format json
    """
    from gpucost.catalog.models import model_rows
    from gpucost.catalog.names import chosen

    architectures = catalog.architectures(name)
    # where NAME narrows the rows, a family of other presets is known too: the error says that none of these has it
    families = () if family is None or name is None else (preset.family for preset in catalog.presets)
    rows = chosen(model_rows(catalog, architectures, context), "family", family, families)
    warnings = [f"{item.name}: {text}" for item in architectures for text in item.warnings]
    if name is not None and len(rows) == 1 and out.is_plain:
        from gpucost.render.document import cell_text, columns_of, head_text

        # a line per column of the list, so that a narrow terminal drops none
        facts = [{"what": head_text(column), "value": cell_text(rows[0], column)} for column in columns_of("models")]
        out.rows(facts, ("what", "value"), catalog, warnings)
        return
    out.rows(rows, "models", catalog, warnings)


# --- Sources.


@click.command(name="sources", cls=GroupedCommand)
@signature_options
@output_options
def sources(
    catalog: "Catalog",
    out: Output,
    source_id: Annotated[str | None, named("NAME", "sources"), PLACE] = None,
    table: Annotated[str | None, named("NAME", "tables"), "Only the sources of one table, such as offers."] = None,
) -> None:
    """Sources of the facts: who published what, where and when, and how many rows use each.

    \b
    gpucost data sources --table accelerators
    gpucost data sources --format csv -o sources.csv
    """
    from gpucost.catalog.shipped import source_rows

    rows = source_rows(catalog.laid, table)
    if source_id:
        catalog.source(source_id)
        rows = [row for row in rows if row["source_id"] == source_id]
    out.rows(rows, "sources", catalog)
