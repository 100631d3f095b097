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
from gpucost.refresh.machines import Machine, machines
from gpucost.refresh.source import NOT_READ, Desk, Source, held
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
_PLACE = re.compile(r"(?<!\s)\s+in\s+.*$")
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
        for sku in _skus(desk, SERVICES[service]):
            found = read_sku(sku, is_tpu_service=service != "Compute Engine")
            if found is not None and found.aside:
                option = _USAGES[found.usage][0] if found.usage else None
                row = {
                    "provider": "gcp",
                    "description": sku.get("description"),
                    "option": option,
                    "reason": found.aside,
                }
                aside.extend(
                    {**row, "region": region, "usd_per_hour": found.usd} for region in found.regions or (None,)
                )
            elif found is not None and found.usd is not None:
                for region in found.regions:
                    prices.setdefault((found.part, region, found.usage), set()).add(found.usd)

    desk.each({service: partial(read, service) for service in SERVICES})
    desk.add(joined(prices))
    desk.add(aside, "unknown")


def _skus(desk: Desk, service: str) -> Iterator[Mapping[str, Any]]:
    token, key = "", desk.key(*KEYS)
    for _ in range(_MOST_PAGES):
        more = f"&pageToken={quote(token)}" if token else ""
        url = f"{ADDRESS.format(service=service)}?pageSize=5000{more}"
        page = desk.client.json(url, headers={"x-goog-api-key": key}, most_bytes=64_000_000)
        skus = held(page, "skus", what="a page holds no list of SKUs")
        yield from (sku for sku in skus if isinstance(sku, dict))
        if not (token := str(page.get("nextPageToken") or "")):
            return
    raise UsageError(f"there are more than {_MOST_PAGES} pages, which is not plausible.")


def _part_named(description: str) -> str:
    """Return the part that a SKU's description means, without how and where it runs.

    >>> part_named("Nvidia H100 80GB Plus GPU attached to Spot Preemptible VMs running in Iowa")
    'h100 80gb mega'
    >>> part_named("Commitment v1: A3 Cpu in Iowa for 1 Year"), part_named("Spot Preemptible A3 Instance Core running")
    ('a3 core', 'a3 core')
    >>> part_named("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas")
    'a4 b200 slice'
    >>> part_named("TpuV5e attached to Spot Preemptible VMs running in Iowa"), part_named("TPU7x in Ohio")
    ('tpu v5e', 'tpu v7')
    """
    text = _PLACE.sub("", description.lower())
    if found := _TPU.search(text):
        kind = (found[1] or found[2]).removeprefix("v")
        return f"tpu v{kind.removesuffix('x')}"
    text = _PLACE.sub("", _NOISE.sub(" ", text.replace("(1 gpu slice)", "slice")).rstrip())
    words = text.replace("ssd backed local storage", _SSD).replace("cpu", "core").split()
    words = ["mega" if word == "plus" else word for word in words]
    if (
        words and words[0] == "a3" and words[1:2] in (["mega"], ["ultra"])
    ):  # A3 Mega and A3 Ultra, however it is spelled
        words[:2] = ["a3plus" if words[1] == "mega" else "a3ultra"]
    if "h100" in words:
        words.sort(key=lambda word: word == "mega")
    return " ".join(words)


def usage_of(description: str, label: str) -> str | None:
    """Return how a SKU is paid for: what its description says, else Google's label of the usage; None where they clash.

    >>> usage_of("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Iowa", "OnDemand")
    'spot'
    >>> usage_of("H200 141GB GPU attached to DWS Defined Duration VMs running in Mumbai", "OnDemand")
    'flex start'
    >>> usage_of("Nvidia L4 GPU running in Mumbai", "OnDemand"), usage_of("Nvidia L4 GPU in Mumbai", "Commit1Yr")
    ('on demand', '1 year')
    """
    text, labelled, said = description.lower(), _LABELS.get(label), []
    if "dws defined duration" in text:
        said.append("flex start")
    elif "calendar mode" in text:
        said.append("calendar")
    elif "preemptible" in text or re.search(r"\bspot\b", text):
        said.append("spot")
    if found := re.search(r"\bfor ([13]) years?\b", text):
        said.append("1 year" if found[1] == "1" else "3 years")
    elif re.search(r"\bcommitment v\d", text):
        return labelled if labelled in ("1 year", "3 years") else None
    if len(said) > 1 or (said and labelled not in (None, "on demand", said[0])):
        return None
    return said[0] if said else labelled


def read_sku(sku: Mapping[str, Any], is_tpu_service: bool = False) -> Sku | None:
    """Read one SKU: its part and price, or what keeps it aside; None of what has to do with no accelerator."""
    category, description = sku.get("category") or {}, str(sku.get("description", ""))
    group, text = str(category.get("resourceGroup", "")).upper(), description.lower()
    part = _part_named(description)
    regions = tuple(str(region) for region in sku.get("serviceRegions") or ())
    is_host = part in _hosts()
    is_chip = group in ("GPU", "TPU") or bool(re.search(r"\b(gpus?|tpu)", text)) or part in _chips()
    if not is_chip and not is_host:
        return None
    usage = usage_of(description, str(category.get("usageType")))
    usd, fault = _price(sku)
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


def _price(sku: Mapping[str, Any]) -> tuple[float | None, str]:
    """Return the USD per unit and hour of the last tier, or why there is none."""
    try:
        expression = sku["pricingInfo"][-1]["pricingExpression"]
        money = expression["tieredRates"][-1]["unitPrice"]
        usd = int(money.get("units", 0)) + int(money.get("nanos", 0)) / 1e9
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None, "no price that can be read"
    if money.get("currencyCode") != "USD":
        return None, "not in US dollars"
    if (factor := _UNITS.get(str(expression.get("usageUnit")))) is None:
        return None, "unit not known"
    return usd * factor, ""


@cache
def _chips() -> frozenset[str]:
    return frozenset(machine.accelerator_sku for machine in machines("gcp"))


@cache
def _hosts() -> frozenset[str]:
    kinds = {machine.host_sku for machine in machines("gcp") if machine.host_sku}
    return frozenset({_SSD, *(f"{kind} {what}" for kind in kinds for what in ("core", "ram"))})


def joined(prices: Prices) -> Iterable[dict[str, Any]]:
    """Yield the machines whose every part has a price in a region."""
    places = sorted({(region, usage) for _, region, usage in prices})
    for machine in machines("gcp"):
        for region, usage in places:
            total = _sum(machine, region, usage, prices)
            if total is not None:
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
                    "usd_per_hour": total[0],
                    "vcpus": machine.vcpus or None,
                    "memory_gib": machine.memory_gib or None,
                    "question": "two prices of one part" if total[1] else None,
                }


def _sum(machine: Machine, region: str, usage: str, prices: Prices) -> tuple[float, bool] | None:
    """Return the sum of a machine's parts, the dearest where one has several prices, and whether one has."""
    needed = [(machine.accelerator_sku, float(machine.gpus))]
    if machine.host_sku:
        needed += [(f"{machine.host_sku} core", machine.vcpus), (f"{machine.host_sku} ram", machine.memory_gib)]
        needed += [(_SSD, machine.local_ssd_gib)] if machine.local_ssd_gib else []
    found = [(prices.get((part, region, usage)), count) for part, count in needed]
    if not all(price for price, _ in found):
        return None
    apart = any(max(price or ()) > _SAME_RATIO * min(price or ()) for price, _ in found)
    return sum(max(price or ()) * count for price, count in found), apart


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
