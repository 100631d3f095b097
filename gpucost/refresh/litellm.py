"""LiteLLM's table of models: prices per token of hosted models."""

from typing import Any

from gpucost.refresh.source import Desk, Source, content_of, last_change, providers

ADDRESS = "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
MTOK = 1e6
PROVIDERS = providers("litellm")  # others sell models of their own, which nobody else can host


def fetch(desk: Desk) -> None:
    """Fetch the table."""
    table = desk.client.json(ADDRESS, most_bytes=64_000_000)
    models = content_of(table, kind=dict, fault="the source is not a table of models")
    seen_on = last_change(desk, ADDRESS)
    rows = []
    for name, item in models.items():
        if not isinstance(item, dict) or item.get("litellm_provider") not in PROVIDERS:
            continue
        if item.get("mode", "chat") not in ("chat", "completion"):  # images, speech and embeddings have other units
            continue
        rows.append(
            {
                "provider": PROVIDERS[item["litellm_provider"]],
                "listing": name,
                "model": name.rsplit("/", 1)[-1],
                "input_usd_per_mtok": per_mtok(item.get("input_cost_per_token")),
                "output_usd_per_mtok": per_mtok(item.get("output_cost_per_token")),
                "cached_input_usd_per_mtok": per_mtok(item.get("cache_read_input_token_cost")) or None,
                "observed_on": seen_on,
            }
        )
    desk.add(rows, "tokens")


def per_mtok(value: Any) -> float | None:
    """Return the price of a million tokens of that of one."""
    return round(value * MTOK, 9) if isinstance(value, int | float) and not isinstance(value, bool) else None


SOURCES = (Source("litellm", "BerriAI/litellm", "LiteLLM model prices", ADDRESS, fetch, kind="tokens", copied=True),)
