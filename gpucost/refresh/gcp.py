"""The Google Cloud billing catalogue: accelerators, processors, memory and local disks, joined into machines.

    machine = gpus x accelerator + vCPUs x core + GiB x RAM + GiB x local SSD / 730

Each for on demand, spot, flex start, calendar reservations and commitments of one and three years. A machine of which a
part has no price in a region has none there: a host without its accelerators is no offer. TPUs are priced by the chip:
v5e and later among the parts of Compute Engine, v2 to v4 in a service of their own.

How a part is paid for stands in its description. Google's own label of the usage is not enough: spot SKUs of A4 and
those of Dynamic Workload Scheduler are labelled OnDemand.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple
from urllib.parse import quote

from gpucost.errors import UsageError
from gpucost.refresh.machines import machines
from gpucost.refresh.source import NOT_READ, Desk, Source, content_of
from gpucost.units import HOURS_PER_MONTH

ADDRESS = "https://cloudbilling.googleapis.com/v1/services/{service}/skus"
SERVICES = {"Compute Engine": "6F81-5844-456A", "Cloud TPU": "E000-3F24-B8AA"}
KEYS = ("GCP_BILLING_API_KEY", "GOOGLE_API_KEY")
_MOST_PAGES = 100
_USAGES = {  # how a part is paid for -> option, months
    "on demand": ("on_demand", 0),
    "spot": ("spot", 0),
    "flex start": ("flex_start", 0),
    "calendar": ("calendar", 0),
    "1 year": ("commitment", 12),
    "3 years": ("commitment", 36),
}
_LABELS = {"OnDemand": "on demand", "Preemptible": "spot", "Commit1Yr": "1 year", "Commit3Yr": "3 years"}
# words that mark another product than a plain machine
_OTHER = ("sole tenancy", "custom", "suspended", "premium", "windows", "virtual workstation", "subscription")
_BESIDE_ANY_HOST = re.compile(r"\b(t4|p4|p100|v100|k80)\b")  # sold beside a host of one's own choice
# the end of a description: "… running in Iowa"
_PLACE = re.compile(r"(?<!\s)\s+in\s+.*$")
# how and where a part runs, which says nothing of what it is
_NOISE = re.compile(
    r"\b(commitment v\d+:|spot|preemptible|dws|defined duration|calendar mode|reserved|attached to|vms?|running"
    r"|for [13] years?|instance|nvidia|tesla|gpus?)(?!\w)"
)
_SSD = "local ssd"
_TPU = re.compile(r"\btpu[- ]?(v?\d+[a-z]*)|\b(v\d+[a-z]*) tpu\b")
_TPU_DEVICE_CHIPS = 4  # the service of TPUs prices v2 to v4 by their smallest slice, of four chips
_SAME_RATIO = 1.001  # two prices of one part that are as near are one
_UNITS = {"h": 1.0, "GiBy.h": 1.0, "GiBy.mo": 1 / HOURS_PER_MONTH, "mo": 1 / HOURS_PER_MONTH}


class Sku(NamedTuple):
    """What one SKU prices: a part, how it is paid for, in which regions, USD per unit and hour; or why it is none."""

    part: str
    usage: str
    regions: tuple[str, ...]
    usd: float | None
    aside: str = ""


Prices = dict[tuple[str, str, str], set[float]]  # part, region, usage -> USD per unit and hour


def fetch(desk: Desk) -> None:
    """Read every page of SKUs of both services, then join what belongs together."""
    prices: Prices = {}
    aside: list[dict[str, Any]] = []

    def read(service: str) -> None:
        for item in _skus(desk, SERVICES[service]):
            sku = read_sku(item, is_tpu_service=service != "Compute Engine")
            if sku is not None and sku.aside:
                row = {
                    "provider": "gcp",
                    "description": item.get("description"),
                    "option": _USAGES[sku.usage][0] if sku.usage else None,
                    "reason": sku.aside,
                    "usd_per_hour": sku.usd,
                }
                aside.extend({**row, "region": region} for region in sku.regions or (None,))
            elif sku is not None and sku.usd is not None:
                for region in sku.regions:
                    prices.setdefault((sku.part, region, sku.usage), set()).add(sku.usd)

    # without the service of TPUs the machines of the other are whole, and the other way round
    desk.each({service: partial(read, service) for service in SERVICES})
    # parts of both services are there before they are joined
    desk.add(joined(prices))
    desk.add(aside, "unknown")


def _skus(desk: Desk, service: str) -> Iterator[Mapping[str, Any]]:
    token, key = "", desk.key(*KEYS)
    for _ in range(_MOST_PAGES):
        more = f"&pageToken={quote(token)}" if token else ""
        url = f"{ADDRESS.format(service=service)}?pageSize=5000{more}"
        # the key stands in a header: errors and logs name addresses
        page = desk.client.json(url, headers={"x-goog-api-key": key}, most_bytes=64_000_000)
        skus = content_of(page, "skus", fault="a page holds no list of SKUs")
        yield from (sku for sku in skus if isinstance(sku, dict))
        if not (token := str(page.get("nextPageToken") or "")):
            return
    raise UsageError(f"there are more than {_MOST_PAGES} pages, which is not plausible.")


def _part_of(description: str) -> str:
    """Return the part that a SKU's description means, without how and where it runs.

    >>> _part_of("Nvidia H100 80GB Plus GPU attached to Spot Preemptible VMs running in Iowa")
    'h100 80gb mega'
    >>> _part_of("Commitment v1: A3 Cpu in Iowa for 1 Year"), _part_of("Spot Preemptible A3 Instance Core running")
    ('a3 core', 'a3 core')
    >>> _part_of("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas")
    'a4 b200 slice'
    >>> _part_of("TpuV5e attached to Spot Preemptible VMs running in Iowa"), _part_of("TPU7x in Ohio")
    ('tpu v5e', 'tpu v7')
    """
    text = _PLACE.sub("", description.lower())
    if tpu := _TPU.search(text):
        kind = (tpu[1] or tpu[2]).removeprefix("v")
        return f"tpu v{kind.removesuffix('x')}"
    # without its noise a place may stand at the end again: "… Core running in Iowa for 1 Year"
    text = _PLACE.sub("", _NOISE.sub(" ", text.replace("(1 gpu slice)", "slice")).rstrip())
    tokens = text.replace("ssd backed local storage", _SSD).replace("cpu", "core").split()
    tokens = ["mega" if token == "plus" else token for token in tokens]
    if tokens[:2] == ["a3", "mega"]:  # A3 Mega and A3 Ultra, however they are spelled
        tokens[:2] = ["a3plus"]
    elif tokens[:2] == ["a3", "ultra"]:
        tokens[:2] = ["a3ultra"]
    if "h100" in tokens:
        tokens.sort(key=lambda token: token == "mega")
    return " ".join(tokens)


def usage_of(description: str, label: str) -> str | None:
    """Return how a SKU is paid for: what its description says, else Google's label of the usage; None where they clash.

    >>> usage_of("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Iowa", "OnDemand")
    'spot'
    >>> usage_of("H200 141GB GPU attached to DWS Defined Duration VMs running in Mumbai", "OnDemand")
    'flex start'
    >>> usage_of("Nvidia L4 GPU running in Mumbai", "OnDemand"), usage_of("Nvidia L4 GPU in Mumbai", "Commit1Yr")
    ('on demand', '1 year')
    """
    text, labelled, described = description.lower(), _LABELS.get(label), []
    if "dws defined duration" in text:
        described.append("flex start")
    elif "calendar mode" in text:
        described.append("calendar")
    elif "preemptible" in text or re.search(r"\bspot\b", text):
        described.append("spot")
    if term := re.search(r"\bfor ([13]) years?\b", text):
        described.append("1 year" if term[1] == "1" else "3 years")
    elif re.search(r"\bcommitment v\d", text):  # without its years, which the label alone may say
        return labelled if labelled in ("1 year", "3 years") else None
    # of two usages, or one that a label other than the general OnDemand denies, none is believed
    if len(described) > 1 or (described and labelled not in (None, "on demand", described[0])):
        return None
    return described[0] if described else labelled


def read_sku(sku: Mapping[str, Any], is_tpu_service: bool = False) -> Sku | None:
    """Read one SKU: its part and price, or what keeps it aside; None of what has to do with no accelerator."""
    category, description = sku.get("category") or {}, str(sku.get("description", ""))
    group, text = str(category.get("resourceGroup", "")).upper(), description.lower()
    part = _part_of(description)
    regions = tuple(str(region) for region in sku.get("serviceRegions") or ())
    is_host = part in _hosts()
    # Google's group, its words, or a part that a machine here is made of
    is_chip = group in ("GPU", "TPU") or bool(re.search(r"\b(gpus?|tpu)", text)) or part in _chips()
    if not is_chip and not is_host:
        return None
    usage = usage_of(description, str(category.get("usageType")))
    usd, fault = None, ""  # USD per unit and hour of the last tier: the first of some is free
    try:
        expression = sku["pricingInfo"][-1]["pricingExpression"]
        money = expression["tieredRates"][-1]["unitPrice"]
        usd = int(money.get("units", 0)) + int(money.get("nanos", 0)) / 1e9
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        fault = "no price that can be read"
    else:
        factor = _UNITS.get(str(expression.get("usageUnit")))
        if money.get("currencyCode") != "USD":
            fault = "not in US dollars"
        elif factor is None:
            fault = "unit not known"
        usd = None if fault or factor is None else usd * factor
    if is_host:  # part of a host: what is wrong with it shows where its machine has no price
        plain = usage and not fault and not any(word in text for word in (*_OTHER, "reserved"))
        return Sku(part, usage or "", regions, usd) if plain or (usage == "calendar" and not fault) else None
    aside = fault
    if any(word in text for word in _OTHER) or ("reserved" in text and usage != "calendar"):
        aside = "another product than a plain machine"
    elif _BESIDE_ANY_HOST.search(part):
        aside = "sold beside a host of one's own choice"
    elif part not in _chips():
        aside = NOT_READ
    elif usage is None:
        aside = "how it is paid for is not known"
    if not aside and usd is not None and is_tpu_service:
        usd /= _TPU_DEVICE_CHIPS
    return Sku(part, usage or "", regions, usd, aside)


@cache
def _chips() -> frozenset[str]:
    return frozenset(machine.accelerator_sku for machine in machines("gcp"))


@cache
def _hosts() -> frozenset[str]:
    kinds = {machine.host_sku for machine in machines("gcp") if machine.host_sku}
    return frozenset({_SSD, *(f"{kind} {part}" for kind in kinds for part in ("core", "ram"))})


def joined(prices: Prices) -> Iterable[dict[str, Any]]:
    """Yield the machines whose every part has a price in a region."""
    places = sorted({(region, usage) for _, region, usage in prices})
    for machine in machines("gcp"):
        parts = [(machine.accelerator_sku, float(machine.gpus))]
        if machine.host_sku:
            parts += [(f"{machine.host_sku} core", machine.vcpus), (f"{machine.host_sku} ram", machine.memory_gib)]
            parts += [(_SSD, machine.local_ssd_gib)] if machine.local_ssd_gib else []
        for region, usage in places:
            prices_of_parts = [(prices.get((part, region, usage), set()), count) for part, count in parts]
            if not all(usd for usd, _ in prices_of_parts):
                continue
            # the dearest counts where a part has several prices, and the machine is in doubt
            apart = any(max(usd) > _SAME_RATIO * min(usd) for usd, _ in prices_of_parts)
            option, months = _USAGES[usage]
            yield {
                "provider": "gcp",
                "instance_type": machine.name,
                "listed_as": machine.accelerator,
                "gpus": machine.gpus,
                "region": region,
                "option": option,
                "term_months": months,
                "payment": "monthly" if months else "none",
                "usd_per_hour": sum(max(usd) * count for usd, count in prices_of_parts),
                "vcpus": machine.vcpus or None,
                "memory_gib": machine.memory_gib or None,
                "question": "two prices of one part" if apart else None,
            }


SOURCES = (
    Source(
        "gcp",
        "Google Cloud",
        "Compute Engine billing catalogue",
        ADDRESS.format(service=SERVICES["Compute Engine"]),
        fetch,
        keys=KEYS,
        own_list=True,
        describes=True,
    ),
)
