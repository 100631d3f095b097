"""What the tables say of chips beyond their own rows: how fast each memory is, and generations in their order."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpucost.units import MILLI

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

FLOP_OF_FMA, BYTES_OF_FMA = 2, 12  # a multiply-add in FP32, and its three operands
_PRECISIONS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")
_COMPARED = ("half_tflops", "memory_gib", "hbm_gb_per_s", "scaleup_gb_per_s", "tdp_w")


def memory_speeds(catalog: "Catalog", chip: Mapping[str, Any]) -> dict[str, dict[str, list[float]]]:
    """Return per memory of a chip what sources say, lowest first: cycles, GB/s measured, stated as peaks and computed.

    A bandwidth is computed as bytes per clock and multiprocessor × multiprocessors × clock, that of registers as the
    three operands of 4 bytes that each FP32 multiply-add (two FLOP) reads at the peak; what no source says is an empty
    list.
    """
    speeds: dict[str, dict[str, list[float]]] = {}
    if chip["fp32_tflops"]:
        speeds["registers"] = {"computed": [chip["fp32_tflops"] / FLOP_OF_FMA * BYTES_OF_FMA / MILLI]}
    for row in catalog.rows("memory_speeds"):
        if row["accelerator_id"] != chip["id"]:
            continue
        level = speeds.setdefault(row["level"], {"cycles": [], "measured": [], "peak": [], "computed": []})
        each, clock, units = row["bytes_per_clock"], row["clock_mhz"], chip["multiprocessors"]
        computed = each * units * clock * MILLI if each and units and clock else None
        for name, value in (
            ("cycles", row["latency_cycles"]),
            (row["basis"], row["gb_per_s"]),
            ("computed", computed),
        ):
            if value is not None:
                level[name] = sorted((*level[name], value))
    return speeds


def generations(catalog: "Catalog") -> list[dict[str, Any]]:
    """Return a row per generation in the order of launches, with its chip's figures ÷ those of the one before.

    The 16-bit peak is bf16, fp16 before it; the first of a line, and what is not known or nought, has no ratio.
    """
    from gpucost.physics.hardware import cores_of, half_precision, peak

    chips = {chip.id: chip for chip in catalog.accelerators()}
    facts = {row["id"]: row for row in catalog.rows("accelerators")}
    chips_of_rows = [(facts[row["accelerator_id"]], row) for row in catalog.rows("generations")]
    before: dict[tuple[str, str], dict[str, Any]] = {}
    rows = []
    for fact, row in sorted(chips_of_rows, key=lambda pair: (pair[0]["vendor"], pair[1]["line"], pair[0]["year"])):
        chip = chips[fact["id"]]
        half = half_precision(chip)
        values = {**fact, "half_tflops": peak(chip, half).tflops if fact[f"{half}_tflops"] else None}
        last = before.get((fact["vendor"], row["line"]), {})
        before[fact["vendor"], row["line"]] = values
        rows.append(
            {
                "vendor": fact["vendor"],
                "line": row["line"],
                "generation": row["generation"],
                "id": fact["id"],
                "year": fact["year"],
                "half_precision": half if values["half_tflops"] else None,
            }
            | {name: values[name] for name in (*_COMPARED, "scaleup_link", "memory_type", "launch_usd")}
            | {"precisions": [name for name in _PRECISIONS if fact[f"{name}_tflops"]], "fp32_cores": cores_of(chip)}
            | {f"{name.split('_')[0]}_ratio": _ratio(values[name], last.get(name)) for name in _COMPARED}
            | {"source_id": fact["source_id"]}
        )
    return rows


def _ratio(value: float | None, before: float | None) -> float | None:
    return value / before if value and before else None


def terms_of(catalog: "Catalog", chip: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a maker's terms say of a chip, by the longest beginning of its name, and its FP32 cores."""
    from gpucost.physics.hardware import cores_of

    rows = [
        row
        for row in catalog.rows("product_terms")
        if row["vendor"] == chip["vendor"] and str(chip["id"]).startswith(row["begins"] or "")
    ]
    found: dict[str, Any] = max(rows, key=lambda row: len(row["begins"] or ""), default={})
    months = found.get("warranty_months")
    return {
        "fp32_cores": cores_of(catalog.accelerator(str(chip["id"]))),
        "warranty": None if not months else f"{months / 12:g} years ({found['warranty_by']})",
        "data_centre_use": found.get("data_centre_use"),
    }
