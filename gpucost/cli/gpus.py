"""`gpucost gpus`: accelerators and what is known of them."""

from typing import TYPE_CHECKING, Any

import click

from gpucost.cli.options import Output, envelope, list_options, output_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpucost.catalog import Catalog

COLUMNS = (
    "id", "vendor:5", "form_factor:6", "year:7", "memory_gib=memory:1", "hbm_gb_per_s=bandwidth:2", "bf16_tflops=bf16",
    "fp8_tflops=fp8:4",
    "fp4_tflops=fp4:6", "scaleup_gb_per_s=link:4", "scaleup_gpus=domain:6", "tdp_w=power:3", "confidence:5",
    "source_id:8",
)  # fmt: skip
GENERATIONS = (
    "generation", "year=launch", "id=chip:1", "half_tflops=TFLOP/s", "memory_gib=GiB", "hbm_gb_per_s=GB/s",
    "scaleup_gb_per_s=link GB/s:2", "tdp_w=W",
)  # fmt: skip
_MOST_BESIDE = 4
NOT_KNOWN = "not known"
SPEEDS = (
    "Cycles: of the chip's clock, from a load to its use. GB/s: measured, 'of' a stated peak; computed as bytes per "
    "clock × multiprocessors × clock. Ranges span the sources: `gpucost sources --table memory_speeds`."
)
_BESIDE = (
    "vendor", "architecture", "year", "form_factor", "multiprocessors", "memory_gib", "memory_type",
    "hbm_gb_per_s", "l2_mb",
    "bf16_tflops", "fp8_tflops", "fp4_tflops", "scaleup_link", "scaleup_gb_per_s", "scaleup_gpus", "pcie_gb_per_s",
    "tdp_w",
)  # fmt: skip


def beside(catalog: "Catalog", rows: "Sequence[Mapping[str, Any]]") -> list[dict[str, Any]]:
    """Return a row per fact and a column per accelerator: what it is, and its memories from the smallest on."""
    from gpucost.catalog.chips import memory_speeds
    from gpucost.render.numbers import heading_of, measure_of, short_unit

    def total_mib(row: "Mapping[str, Any]", level: str) -> str | None:
        known = [fact for fact in catalog.rows("memory_hierarchy") if fact["level"] == level]
        found = [fact for fact in known if str(row["architecture"]).startswith(fact["architecture"])]
        if not found or not row["multiprocessors"]:
            return None
        each = found[0]["kib_per_multiprocessor"]
        return f"{each * row['multiprocessors'] / 1024:.0f} MiB"

    facts: list[dict[str, Any]] = []
    speeds = {row["id"]: memory_speeds(catalog, row) for row in rows}
    for name in _BESIDE:
        if name == "memory_gib":  # the memories, from the smallest on
            for level in ("registers", "shared memory"):
                facts.append({"what": level, **{row["id"]: total_mib(row, level) for row in rows}})
                facts += _speeds_of(level, rows, speeds)
            facts += _speeds_of("L1", rows, speeds)
            facts.append({"what": "L2 or last cache (MB)", **{row["id"]: row["l2_mb"] for row in rows}})
            facts += [*_speeds_of("L2", rows, speeds), *_speeds_of("last cache", rows, speeds)]
        if name != "l2_mb":
            unit = short_unit(measure_of(name))
            words = f"{heading_of(name)} ({unit})" if unit else heading_of(name)
            facts.append({"what": words, **{row["id"]: row[name] for row in rows}})
        if name == "hbm_gb_per_s":
            facts += _speeds_of("device memory", rows, speeds)
    return [fact for fact in facts if any(fact[row["id"]] is not None for row in rows)]


def _speeds_of(
    level: str, rows: "Sequence[Mapping[str, Any]]", speeds: "Mapping[str, Any]"
) -> "Iterator[dict[str, Any]]":
    """Give bandwidth and latency of a memory; one that only some chips have, where a source speaks of it."""
    found = {row["id"]: speeds[row["id"]].get(level, {}) for row in rows}
    if level in ("L1", "last cache") and not any(found.values()):
        return
    yield {"what": f"  {level} GB/s", **{id_: _bandwidth(said) for id_, said in found.items()}}
    yield {"what": f"  {level} cycles", **{id_: _span(said.get("cycles")) or NOT_KNOWN for id_, said in found.items()}}


def _bandwidth(said: "Mapping[str, list[float]]") -> str:
    """Write what was measured, of which stated peak, else what is computed.

    >>> _bandwidth({"measured": [4862.9], "peak": [8986.0]}), _bandwidth({"computed": [19491.8]}), _bandwidth({})
    ('4,863 of 8,986', '19,492 computed', 'not known')
    """
    measured, peak, computed = (_span(said.get(name)) for name in ("measured", "peak", "computed"))
    of = " of ".join(filter(None, (measured, peak and (peak if measured else f"peak {peak}"))))
    return of or (f"{computed} computed" if computed else NOT_KNOWN)


def _span(values: "Sequence[float] | None") -> str:
    """Write the lowest and the highest of what sources say, lowest first: 219–291."""
    return "–".join(dict.fromkeys(f"{value:,.0f}" for value in (values[0], values[-1]))) if values else ""


def _in_lines(rows: "Sequence[Mapping[str, Any]]") -> "Iterator[dict[str, Any]]":
    """Write generations for a person: under the name of their line, each figure with its ratio to the one before."""
    line = None
    for row in rows:
        if line != (line := (row["vendor"], row["line"])):
            yield dict.fromkeys(row, "") | {"generation": row["line"], "year": row["vendor"]}
        yield {name: row[name] for name in ("generation", "year", "id")} | {
            name: _with_ratio(row[name], row[f"{name.split('_')[0]}_ratio"])
            for name in ("half_tflops", "memory_gib", "hbm_gb_per_s", "scaleup_gb_per_s", "tdp_w")
        }


def _with_ratio(value: float | None, ratio: float | None) -> str | None:
    """Write a figure and what it is of the generation before.

    >>> _with_ratio(989.4, 989.4 / 312), _with_ratio(79.6, None)
    ('989 ×3.2', '79.6')
    """
    if value is None:
        return None
    return (f"{value:,.0f}" if value >= 100 else f"{value:.3g}") + (f" ×{ratio:.2g}" if ratio else "")


@click.command(name="gpus")
@list_options("gpus")
@output_options
def command(
    catalog: "Catalog", out: Output, name: str | None, gpu: str | None, vendor: str | None, generations: bool
) -> None:
    """Accelerators: dense peaks, usable memory, links per GPU and direction, power.

    Peaks are dense; sparse_ratio says how much higher the marketed sparse peak is. Empty is unknown. Two to four names
    stand side by side, with their memories from registers to HBM: size, bandwidth, latency. --generations gives a row
    per generation of a maker: its chip's 16-bit peak, memory, bandwidth, link and power, each against the one before.

    \b
    gpucost gpus h100
    gpucost gpus h100-sxm,mi300x,b200
    gpucost gpus --generations --vendor nvidia
    gpucost gpus --vendor amd --fields id,memory_gib,bf16_tflops --format csv
    """
    from gpucost.catalog.chips import generations as generations_of
    from gpucost.catalog.filters import chosen, listed

    rows = catalog.rows("accelerators") if not generations else generations_of(catalog)
    asked = name if name is not None else gpu
    if asked is not None:
        wanted = {found.id for part in listed(asked) for found in catalog.accelerators(part)}
        rows = [row for row in rows if row["id"] in wanted]
    rows = chosen(rows, "vendor", vendor)
    plain = out.format == "table" and not out.fields and not out.is_document
    if generations:
        out.rows(list(_in_lines(rows)) if plain else rows, GENERATIONS, envelope(catalog))
        return
    if plain and asked is not None and len(listed(asked)) > 1 and len(rows) <= _MOST_BESIDE:
        facts, names = beside(catalog, rows), [f"{row['id']}" for row in rows]
        out.rows(facts, ("what", *names), envelope(catalog, [SPEEDS]))
        return
    out.rows(rows, COLUMNS, envelope(catalog))
