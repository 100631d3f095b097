"""Lambda's list of instance types: one price each, the same in every region."""

from collections.abc import Iterator
from typing import Any

from gpucost.refresh.source import Desk, Source, held

ADDRESS = "https://cloud.lambda.ai/api/v1/instance-types"
KEYS = ("LAMBDA_API_KEY",)


def fetch(desk: Desk) -> None:
    """Ask for the list."""
    answer = desk.client.json(ADDRESS, headers={"authorization": f"Bearer {desk.key(*KEYS)}"}, most_bytes=16_000_000)
    desk.add(_rows(held(answer, "data", kind=dict, what="the answer holds no instance types")))


def _rows(types: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, item in types.items():
        found = item.get("instance_type") if isinstance(item, dict) else None
        if not isinstance(found, dict) or not isinstance(found.get("price_cents_per_hour"), int | float):
            continue
        specs = found.get("specs") or {}
        yield {
            "provider": "lambda",
            "instance_type": found.get("name") or name,
            "listed_as": str(found.get("gpu_description") or found.get("description") or ""),
            "gpus": specs.get("gpus"),
            "option": "on_demand",
            "usd_per_hour": found["price_cents_per_hour"] / 100,
            "vcpus": specs.get("vcpus"),
            "memory_gib": specs.get("memory_gib"),
        }


SOURCES = (Source("lambda", "Lambda", "Lambda instance types", ADDRESS, fetch, keys=KEYS, own_list=True),)
