"""The genai-prices table: prices per million tokens by provider and model, some of them dated or tiered."""

from collections.abc import Mapping
from typing import Any

from gpucost.refresh.source import Desk, Source, content_of, last_change, providers

ADDRESS = "https://raw.githubusercontent.com/pydantic/genai-prices/main/prices/data.json"
PROVIDERS = providers("genai-prices")
_HALF_A_DAY_HOURS = 12


def fetch(desk: Desk) -> None:
    """Fetch the table."""
    table = content_of(desk.client.json(ADDRESS, most_bytes=64_000_000), fault="the source is not a list of providers")
    today, changed_on = desk.today.isoformat(), last_change(desk, ADDRESS)
    rows = []
    for provider in table:
        # a provider that has no name here sells models of its own alone
        name = PROVIDERS.get(str(provider.get("id"))) if isinstance(provider, dict) else None
        for model in provider.get("models") or () if name else ():
            prices = current(model.get("prices"), today)
            if prices:
                rows.append(
                    {
                        "provider": name,
                        "listing": f"{provider['id']}/{model.get('id')}",
                        "model": model.get("id"),
                        "input_usd_per_mtok": base(prices.get("input_mtok")),
                        "output_usd_per_mtok": base(prices.get("output_mtok")),
                        "cached_input_usd_per_mtok": base(prices.get("cache_read_mtok")),
                        "observed_on": changed_on,
                    }
                )
    desk.add(rows, "tokens")


def current(prices: Any, today: str) -> Mapping[str, Any]:
    """Return the prices that hold today: the only ones, else the last whose start has come.

    Of prices by the time of day those that hold for most of it speak.

    >>> later = {"constraint": {"start_date": "2026-01-01"}, "prices": {"input_mtok": 1}}
    >>> dated = [{"prices": {"input_mtok": 2}}, later]
    >>> current(dated, "2026-06-01"), current(dated, "2025-06-01")
    ({'input_mtok': 1}, {'input_mtok': 2})
    >>> day = {"constraint": {"start_time": "00:30:00Z", "end_time": "16:30:00Z"}, "prices": {"input_mtok": 0.27}}
    >>> current([{"prices": {"input_mtok": 0.135}}, day], "2026-06-01")
    {'input_mtok': 0.27}
    """
    if isinstance(prices, dict):
        return prices
    current_prices: Mapping[str, Any] = {}
    for item in prices if isinstance(prices, list) else ():
        rule = item.get("constraint") or {}
        if "start_time" in rule:  # of 00:30:00Z to 16:30:00Z sixteen hours
            try:
                start, end = (
                    int(text[:2]) + int(text[3:5]) / 60 for text in (str(rule["start_time"]), str(rule["end_time"]))
                )
                hours = (end - start) % 24
            except (KeyError, ValueError):
                hours = 0.0
            holds = hours > _HALF_A_DAY_HOURS
        else:
            holds = not rule or str(rule.get("start_date", "9")) <= today
        if holds:
            current_prices = item.get("prices") or {}
    return current_prices


def base(value: Any) -> Any:
    """Return the price of the first tier."""
    return value.get("base") if isinstance(value, dict) else value


SOURCES = (Source("genai-prices", "pydantic/genai-prices", "genai-prices", ADDRESS, fetch, kind="tokens", copied=True),)
