"""RunPod's GPU types: secure and community prices of one GPU, and their spot prices, by GraphQL."""

import json
from typing import Any

from gpucost.refresh.source import NOT_READ, Desk, Source, content_of

ADDRESS = "https://api.runpod.io/graphql"
KEYS = ("RUNPOD_API_KEY",)
QUERY = (
    "query { gpuTypes { id displayName memoryInGb secureCloud communityCloud securePrice communityPrice"
    " secureSpotPrice communitySpotPrice oneMonthPrice threeMonthPrice sixMonthPrice } }"
)
# field of the answer -> option, tier, months
_PRICES = {
    "securePrice": ("on_demand", "secure", 0),
    "communityPrice": ("community", "community", 0),
    "secureSpotPrice": ("spot", "secure", 0),
    "communitySpotPrice": ("spot", "community", 0),
    "oneMonthPrice": ("savings_plan", "secure", 1),
    "threeMonthPrice": ("savings_plan", "secure", 3),
    "sixMonthPrice": ("savings_plan", "secure", 6),
}


def fetch(desk: Desk) -> None:
    """Ask for every type."""
    headers = {"authorization": f"Bearer {desk.key(*KEYS)}", "content-type": "application/json"}
    body = json.dumps({"query": QUERY})
    answer = desk.client.json(ADDRESS, method="POST", headers=headers, content=body, most_bytes=16_000_000)
    types = content_of(answer, "data", "gpuTypes", fault="the answer holds no GPU types")
    rows, nameless = [], []
    for item in types:
        if not isinstance(item, dict) or not _names_agree(item):
            nameless.append({"provider": "runpod", "description": str(item)[:200], "reason": NOT_READ})
            continue
        for name, (option, tier, months) in _PRICES.items():
            # a tier that does not have the type keeps a price, or has a price of nothing
            if item.get(name) and item.get(f"{tier}Cloud") is not False:
                rows.append(
                    {
                        "provider": "runpod",
                        "instance_type": f"1x {item.get('displayName')}",
                        "listed_as": item.get("id"),
                        "gpu_memory_gib": item.get("memoryInGb"),
                        "gpus": 1,
                        "option": option,
                        "tier": tier,
                        "term_months": months,
                        "usd_per_hour": item[name],
                    }
                )
    desk.add(rows)
    desk.add(nameless, "unknown")


def _names_agree(item: dict[str, Any]) -> bool:
    """Whether both names of a type are of the same chip: the first part with a digit is in both.

    >>> _names_agree({"id": "NVIDIA A100-SXM4-80GB", "displayName": "A100 SXM"})
    True
    >>> _names_agree({"id": "NVIDIA GeForce RTX 4090", "displayName": "HIGH"})
    False
    """
    name, shown = item.get("id"), item.get("displayName")
    if not isinstance(name, str) or not isinstance(shown, str):
        return False
    # of "A100 SXM" the A100: words such as SXM are written in many ways, numbers in one
    number = next((part for part in shown.split() if any(letter.isdigit() for letter in part)), None)
    return number is not None and number.lower() in name.lower()


SOURCES = (Source("runpod", "RunPod", "RunPod GPU types", ADDRESS, fetch, keys=KEYS, own_list=True, describes=True),)
