"""The screen of `gpucost prices`: who sells a GPU, in which machine, for how much, and when that was seen."""

import re
from collections.abc import Sequence

from gpucost.options import OPTIONS
from gpucost.render.document import Column, Document, Fact, KeyFigures, Paragraph, Row, Section, Table, day_in_year
from gpucost.render.wording import chip_label, option_text

_LETTERS = 15  # of a name on a screen
_PREFIX = re.compile(r"^(Standard_|NVIDIA )")
_COUNTED = re.compile(r"\d+x |$")  # what a machine is called that its seller gives no name: 8x H100

_TERMS = re.compile(r" use| plan| tier| tenancy|on demand, ")  # what an option is called in full


def machine_label(name: str) -> str:
    """Write a machine's name as its seller shortens it, cut where it would push other columns off a screen.

    >>> machine_label("p5.48xlarge"), machine_label("Standard_ND96isr_H100_v5"), machine_label("GB200 NVL72 (4 GPUs)")
    ('p5.48xlarge', 'ND96isr H100 v5', 'GB200 NVL72 (4…')
    """
    # Azure itself writes ND96isr H100 v5 with blanks; gpu_8x_h100_sxm5 of others is what one types
    short = _PREFIX.sub("", name)
    return _cut(short.replace("_", " ") if short != name else short)


def _cut(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"


_COLUMNS = (
    Column("seller"),
    Column("machine", right=True),
    Column("name", "called", priority=2),
    Column("terms", "option"),
    Column("per GPU", "$/GPU-h", right=True),
    Column("whole", "$/h", right=True, priority=1),
    Column("seen", right=True),
    Column("region", "cheapest in", priority=2),
)


def offers_screen(
    rows: Sequence[Row], sellers: int, old: int, gpu: str | None, as_of: str, version: str, notes: Sequence[str]
) -> Document:
    """Return the first of so many rows, one for each seller, chip and option, of which some are old for their kind."""
    cells = [
        {
            "seller": row["seller"],
            "machine": f"{row['gpus']:,} × {chip_label(row['gpu'])}",
            "name": None if _COUNTED.match(row["instance_type"] or "") else machine_label(row["instance_type"]),
            "terms": _TERMS.sub("", option_text(row["option"], row["term_months"] or 0)),
            "per GPU": f"{row['usd_per_gpu_hour']:,.2f}",
            "whole": f"{row['usd_per_gpu_hour'] * row['gpus']:,.2f}",
            "seen": day_in_year(str(row["observed_on"]), as_of),
            "region": _cut(row["region"]) if row["region"] else None,
        }
        for row in rows
    ]
    name = f"Rent of {gpu or 'GPUs'}, cheapest first"
    facts = [Fact("Prices", "US dollars an hour, without tax: of one GPU, and of the whole machine.")]
    if old:  # they stand last whatever they cost, and the reader is told why
        limits = f"spot after {OPTIONS['spot'].age_limit_days} days, lists after {OPTIONS['on_demand'].age_limit_days}"
        facts.append(Fact("Old", f"{old} of {sellers}, last in the list: {limits}."))
    ask = f"All {sellers}: --limit {sellers} · every offer: --all · also --option, --region, --by"
    return Document(
        name,
        (Section("", blocks := (Table(_COLUMNS, cells), KeyFigures(tuple(facts)), Paragraph(ask))),),
        screen=blocks,
        name=name,
        as_of=as_of,
        catalog_version=version,
        kind="prices",
        warnings=tuple(notes),
    )
