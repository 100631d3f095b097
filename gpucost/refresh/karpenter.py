"""The price tables that Karpenter's providers ship: AWS and Azure on demand as Go source, Google also spot as JSON.

The Go source is read line by line, not as Go: a region opens a map, a pair below it is an instance and its price. The
tables are as old as they say (`generated at …`), else as their last change in the repository.
"""

import re
from collections.abc import Iterator
from datetime import date
from functools import partial
from typing import Any

from gpucost.errors import UsageError
from gpucost.refresh.aws import INSTANCES
from gpucost.refresh.source import Desk, Source, content_of, last_change

ADDRESS = "https://raw.githubusercontent.com/"
_MOST_BYTES = 64_000_000  # of a table
# provider -> file, a pattern of its instances with accelerators
FILES = {
    "aws": ("aws/karpenter-provider-aws/main/pkg/providers/pricing/zz_generated.pricing_aws.go", INSTANCES),
    "azure": ("Azure/karpenter-provider-azure/main/pkg/providers/pricing/zz_generated.pricing.go", r"Standard_N\w+"),
    "gcp": ("cloudpilot-ai/karpenter-provider-gcp/main/pkg/providers/pricing/initial-prices.json", r"[ag]\d-.+"),
}
# a region begins either as a key of the outer map or by an assignment to it
_REGION = re.compile(r'^\s*(?:"([a-z0-9-]+)":\s*\{|\w+\["([a-z0-9-]+)"\]\s*=\s*map)')
_PRICE = re.compile(r'"([A-Za-z0-9_.-]+)":\s*([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)')
_GENERATED = re.compile(r"generated at (\d{4}-\d\d-\d\d)T")


def fetch(desk: Desk) -> None:
    """Fetch and read every table."""

    def read(provider: str) -> None:
        desk.add(table_rows(desk, provider))

    desk.each({provider: partial(read, provider) for provider in FILES})


def table_rows(desk: Desk, provider: str) -> list[dict[str, Any]]:
    """Fetch and read the table of one provider."""
    path, instances = FILES[provider]
    address = ADDRESS + path
    if path.endswith(".json"):
        table = content_of(
            desk.client.json(address, most_bytes=_MOST_BYTES), "prices", kind=dict, fault="it holds no prices"
        )
        rows, generated_on = [], None
        for region, options in table.items():
            for option in ("on_demand", "spot"):
                prices = options.get(option) if isinstance(options, dict) else None
                rows += [
                    {
                        "provider": provider,
                        "instance_type": name,
                        "region": region,
                        "option": option,
                        "usd_per_hour": price,
                    }
                    for name, price in (prices or {}).items()
                    if re.fullmatch(instances, name)
                ]
    else:
        text = desk.client.body(address, most_bytes=_MOST_BYTES).decode("utf-8", "replace")
        rows = list(rows_of(text, provider, instances))
        stamp = _GENERATED.search(text)
        generated_on = date.fromisoformat(stamp[1]) if stamp else None
    if not rows:
        raise UsageError("its table holds no prices: its format has changed.")
    # the last change of the file may be of something else than its prices: the day that it states comes first
    seen_on = generated_on or last_change(desk, address)
    return [{**row, "observed_on": seen_on} for row in rows]


def rows_of(text: str, provider: str, instances: str) -> Iterator[dict[str, Any]]:
    """Yield the prices of a table written as Go maps: regions, and in each a price by instance."""
    region, pattern = "", re.compile(instances)
    for line in text.splitlines():
        if opening := _REGION.match(line):
            region = opening[1] or opening[2]
        for name, price in _PRICE.findall(line):
            if region and pattern.fullmatch(name):
                yield {
                    "provider": provider,
                    "instance_type": name,
                    "region": region,
                    "option": "on_demand",
                    "usd_per_hour": price,
                }


SOURCES = (
    Source(
        "karpenter",
        "the Karpenter providers of AWS, Azure and GCP",
        "Karpenter price tables",
        ADDRESS + FILES["aws"][0],
        fetch,
        copied=True,
    ),
)
