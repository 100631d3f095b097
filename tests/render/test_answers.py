"""Typed answers: every question's real answer is what its type says, no key more and none less."""

import json
import math
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpucost.answers import KINDS
from gpucost.answers.saved import checked, read_answer
from gpucost.answers.schema import answer_schema
from gpucost.errors import UsageError
from gpucost.money import serving_bill, statements, training_bill
from gpucost.render.json import dumps, plain
from tests.render import answers

READERS = ("render", "ask", "library", "cli")
# Keys that people do not see on any page: programs read them from JSON or CSV.
FOR_PROGRAMS = {
    "against_model", "also_in", "by_recompute", "cached_time_fraction", "prompt_replica_requests_per_s",
    "token_replica_requests_per_s", "token_replicas", "transfer_mean_ms",
    "checkpoint_interval_hours", "credits_usd", "differences_found", "flop", "full_gb",
    "gap_fraction", "hardware_flop_per_token_flop", "host_s", "layouts_timed", "link_bytes",
    "loaded_ttft", "loading", "lora_gb", "memory_bytes", "model_flop_per_token_flop", "model_status",
    "model_tflops", "needed_gb_per_s", "needed_loader_workers", "offers_found", "option_rank",
    "output_tokens_per_s_per_gpu", "serving_option", "serving_usd_per_gpu_hour",
    "own_at_high_usd_per_gpu_hour", "own_at_low_usd_per_gpu_hour", "preempted_fraction", "price_confidence",
    "prices_age_days", "qlora_gb",
    "stall_fraction", "storage_gb_per_s", "stretch_paid_high_ratio", "stretch_paid_low_ratio",
    "swing_usd", "then_usd_per_gpu_hour", "tight", "trained_parameters", "workers_gb_per_s",
    "after_usd_per_gpu_hour", "breached_months", "charged_usd", "days_left",
    "own_usd_per_owned_gpu_hour", "planned_usd", "rest_usd",
    "so_far_usd", "total_high_usd",
    "total_low_usd", "until_months",
    "delivery", "hangs_on", "saving_after_wait_usd", "too_late", "wait_weeks", "wins_of_ten",
}  # fmt: skip


def saved(payload: Any) -> Any:
    return json.loads(dumps(payload))


@pytest.mark.slow
@pytest.mark.parametrize("question", answers.QUESTIONS)
def test_a_real_answer_is_what_its_type_says_and_is_read_again(question: str, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    path = tmp_path / "saved.json"
    path.write_text(dumps(answers.QUESTIONS[question]()), encoding="utf-8")
    payload = read_answer(path)
    jsonschema.validate(payload, answer_schema(payload["kind"], closed=True))


@pytest.mark.slow
def test_every_kind_has_a_real_answer_here() -> None:
    assert {make()["kind"] for make in answers.QUESTIONS.values()} == set(KINDS)


@pytest.mark.parametrize(
    ("place", "value"),
    [(("lead",), None), (("options", 0, "days"), "5"), (("options", 0, "gpus"), True), (("kind",), "tco")],
)
def test_the_schema_and_the_decoder_refuse_the_same(place: tuple[Any, ...], value: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    payload = saved(answers.by_hand())
    holder = payload
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(payload, answer_schema("estimate"))
    with pytest.raises(UsageError):
        checked(payload, "the answer")


def test_a_closed_schema_refuses_a_key_more_or_less() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = answer_schema("estimate", closed=True)
    payload = saved(answers.by_hand())
    with pytest.raises(jsonschema.ValidationError, match="extra"):
        jsonschema.validate(payload | {"extra": 1}, schema)
    payload["options"][0].pop("days")
    with pytest.raises(jsonschema.ValidationError, match="days"):
        jsonschema.validate(payload, schema)


@pytest.mark.slow
def test_every_key_is_read_by_somebody_or_said_to_be_for_programs() -> None:
    package = Path(__file__).parents[2] / "gpucost"
    files = (path for name in READERS for suffix in ("py", "csv") for path in (package / name).rglob(f"*.{suffix}"))
    text = "".join(path.read_text("utf-8") for path in files)
    shown = {key for make in answers.QUESTIONS.values() for key in answers.shown_keys(make())}
    bills = (*training_bill.INPUTS, *training_bill.LINES, *serving_bill.INPUTS, *serving_bill.LINES)
    read = {*re.findall(r"\w+", text), *shown, *(entry.name for entry in bills)}  # a workbook reads its bill's names
    read |= {row.name for row in statements.ROWS}  # pages and workbooks show every row of the statements
    keys = {key for kind in KINDS for key in answers.keys_of(answer_schema(kind))}
    read |= {key for key in keys if key.endswith("_reason")}  # the notes of break-even figures that do not exist
    assert keys - read == FOR_PROGRAMS


def test_a_file_of_another_shape_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    payload = saved(answers.by_hand())
    payload["options"][0].pop("cost_usd")
    path.write_text(json.dumps(payload), encoding="utf-8")
    with pytest.raises(UsageError, match=r"options\[0\]: lacks cost_usd.*Ask again"):
        read_answer(path)


@pytest.mark.parametrize("indent", [2, None])
@pytest.mark.parametrize("rows", [0, 3, 1500])
def test_a_long_list_is_written_as_a_short_one(rows, indent):
    row = {"x": "a\nb é", "y": [1 / 3, {"z": None}], "none": [], "\n": {}}
    value = {"before": {"a": [1]}, "rows": [row] * rows, "days": tuple(range(rows)), "after": "x"}
    assert dumps(value, indent=indent) == json.dumps(plain(value), indent=indent, ensure_ascii=False)


def test_a_row_of_single_values_is_written_as_any_other():
    cells = [None, True, 1, -5, 10**30, 0.1 + 0.2, 1e300, math.nan, -0.0, 1e-7, 5.0, 'a"b\\c\n\x01\u202e\ud800', ""]
    cells += [date(2026, 1, 2), datetime(2026, 1, 2), Decimal("1.5"), [1, 2], {"a": None}, (1,), b"x", {}]
    rows = [{}, *({"a": 1, name: cell} for cell in cells for name in ('é"', 3, None))]
    assert dumps({"rows": rows * 40, "more": 1}).endswith(dumps({"rows": rows, "more": 1})[len('{\n  "rows": [') :])
    assert len(rows) * 40 > 1000 > len(rows)
