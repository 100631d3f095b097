"""The price tables that Karpenter's providers ship as Go source: on demand by region."""

import re
from collections.abc import Iterator

from gpucost.errors import UsageError
from gpucost.importers.aws import INSTANCES
from gpucost.importers.source import Desk, Source

ADDRESS = "https://raw.githubusercontent.com/"
# provider -> file, instances with accelerators
FILES = {
    "aws": ("aws/karpenter-provider-aws/main/pkg/providers/pricing/zz_generated.pricing_aws.go", INSTANCES),
    "azure": ("Azure/karpenter-provider-azure/main/pkg/providers/pricing/zz_generated.pricing.go", r"Standard_N\w+"),
}
_REGION = re.compile(r'^\s*"([a-z0-9-]+)":\s*\{')
_PRICE = re.compile(r'"([A-Za-z0-9_.-]+)":\s*([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)')


def fetch(desk: Desk) -> None:
    """Fetch and read both tables."""
    for provider, (path, wanted) in FILES.items():
        text = desk.client.body(ADDRESS + path, most_bytes=64_000_000).decode("utf-8", "replace")
        rows = list(rows_of(text, provider, wanted))
        if not rows:
            raise UsageError(f"the table of {provider} holds no prices: its format has changed.")
        desk.add(rows)


def rows_of(text: str, provider: str, wanted: str) -> Iterator[dict[str, object]]:
    """Yield the prices of a table written as Go maps: regions, and in each a price by instance."""
    region, pattern = "", re.compile(wanted)
    for line in text.splitlines():
        if found := _REGION.match(line):
            region = found[1]
        for name, price in _PRICE.findall(line):
            if region and pattern.fullmatch(name):
                yield {
                    "provider": provider, "instance_type": name, "region": region, "option": "on_demand",
                    "usd_per_hour": price,
                }  # fmt: skip


SOURCES = (
    Source(
        "karpenter", "kubernetes-sigs/karpenter providers", "Karpenter price tables", ADDRESS + FILES["aws"][0], fetch
    ),
)
