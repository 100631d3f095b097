"""The genai-prices table: prices per million tokens by provider and model, some of them dated or tiered."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpucost.refresh.source import Desk, Source, held, last_change, providers

ADDRESS = "https://raw.githubusercontent.com/pydantic/genai-prices/main/prices/data.json"
PROVIDERS = providers("genai-prices")
_HALF_A_DAY_HOURS = 12


def fetch(desk: Desk) -> None:
    """Fetch the table."""
    table = held(desk.client.json(ADDRESS, most_bytes=64_000_000), what="the source is not a list of providers")
    today, changed_on = desk.today.isoformat(), last_change(desk, ADDRESS)
    rows = (row for item in table if isinstance(item, dict) for row in _rows(item, today))
    desk.add(({**row, "observed_on": changed_on} for row in rows), "tokens")


def _rows(provider: Mapping[str, Any], today: str) -> Iterator[dict[str, Any]]:
    name = PROVIDERS.get(str(provider.get("id")))
    for model in provider.get("models") or () if name else ():
        prices = current(model.get("prices"), today)
        if prices:
            yield {
                "provider": name,
                "listing": f"{provider['id']}/{model.get('id')}",
                "model": model.get("id"),
                "input_usd_per_mtok": base(prices.get("input_mtok")),
                "output_usd_per_mtok": base(prices.get("output_mtok")),
                "cached_input_usd_per_mtok": base(prices.get("cache_read_mtok")),
            }


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
    found: Mapping[str, Any] = {}
    for item in prices if isinstance(prices, list) else ():
        rule = item.get("constraint") or {}
        if "start_time" in rule:
            found = item.get("prices") or {} if _hours(rule) > _HALF_A_DAY_HOURS else found
        elif not rule or str(rule.get("start_date", "9")) <= today:
            found = item.get("prices") or {}
    return found


def _hours(rule: Mapping[str, Any]) -> float:
    """Return how many hours of a day a rule holds: of 00:30:00Z to 16:30:00Z sixteen."""
    try:
        start, end = (int(text[:2]) + int(text[3:5]) / 60 for text in (str(rule["start_time"]), str(rule["end_time"])))
    except (KeyError, ValueError):
        return 0.0
    return (end - start) % 24


def base(value: Any) -> Any:
    """Return the price of the first tier."""
    return value.get("base") if isinstance(value, dict) else value


SOURCES = (Source("genai-prices", "pydantic/genai-prices", "genai-prices", ADDRESS, fetch, kind="tokens", copied=True),)
