"""Lambda's list of instance types: one price each, the same in every region."""

from gpucost.refresh.source import Desk, Source, content_of

ADDRESS = "https://cloud.lambda.ai/api/v1/instance-types"
KEYS = ("LAMBDA_API_KEY",)


def fetch(desk: Desk) -> None:
    """Ask for the list."""
    answer = desk.client.json(ADDRESS, headers={"authorization": f"Bearer {desk.key(*KEYS)}"}, most_bytes=16_000_000)
    rows = []
    for name, item in content_of(answer, "data", kind=dict, fault="the answer holds no instance types").items():
        machine = item.get("instance_type") if isinstance(item, dict) else None
        if not isinstance(machine, dict) or not isinstance(machine.get("price_cents_per_hour"), int | float):
            continue
        specs = machine.get("specs") or {}
        rows.append(
            {
                "provider": "lambda",
                "instance_type": machine.get("name") or name,
                "listed_as": str(machine.get("gpu_description") or machine.get("description") or ""),
                "gpus": specs.get("gpus"),
                "option": "on_demand",
                "usd_per_hour": machine["price_cents_per_hour"] / 100,
                "vcpus": specs.get("vcpus"),
                "memory_gib": specs.get("memory_gib"),
            }
        )
    desk.add(rows)


SOURCES = (Source("lambda", "Lambda", "Lambda instance types", ADDRESS, fetch, keys=KEYS, own_list=True),)
