"""The user's own book: nearest wins and says so, what differs is enough, and a bad file loads nothing."""

import json
import math
import time

import pytest

from gpucost.catalog import open_catalog
from gpucost.errors import DataError, UsageError
from tests.catalog.world import offer, world

PRICED = "[[offer]]\nprovider = 'x'\ngpu = 'h100-sxm'\nusd_per_hour = 1\nobserved_on = 2025-01-01\n"
MODEL = "[[model]]\nid = 'x'\nlayers = 4\nhidden = 64\nheads = 4\nffn_hidden = 64\nvocab = 100\n"
SHIPPED = "acme/one/1xh100-sxm5-80gb/r1/on_demand"


@pytest.fixture
def opened(tmp_path):
    world(
        tmp_path / "root",
        [offer(SHIPPED, 3.0, "2025-06-01"), offer("other", 4.0, "2025-06-01", provider="other", option="spot")],
    )
    (tmp_path / "book").mkdir()

    def open_with(day="2025-07-01", known=None, **files):
        for name, text in files.items():
            stem, _, suffix = name.rpartition("_")
            (tmp_path / "book" / f"{stem}.{suffix}").write_text(text, "utf-8")
        return open_catalog(day, known, root=tmp_path / "root", book=tmp_path / "book", checked=False)

    return open_with


def test_a_contract_price_overrules_the_list_price_and_says_who_spoke(opened):
    catalog = opened(own_toml=f'[[offer]]\nlike = "{SHIPPED}"\nusd_per_gpu_hour = 2.1\nvalid_from = 2025-01-01\n')
    found = catalog.offers(provider="acme")[0]
    assert (found.usd_per_gpu_hour, found.book, found.price_kind, found.source_id) == (
        2.1,
        "user",
        "contracted",
        "user",
    )
    assert catalog.source("user")["publisher"] == "the user"
    assert (catalog.offers(provider="other")[0].book, catalog.offers(provider="other")[0].price_kind) == (
        "shipped",
        "list",
    )


def test_a_contract_holds_from_its_day_on(opened):
    text = f'[[offer]]\nlike = "{SHIPPED}"\nusd_per_gpu_hour = 2.1\nvalid_from = 2025-06-15\n'
    assert opened("2025-06-14", own_toml=text).offers(provider="acme")[0].usd_per_gpu_hour == 3.0
    assert opened("2025-06-15", own_toml=text).offers(provider="acme")[0].usd_per_gpu_hour == 2.1


def test_a_contract_holds_to_its_last_day_and_no_longer(opened):
    text = f'[[offer]]\nlike = "{SHIPPED}"\nusd_per_gpu_hour = 2.1\nvalid_from = 2025-01-01\nvalid_until = 2025-12-31\n'
    assert opened("2025-12-31", own_toml=text).offers(provider="acme")[0].usd_per_gpu_hour == 2.1
    assert opened("2026-01-01", own_toml=text).offers(provider="acme")[0].usd_per_gpu_hour == 3.0
    with pytest.raises(DataError, match="valid_until"):
        opened(own_toml=text.replace("valid_until = 2025", "valid_until = 2024")).offers()
    with pytest.raises(DataError, match="YYYY-MM-DD"):
        opened(own_toml=text.replace("2025-12-31", '"next year"')).offers()


@pytest.mark.parametrize(("kind", "old"), [("contracted", False), ("list", True)])
def test_a_contract_is_fresh_in_every_answer_and_a_list_price_of_its_age_is_not(tmp_path, kind, old):
    """Signed 325 days ago and still running: prices, the ranking and its filters agree."""
    import gpucost
    from gpucost.catalog import prices

    text = '[[offer]]\nprovider = "ours"\ngpu = "h100-sxm"\ngpus = 8\nusd_per_gpu_hour = 1.2\nvalid_from = 2025-12-30\n'
    (tmp_path / "own.toml").write_text(text + f'price_kind = "{kind}"\n')
    catalog = open_catalog("2026-11-20", book=tmp_path)
    row = prices.current(catalog, {"provider": {"ours"}}, None)[0][0]
    assert (row["age_days"], row["stale"]) == (325, old)
    assert len(prices.current(catalog, {"provider": {"ours"}}, 30)[0]) == (not old)
    assert len(catalog.offers(provider="ours", max_age_days=30)) == (not old)
    for wanted in ({"strict_prices": True}, {"max_age": "30d"}):
        ranked = gpucost.estimate("8b", "10b", gpu="h100-sxm", top=0, catalog=catalog, **wanted).payload["options"]
        assert any(option["provider"] == "ours" for option in ranked) is not old
        served = gpucost.inference("8b", gpu="h100-sxm", top=0, catalog=catalog, **wanted).payload["options"]
        assert any(option["provider"] == "ours" for option in served) is not old


def test_a_csv_needs_only_what_cannot_be_derived(opened):
    text = "provider,gpu,gpus,usd_per_gpu_hour,observed_on,x_contract\nours,H100 SXM,8,1.75,2025-06-30,no. 17\n"
    found = opened(offers_csv=text).offers(provider="ours")[0]
    assert (found.gpu, found.gpus, found.usd_per_hour, found.option, found.billing) == (
        "h100-sxm5-80gb",
        8,
        14.0,
        "on_demand",
        "per_use",
    )
    assert found.offer_id == "ours/8x-h100-sxm5-80gb/8xh100-sxm5-80gb/global/on_demand"


@pytest.mark.slow
def test_a_book_of_many_chips_of_its_own_is_checked_in_time_and_against_them(tmp_path):
    """Each row names another, so that what one looks up grows with none of the others."""
    from gpucost.catalog.datacheck import check_one

    chip = '[[accelerator]]\nid = "own-{0}"\nlike = "h100-sxm5-80gb"\n'
    chip += '[[system]]\nid = "node-{0}"\ngpu = "own-{0}"\ngpus = 8\n'
    price = '[[offer]]\nprovider = "p"\ngpu = "own-{0}"\ngpus = 8\nusd_per_gpu_hour = 2.5\nobserved_on = 2026-06-01\n'
    (tmp_path / "book.toml").write_text("".join((chip + price).format(number) for number in range(300)))
    start = time.process_time()
    found = check_one(open_catalog(), tmp_path / "book.toml", None)
    assert (found.rows, found.faults) == (900, [])
    assert time.process_time() - start < 5


def test_blanks_around_cells_and_empty_rows_of_a_csv_say_nothing(opened):
    text = "{}provider{},gpu,{}gpus,usd_per_gpu_hour,observed_on\n{}ours{},h100-sxm,8{},1.75,2025-06-30\n"
    plain, spaced = text.replace("{}", ""), text.replace("{}", " ") + ",,,,\n"
    first, second = (opened(offers_csv=one).offers(provider="ours") for one in (plain, spaced))
    assert first == second != []


def test_another_currency_is_converted_at_the_books_rate(opened):
    text = """
[exchange_rates]
EUR = 1.1
[[offer]]
provider = "ours"
gpu = "h100-sxm"
per_gpu_hour = 2.0
currency = "EUR"
observed_on = 2025-06-30
"""
    found = opened(own_toml=text).offers(provider="ours")[0]
    assert found.usd_per_gpu_hour == pytest.approx(2.2)
    assert "EUR" in found.notes
    with pytest.raises(DataError, match="no exchange rate for CHF"):
        opened(own_toml=text.replace('"EUR"', '"CHF"')).offers()


def test_a_discount_makes_an_effective_price_and_spares_the_rest(opened):
    catalog = opened(own_toml='[[discount]]\nprovider = "acme"\nfraction = 0.2\n')
    acme, other = catalog.offers(provider="acme")[0], catalog.offers(provider="other")[0]
    assert (acme.usd_per_hour, acme.price_kind, acme.book) == (pytest.approx(2.4), "effective", "user")
    assert (other.usd_per_hour, other.price_kind) == (4.0, "list")
    expired = opened(own_toml="[[discount]]\nfraction = 0.2\nvalid_until = 2025-06-30\n")
    assert {item.price_kind for item in expired.offers()} == {"list"}


def test_own_hardware_and_models_from_toml(opened):
    catalog = opened(
        own_toml="""
[[accelerator]]
id = "prototype"
like = "h100-sxm"
bf16_tflops = 1500
[[accelerator]]
id = "bare"
memory_gib = 48
hbm_gb_per_s = 1000
bf16_tflops = 300
[[system]]
id = "our-node"
gpu = "prototype"
gpus = 4
scaleout_gb_per_s = 25
[[model]]
id = "ours-1b"
layers = 16
hidden = 2048
heads = 16
ffn_hidden = 8192
vocab = 50000
"""
    )
    assert (catalog.accelerator("prototype").bf16_tflops, catalog.accelerator("prototype").form_factor) == (
        1500,
        "SXM5",
    )
    assert catalog.accelerator("bare").hbm_gb_per_s == 1000
    assert catalog.accelerator("prototype").status == "user"
    assert (catalog.system("our-node").accelerator_id, catalog.default_system("prototype").id) == (
        "prototype",
        "our-node",
    )
    model = catalog.architecture("ours-1b")
    assert (model.kv_heads, model.head_dim, model.status) == (16, 128, "user")
    assert any(row["id"] == "prototype" for row in catalog.sql("SELECT id FROM accelerators"))


def test_a_model_from_a_configuration_beside_the_book(opened, tmp_path):
    config = {
        "model_type": "llama",
        "num_hidden_layers": 4,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "vocab_size": 100,
    }
    unread = {"time_step_limit": [0.0, math.inf], "x": math.nan}
    (tmp_path / "book" / "config-x.json").write_text(json.dumps({**config, **unread}))
    assert opened(own_toml='[[model]]\nid = "x"\nconfig = "config-x.json"\n').architecture("x").layers == 4


@pytest.mark.parametrize("found", [math.inf, -math.inf, math.nan])
def test_a_configuration_with_a_dimension_that_is_no_number_is_refused_by_its_key(tmp_path, found):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "num_hidden_layers": found}))
    with pytest.raises(DataError, match="num_hidden_layers must be a whole number"):
        open_catalog().architecture(str(tmp_path))


def test_the_book_is_part_of_the_version(opened):
    plain = opened().version
    assert opened(own_toml="[[discount]]\nfraction = 0.5\n").version != plain


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("own_toml", "[[offer]]\nprovider = 'x'\n", "gpu"),
        (
            "own_toml",
            "[[offer]]\nprovider = 'x'\ngpu = 'h100'\nusd_per_hour = 1\nobserved_on = 2025-01-01\n",
            "ambiguous",
        ),
        ("own_toml", "[[offer]]\nprovider = 'x'\ngpu = 'h100-sxm'\nusd_per_hour = 1\n", "observed_on"),
        (
            "own_toml",
            "[[offer]]\nprovider = 'x'\ngpu = 'h100-sxm'\nusd_per_hour = -1\nobserved_on = 2025-01-01\n",
            "negative",
        ),
        ("own_toml", "[[offer]]\nlike = 'nothing'\nusd_per_hour = 1\n", "like = 'nothing'"),
        ("own_toml", "[[discount]]\nfraction = 1.5\n", "between 0 and 1"),
        ("own_toml", "[[discount]]\nfraction = 0.5\nproviders = 'aws'\n", "providers"),
        ("own_toml", "[[discount]]\nfraction = 5e-324\n", "fraction: 5e-324"),
        ("own_toml", "[[accelerator]]\nid = 'x'\nlike = 'h100-sxm'\nbf16_tflops = 1e15\n", r"lies above 1e\+07"),
        ("own_toml", "[[gizmo]]\n", r"gizmo.*\[\[credit\]\], .*\[exchange_rates\]"),
        ("offers_csv", "provider;gpu;usd_per_hour\nx;h100-sxm;1\n", r"offers\.csv:1: "),
        ("offers_csv", "provider,gpu,gpu\nx,h100-sxm,h200\n", r"offers\.csv:1:gpu: the column appears twice"),
        ("discounts_csv", "fraction,fraction\n0.1,0.2\n", r"discounts\.csv:1:fraction: the column appears twice"),
        ("prices_parquet", "", r"prices\.parquet: .*offers\.parquet"),
        ("own_toml", "[[offer\n", "not valid TOML"),
        ("offers_csv", "provider,gpu,usd_per_hour,observed_on\nx,h100-sxm,abc,2025-01-01\n", r"offers\.csv:2"),
        ("offers_csv", "provider,gpu,usd_per_hour,observed_on\nx,h100-sxm,1\n", r"offers\.csv:2"),
        ("strange_csv", "a,b\n1,2\n", "CSV files"),
        ("models_csv", "id,layers\nx,2\n", "models.csv:2"),
        ("models_csv", 'id,layers,hidden,heads\nx,2,"5,120",40\n', r"models\.csv:2:hidden: '5,120' has thousands"),
        ("own_toml", MODEL.replace("= 4\nffn", "= [4]\nffn"), r"own\.toml\[model\]:1:heads: expected one value"),
        ("own_toml", MODEL.replace("64\nheads", "'forty'\nheads"), "hidden: expected a number, found 'forty'"),
        ("own_toml", MODEL + f"training_tokens = {2**63}\n", "training_tokens: 9223372036854775808"),
        ("own_toml", PRICED + "maximum_units = 1e300\n", "maximum_units: 1e.300"),
        ("own_toml", PRICED + "minimum_units = 4\nmaximum_units = 2\n", "minimum_units 4"),
        ("own_toml", PRICED + "option = ['spot']\n", r"option: expected one value, found \['spot'\]"),
        ("own_toml", PRICED + "valid_until = 2026-01-01T00:00:00Z\n", "valid_until: 2026-01-01 00:00"),
        (
            "own_toml",
            "[[source]]\nsource_id = 'x'\naccessed_on = 2026-01-01T00:00:00\n",
            "accessed_on: ",
        ),
        ("own_toml", PRICED * 2 + PRICED.replace("= 1", "= -1"), r"own\.toml\[offer\]:3:.*-1.* is negative"),
    ],
)
def test_a_bad_book_loads_nothing_and_names_the_place(opened, name, text, reason):
    with pytest.raises(UsageError, match=reason):
        opened(**{name: text}).offers()


def test_a_column_of_ones_own_is_left_alone_in_toml_too(opened):
    own = "x_colour = 'red'\nx_seen = [1, 2]\n"
    catalog = opened(own_toml=f"{PRICED}{own}[[discount]]\nprovider = 'acme'\nfraction = 0.5\n{own}")
    assert {offer.provider: offer.usd_per_hour for offer in catalog.offers()} == {"x": 1.0, "acme": 1.5, "other": 4.0}


@pytest.mark.parametrize("name", ["Offers.csv", "offers.CSV", "offers/ours.Csv", "own.TOML", "offers/own.toml"])
@pytest.mark.parametrize("limit", [0, 4_000_000])
def test_a_file_of_a_book_is_known_by_its_name_in_any_letters(opened, tmp_path, monkeypatch, name, limit):
    monkeypatch.setattr("gpucost.catalog.book_files.LARGE_BYTES", limit)
    table = "provider,gpu,usd_per_hour,observed_on\nx,h100-sxm,1,2025-01-01\n"
    (tmp_path / "book/offers").mkdir()
    (tmp_path / "book" / name).write_text(PRICED if name.lower().endswith("toml") else table)
    assert [offer.usd_per_hour for offer in opened().offers(provider="x")] == [1.0]


def test_a_named_book_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="book"):
        open_catalog(root=world(tmp_path), book=tmp_path / "nowhere", checked=False)


def test_a_large_book_in_parquet_is_read_where_it_lies(opened, tmp_path):
    import duckdb

    from benchmarks.catalog import write_book

    write_book(tmp_path, 2000, 50)
    made, book = tmp_path / "offers.parquet", tmp_path / "book" / "offers.parquet"
    duckdb.execute(f"COPY (SELECT * REPLACE ('h100-sxm5-80gb' AS gpu) FROM '{made}') TO '{book}'")  # the one known here
    catalog = opened("2023-01-20")
    found = catalog.offers(option="spot")
    assert {item.book for item in found} == {"user"}
    # offer 1 is seen every day and recorded a day later
    seen = {item.offer_id: item.observed_on.isoformat() for item in found}
    assert seen["synthetic/1"] == "2023-01-20"
    known = {
        item.offer_id: item.observed_on.isoformat() for item in opened("2023-01-20", "2023-01-20").offers(option="spot")
    }
    assert known["synthetic/1"] == "2023-01-19"


def test_a_parquet_book_with_a_price_of_zero_is_refused(opened, tmp_path):
    import duckdb

    from benchmarks.catalog import write_book

    write_book(tmp_path, 20, 5)
    made, spoilt = tmp_path / "offers.parquet", tmp_path / "book" / "offers.parquet"
    duckdb.execute(
        f"COPY (SELECT * REPLACE (0.0 AS usd_per_hour, 'h100-sxm5-80gb' AS gpu) FROM '{made}') TO '{spoilt}'"
    )
    with pytest.raises(DataError, match=r"offers\.parquet:1:usd_per_hour: zero stands for a missing value"):
        opened().offers()


def test_upfront_payments_are_spread_over_the_term(opened):
    text = """
[[offer]]
provider = "ours"
gpu = "h100-sxm"
gpus = 8
option = "reserved"
term_months = 12
upfront_usd = 87600
recurring_usd_per_hour = 10
observed_on = 2025-06-30
"""
    found = opened(own_toml=text).offers(provider="ours")[0]
    # by hand: 87,600 USD ÷ (12 × 730 h) = 10 USD an hour; with 10 recurring, 20 for 8 GPUs, 2.50 for one
    assert (found.usd_per_hour, found.usd_per_gpu_hour, found.payment) == (20, 2.5, "partial_upfront")
    assert found.billing == "take_or_pay"


def test_an_offer_holds_every_column_of_its_table():
    from gpucost.schemas import TABLES
    from gpucost.types import Offer

    names = Offer.__struct_fields__
    assert set(TABLES["offers"].names) == set(names) - {
        "age_days",
        "book",
        "price_kind",
        "list_usd_per_gpu_hour",
        "sale",
    }


@pytest.mark.slow
def test_a_book_file_can_be_checked_before_it_is_used(tmp_path):
    from gpucost.catalog.datacheck import check_one

    good = '[[offer]]\nprovider = "ours"\ngpu = "h100-sxm"\nusd_per_gpu_hour = 2.0\nobserved_on = 2026-01-01\n'
    (tmp_path / "own.toml").write_text(good)
    assert check_one(open_catalog(), tmp_path / "own.toml", None).faults == []
    (tmp_path / "own.toml").write_text(good.replace("2.0", "2000.0"))
    assert any("the unit" in fault.reason for fault in check_one(open_catalog(), tmp_path / "own.toml", None).faults)
    (tmp_path / "offers.csv").write_text("provider,gpu,usd_per_gpu_hour,observed_on\nours,h100-sxm,-2,2026-01-01\n")
    found = check_one(open_catalog(), tmp_path / "offers.csv", None).faults
    assert [(fault.row, "negative" in fault.reason) for fault in found] == [(2, True)]
    (tmp_path / "offers.csv").write_text("provider;gpu;usd_per_gpu_hour\nours;h100-sxm;2\n")
    with pytest.raises(UsageError, match="commas"):
        check_one(open_catalog(), tmp_path / "offers.csv", None)


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("own.toml", PRICED + PRICED.replace("'x'", "'y'").replace("= 1", "= 2000"), "own.toml[offer]:2:usd_per_hour"),
        (
            "Offers.csv",
            "provider,gpu,usd_per_hour,observed_on\nx,h100-sxm,2000,2026-01-01\n",
            "Offers.csv:2:usd_per_hour",
        ),
    ],
)
def test_a_check_names_an_odd_row_of_a_book_as_a_bad_one(tmp_path, name, text, place):
    from gpucost.catalog.datacheck import check_one

    (tmp_path / name).write_text(text)
    assert str(tmp_path / place) in [fault.place for fault in check_one(open_catalog(), tmp_path / name, None).faults]


@pytest.mark.slow
def test_the_book_of_the_documentation_works(tmp_path):
    import re
    import shutil
    from pathlib import Path

    here = Path(__file__).resolve().parent
    prices, hardware = re.findall(
        r"```toml\n(.*?)```", (here.parents[1] / "docs/books.md").read_text("utf-8"), re.DOTALL
    )
    (tmp_path / "prices.toml").write_text(prices)
    (tmp_path / "hardware.toml").write_text(hardware)
    shutil.copy(here / "llama.config.json", tmp_path / "our-moe.config.json")
    catalog = open_catalog("2026-11-01", book=tmp_path)
    by_hand = {"h100-sxm5-80gb": 1.75, "h200-sxm-141gb": 2.5}  # as stated; 87,600 ÷ 8,760 h + 10, for 8 GPUs
    assert {item.gpu: item.usd_per_gpu_hour for item in catalog.offers(provider="our-colo")} == by_hand
    assert catalog.system_for(catalog.offers(provider="our-colo")[0]).id == "dgx-h100"
    assert catalog.offers(provider="hoster")[0].usd_per_gpu_hour == pytest.approx(0.95 * 1.12)
    aws = catalog.offers(provider="aws", gpu="h100-sxm", region="us-east-1", option="on_demand")
    assert [item.usd_per_hour for item in aws if item.instance_type == "p5.48xlarge"] == [41.28]
    assert {item.price_kind for item in catalog.offers(provider="gcp", option="on_demand")} == {"effective"}
    assert catalog.architecture("our-13b").layers == 40
    assert catalog.system("our-node").accelerator_id == "next-gpu"


def test_a_table_of_any_other_name_lies_over_the_shipped_one(opened):
    """What `gpucost calibrate -o book/calibration.csv` writes is used: the rows of its names, the rest as shipped."""
    header = "name,kind,value,prior,prior_spread_ratio,unit,meaning,rows_used,source_id"
    catalog = opened(calibration_csv=f"{header}\nmatmul,parameter,0.5,,,ratio,own,7,user\n")
    assert [(row["name"], row["value"]) for row in catalog.rows("calibration")] == [("matmul", 0.5)]
