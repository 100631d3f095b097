"""What programs may rely on in an answer: its keys and their types, as JSON schemas.

One line per list or object: `name type`, with `?` where the value may be null. Answers may hold more keys than these.
"""

from typing import Any

_TYPES = {"text": "string", "number": "number", "integer": "integer", "flag": "boolean", "object": "object"}
_LINES = "name text, quantity number, unit text, unit_price_usd number, cost_usd number"
_FRAME = "kind text, request object, as_of text, catalog_version text, warnings [text], sources object"

ANSWERS: dict[str, dict[str, str]] = {
    "estimate": {
        "": _FRAME,
        "options": "rank integer, provider text, instance_type text, region text?, option text, gpu text, "
        "gpus integer, nodes integer, layout object, tokens_per_s_per_gpu number, mfu_fraction number, days number, "
        "gpu_hours number, cost_usd number, cost_low_usd number, cost_high_usd number, usd_per_mtok number, "
        "energy_kwh number?, "
        "kgco2e number?, price_observed_on text, source_ids [text], lines [object], notes [text]",
        "options.lines": _LINES,
        "excluded": "provider text, instance_type text, reason text",
    },
    "inference": {
        "": _FRAME + ", breakeven object",
        "options": "rank integer, provider text, instance_type text, region text?, option text, gpu text, "
        "gpus integer, replicas integer, layout object, ttft_ms number, tpot_ms number, tokens_per_s_per_gpu number, "
        "usd_per_mtok number, "
        "usd_per_mtok_low number, usd_per_mtok_high number, usd_per_mtok_input number, usd_per_mtok_output number, "
        "usd_per_month number, price_observed_on text, source_ids [text], lines [object], notes [text]",
        "options.lines": _LINES,
        "api": "provider text, model text, usd_per_mtok number",
    },
    "tco": {
        "": _FRAME
        + ", npv_usd object, irr_fraction number?, payback_months number?, levelised_usd_per_gpu_hour number, "
        "breakeven object, probability_buy_wins_fraction number?",
        "cash_flows": "month integer, own_total_usd number, rent_total_usd number, saving_usd number",
        "sensitivity": "name text",
        "assumptions": "name text, unit text, status text, source_id text",
    },
    "mix": {
        "": _FRAME + ", cost_usd number",
        "plan": "option text, gpus number, from_month integer, months integer, cost_usd number",
        "months": "month integer, demand_gpus number",
    },
    "report": {
        "": "kind text, name text, as_of text, catalog_version text, sources object",
        "parts": "name text, part text, payload object",
    },
}
_KINDS = {"report": "scenario"}  # where the command's name is not the answer's kind


def answer_schema(kind: str) -> dict[str, Any]:
    """Return the JSON schema of one kind of answer.

    >>> answer_schema("report")["properties"]["parts"]["items"]["required"]
    ['name', 'part', 'payload']
    """
    tables = ANSWERS[kind]
    schema = _object(tables[""])
    schema["properties"]["kind"] = {"const": _KINDS.get(kind, kind)}
    for path, keys in tables.items():
        if path:
            holder = schema
            *outer, last = path.split(".")
            for name in outer:
                holder = holder["properties"][name]["items"]
            holder["properties"][last] = {"type": "array", "items": _object(keys)}
            if last not in holder["required"]:
                holder["required"].append(last)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"gpucost {kind}", **schema}


def _object(keys: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for part in keys.split(", "):
        name, kind = part.split()
        properties[name] = _type(kind)
    return {"type": "object", "properties": properties, "required": list(properties)}


def _type(kind: str) -> dict[str, Any]:
    if kind.startswith("["):
        return {"type": "array", "items": _type(kind.strip("[]"))}
    name = _TYPES[kind.rstrip("?")]
    return {"type": [name, "null"] if kind.endswith("?") else name}
