"""The effective inputs of a comparison as a plan file: reading it back gives the same answer."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.arguments.files import is_file

_KEPT = (
    "gpu",
    "provider",
    "region",
    "option",
    "rent_curve",
    "currency",
    "usd_per_unit",
    "usd_per_unit_on",
    "currency_curve",
    "currency_wacc_fraction",
    "fiscal_year_end_month",
    "seed",
    "draws",
    "electricity_region",
    "grid_region",
    "start_on",
    "rent_residual_correlation",
    "depreciation_by_year",
    "profile",
    "site",
    "use_path",
)


def write_plan(
    assumptions: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], tables: Mapping[str, Sequence[float]]
) -> str:
    """Write every input with its value, range, unit and source; what does not count is a comment."""
    lines = [
        "# Inputs of `gpucost tco`, as they took effect. Change any value; a table gives a range for the Monte Carlo:",
        '#   pue_ratio = {value = 1.25, low = 1.2, high = 1.4, source = "our contract"}',
        "",
    ]
    lines += [f"{name} = {_value(_placed(name, settings[name]))}" for name in _KEPT if settings.get(name) is not None]
    resale = [round(value, 6) for value in tables["residual_by_year"][1:]]
    while resale and resale[-1] == 0:
        resale.pop()
    lines += [
        "",
        "# resale value ÷ price at the end of year 1, 2 …; assessed share for property tax",
        f"residual_by_year = {resale}",
    ]
    lines += [f"assessed_by_year = {list(tables['assessed_by_year'])}"]
    for group in dict.fromkeys(entry["group"] for entry in assumptions):
        lines += ["", f"[{group}]", *(_line(entry) for entry in assumptions if entry["group"] == group)]
    for name, entries in settings["scenarios"].items():
        lines += ["", f"[scenarios.{_value(name)}]", *(f"{key} = {_value(value)}" for key, value in entries.items())]
    for option in settings["rent_options"]:
        lines += ["", "[[rent_options]]", *(f"{key} = {_value(value)}" for key, value in option.items())]
    return "\n".join(lines) + "\n"


def _placed(name: str, value: Any) -> Any:
    """Return a file in another folder by its whole path, so that the plan may be written anywhere."""
    return os.path.abspath(value) if is_file(name, value) and os.path.dirname(value) else value


def _line(entry: Mapping[str, Any]) -> str:
    unit = f" [{entry['unit']}]" if entry["unit"] else ""
    note = f"{entry['description']}{unit}; {entry['status']}"
    source = entry["source_id"] or entry["note"]
    comment = f"  # {note}{f' ({source})' if source else ''}".replace("\n", " ")
    if entry["value"] is None:
        return f"# {entry['name']} ={comment}"
    text = _value(entry["value"])
    if entry["low"] is not None and entry["high"] is not None and entry["low"] <= entry["value"] <= entry["high"]:
        text = f"{{value = {text}, low = {_value(entry['low'])}, high = {_value(entry['high'])}}}"
    return f"{'' if entry['counts'] else '# '}{entry['name']} = {text}{comment}"


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {_value(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    number = float(value)
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
