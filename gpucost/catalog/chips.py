"""What the tables say of chips beyond their own rows: how fast each memory is, and generations in their order."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucost.units import GB, GIB, MILLI

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

FLOP_OF_FMA, BYTES_OF_FMA = 2, 12  # a multiply-add in FP32, and its three operands
_PRECISIONS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")
# figures that a generation is held against the one before by
_COMPARED = ("half_tflops", "memory_gib", "hbm_gb_per_s", "scaleup_gb_per_s", "tdp_w")


def is_sold(chip: Mapping[str, Any]) -> bool:
    """Tell whether a chip can be bought: of one that is only rented, a price on record is somebody's estimate."""
    # the table says so in words beside the source of the price
    return not str(chip["street_source"] or "").endswith("rent only")


def memory_speeds(catalog: "Catalog", chip: Mapping[str, Any]) -> dict[str, dict[str, list[float]]]:
    """Return per memory of a chip what sources say, lowest first: cycles, GB/s measured, stated as peaks and computed.

    A bandwidth is computed as bytes per clock and multiprocessor × multiprocessors × clock, that of registers as the
    three operands of 4 bytes that each FP32 multiply-add (two FLOP) reads at the peak; what no source says is an empty
    list.
    """
    speeds: dict[str, dict[str, list[float]]] = {}
    if chip["fp32_tflops"]:
        # TFLOP ÷ 2 are multiply-adds, × 12 bytes are TB, ÷ MILLI are GB per second
        speeds["registers"] = {"computed": [chip["fp32_tflops"] / FLOP_OF_FMA * BYTES_OF_FMA / MILLI]}
    for row in catalog.rows("memory_speeds"):
        if row["accelerator_id"] != chip["id"]:
            continue
        level = speeds.setdefault(row["level"], {"cycles": [], "measured": [], "peak": [], "computed": []})
        per_clock, clock, units = row["bytes_per_clock"], row["clock_mhz"], chip["multiprocessors"]
        computed = per_clock * units * clock * MILLI if per_clock and units and clock else None  # MHz to GHz
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
        # data-centre chips and cards of one maker are lines of their own
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
    terms: dict[str, Any] = max(rows, key=lambda row: len(row["begins"] or ""), default={})
    months = terms.get("warranty_months")
    return {
        "fp32_cores": cores_of(catalog.accelerator(str(chip["id"]))),
        "warranty": None if not months else f"{months / 12:g} years ({terms['warranty_by']})",
        "data_centre_use": terms.get("data_centre_use"),
    }


# --- Whole machines, and what switches of software and hardware gain or lose.

_OF_MAKERS = ("node", "rack", "pod")  # kinds of systems that are bought; instances of clouds are rented


def whole_systems(catalog: "Catalog", names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what each machine has in all: dense peaks, memory, bandwidth, power and price, in the order of names.

    Without names those that a maker sells, by year of their chip. A peak that a chip has not is None.
    """
    facts = {row["id"]: row for row in catalog.rows("accelerators")}
    rows = {row["id"]: row for row in catalog.rows("systems")}
    if names:
        machines = []
        for name in names:
            systems = catalog.systems(name)
            of_makers = [system for system in systems if system.kind in _OF_MAKERS]
            # the instances of clouds only where no maker has a machine of that name
            machines += [rows[system.id] for system in of_makers or systems]
    else:
        # one without a price is no machine that one could buy by this list
        machines = [row for row in rows.values() if row["kind"] in _OF_MAKERS and row["price_low_usd"]]
        machines.sort(key=lambda row: (facts[row["accelerator_id"]]["year"], row["id"]))
    totals = []
    for row in machines:
        chip, gpus = facts[row["accelerator_id"]], row["gpus"]
        peaks = {kind: chip[f"{kind}_tflops"] for kind in ("bf16", "fp8", "fp4")}
        bandwidth = chip["hbm_gb_per_s"]
        totals.append(
            {
                "id": row["id"],
                "name": row["name"],
                "accelerator_id": row["accelerator_id"],
                "gpus": gpus,
                **{f"{kind}_pflops": None if peak is None else peak * gpus * MILLI for kind, peak in peaks.items()},
                "memory_gb": None if chip["memory_gib"] is None else chip["memory_gib"] * gpus * (GIB / GB),
                "hbm_gb_per_s": None if bandwidth is None else bandwidth * gpus,
                "max_power_kw": row["max_power_kw"],
                "price_low_usd": row["price_low_usd"],
                "price_high_usd": row["price_high_usd"],
                "price_observed": row["price_observed"],
                "source_id": row["source_id"],
            }
        )
    return totals


class _Switch(NamedTuple):
    """Something that one turns on: what it changes, and the command that shows it."""

    name: str
    changes: str
    shown_by: str


_SWITCHES = (
    _Switch("torch.compile", "training speed", ""),
    _Switch("FP8 training", "training speed", "throughput --precision fp8"),
    _Switch("activation checkpointing", "training speed", "throughput --recompute full"),
    _Switch("power limit", "training speed", "tco --set power_cap_fraction=0.8"),
    _Switch("ECC", "usable memory", "gpus NAME"),
    _Switch("MIG", "memory of each part", "fit --serving --gpu NAME"),
    _Switch("2:4 sparsity", "peak on the datasheet", "audit --tflops N --sparse"),
    _Switch("2:4 sparsity", "training speed", ""),
)


def switches(catalog: "Catalog", chip: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return what each switch gains or loses as a fraction, by what was measured or stated; None where nobody knows.

    Of one chip its own facts speak too: whether it has ECC, how many MIG instances, which sparse peak.
    """
    facts = catalog.rows("switches")
    rows = []
    for switch in _SWITCHES:
        known = [row for row in facts if (row["switch"], row["changes"]) == (switch.name, switch.changes)]
        memory = "" if chip is None else str(chip["memory_type"])
        # ECC takes room from GDDR and none from HBM, which holds it beside
        known = [row for row in known if not row["memory"] or not memory or memory.startswith(row["memory"])]
        row: dict[str, Any] = {
            "switch": switch.name,
            "changes": switch.changes,
            "low_fraction": min((row["low_ratio"] - 1 for row in known), default=None),
            "high_fraction": max((row["high_ratio"] - 1 for row in known), default=None),
            "available": True,
            "basis": known[0]["basis"] if known else "not known",
            "seen_on": "; ".join(row["seen_on"] for row in known),
            "source_ids": [row["source_id"] for row in known],
            "shown_by": switch.shown_by,
        }
        if chip is not None:
            # what the chip has is a fact of its datasheet, whatever was measured elsewhere
            stated: dict[str, Any] = {"basis": "datasheet", "source_ids": [chip["source_id"]]}
            lacks = False
            if (switch.name, switch.changes) == ("2:4 sparsity", "peak on the datasheet"):
                gain = (chip["sparse_ratio"] or 1) - 1
                row |= {**stated, "low_fraction": gain, "high_fraction": gain, "seen_on": chip["id"]}
                lacks = not gain
            elif switch.name == "MIG":
                row["seen_on"] = f"up to {chip['mig_slices']} parts of {chip['id']}"
                lacks = not chip["mig_slices"]
            elif switch.name == "ECC":
                lacks = chip["ecc"] == 0
            elif switch.name == "FP8 training":
                lacks = not chip["fp8_tflops"]
            if lacks:
                none = {"available": False, "low_fraction": None, "high_fraction": None}
                row |= {**stated, **none, "seen_on": f"{chip['id']} has none"}
        rows.append(row)
    return rows
