"""Bad rows are refused as file:row:column with the reason, and nothing of a bad file is loaded."""

import json
import re
from datetime import date

import pytest
from click.testing import CliRunner

from gpucost.catalog import open_catalog
from gpucost.catalog.checks import check_folder
from gpucost.catalog.datacheck import check_one
from gpucost.catalog.loader import Store
from gpucost.catalog.price_checks import Reference, check_prices, load_prices
from gpucost.cli import cli
from gpucost.errors import DataError
from gpucost.schemas import TABLES
from gpucost.schemas.validation import check_file, read_valid
from tests.catalog.world import offer, world, write


@pytest.fixture
def root(tmp_path):
    many = [offer(f"o{i}", price, "2025-01-0" + str(1 + i)) for i, price in enumerate([2.0, 2.1, 2.2, 2.4, 2.5])]
    return world(tmp_path, many)


def faults(root, *rows, table="offers"):
    """Return what a check says about a file of these rows, as row:column: reason."""
    path = write(root / "incoming", table, list(rows), file="new.csv")
    report = check_one(open_catalog("2025-02-01", root=root, checked=False), path, table)
    return [f"{fault.row}:{fault.column}: {fault.reason}" for fault in sorted(report.faults)], [
        fault.reason for fault in report.doubts
    ]


def test_a_good_file_has_no_fault(root):
    assert faults(root, offer("new", 2.3, "2025-01-01")) == ([], [])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"usd_per_hour": "abc"}, "2:usd_per_hour: expected a number, found 'abc'"),
        ({"usd_per_hour": "-2"}, "2:usd_per_hour: -2 is negative"),
        ({"usd_per_hour": "0"}, "2:usd_per_hour: zero stands for a missing value"),
        ({"usd_per_hour": "inf"}, "2:usd_per_hour: 'inf' is not a finite number"),
        ({"usd_per_hour": "nan"}, "2:usd_per_hour: 'nan' is not a finite number"),
        ({"usd_per_hour": "1e999"}, "2:usd_per_hour: '1e999' is not a finite number"),
        ({"usd_per_hour": "1,234.5"}, "2:usd_per_hour: '1,234.5' has thousands separators; write 1234.5"),
        ({"usd_per_hour": "2,5"}, "2:usd_per_hour: '2,5' has a decimal comma; write 2.5"),
        ({"usd_per_hour": "$2.5"}, "currency sign"),
        ({"usd_per_hour": "=A1*8"}, "2:usd_per_hour: '=A1*8' is a spreadsheet formula"),
        ({"notes": '=HYPERLINK("x")'}, "2:notes: '=HYPERLINK"),
        ({"notes": "=1+1"}, "2:notes: '=1+1' is a spreadsheet formula"),
        ({"usd_per_hour": "150000"}, "2:usd_per_hour: 150000 lies above 100000"),
        ({"usd_per_hour": ""}, "2:usd_per_hour: a value is required"),
        ({"source_id": ""}, "2:source_id: a value is required: name its source"),
        ({"source_id": "nobody"}, "2:source_id: 'nobody' is not in pricing/sources.csv"),
        ({"gpu": "h1000"}, "2:gpu: 'h1000' is not in models/accelerators.csv"),
        ({"gpus": "1.5"}, "2:gpus: expected a whole number"),
        ({"observed_on": "01.02.2025"}, "2:observed_on: '01.02.2025' is not a day; write YYYY-MM-DD"),
        ({"observed_on": "2025-02-30"}, "2:observed_on: '2025-02-30' is not a day"),
        ({"observed_on": "1925-02-03"}, "2:observed_on: 1925-02-03 lies before"),
        ({"observed_on": "2999-01-01", "recorded_on": "2999-01-01"}, "2:observed_on: 2999-01-01"),
        ({"recorded_on": "2024-12-31"}, "2:recorded_on: 2024-12-31"),
        ({"option": "on-demand"}, "2:option: 'on-demand' is none of: on_demand"),
        ({"gpu_assumed": "maybe"}, "2:gpu_assumed: expected 1 or 0"),
        ({"usd_per_gpu_hour": "1.0"}, "2:usd_per_gpu_hour: 1 "),
        ({"minimum_units": "4", "maximum_units": "2"}, "2:minimum_units: 4"),
        ({"upfront_usd": "9"}, "2:upfront_usd: a price with upfront_usd needs term_months"),
        ({"option": "reserved"}, "2:term_months: a reserved price needs the length of its term"),
    ],
)
def test_a_bad_cell_is_named_with_its_reason(root, cells, expected):
    found, _ = faults(root, {**offer("new", 2.3, "2025-01-01"), **cells})
    assert any(expected in line for line in found), found


@pytest.mark.parametrize(
    ("usd", "gpus", "word"),
    [(2.3 * 730, 1, "per month"), (2.3 / 730, 1, "divided by 730"), (2.3 * 100, 1, "the unit")],
)
def test_known_slips_of_units_are_refused(root, usd, gpus, word):
    found, _ = faults(root, offer("new", usd, "2025-01-01", gpus=gpus))
    assert any(word in line for line in found), found


def test_the_list_of_one_seller_in_many_regions_does_not_say_what_is_usual(tmp_path):
    many = [offer(f"a{i}", 0.4, "2025-01-01", region=f"r{i}") for i in range(12)]
    others = [offer(f"o{i}", 2.0 + i / 10, "2025-01-02", provider="other", instance_type=f"i{i}") for i in range(6)]
    root = world(tmp_path, many + others)
    assert faults(root, offer("new", 2.2, "2025-01-03", instance_type="new")) == ([], [])
    assert faults(root, offer("new", 0.4, "2025-01-03", instance_type="new")) == ([], [])
    assert faults(root, offer("new", 40.0, "2025-01-03", instance_type="new"))[0]


def test_a_node_price_given_for_one_gpu_is_refused(root):
    found, doubts = faults(root, offer("new", 2.3 * 8, "2025-01-01"))
    assert not doubts
    assert any("whole node" in fault for fault in found)


def test_a_spot_price_that_is_no_lower_than_on_demand_is_refused(root):
    demand = offer("a", 2.3, "2025-01-01")
    assert any(
        "equal to the on-demand price" in line
        for line in faults(root, demand, offer("b", 2.3, "2025-01-01", option="spot"))[0]
    )
    assert any(
        "above the on-demand price" in line
        for line in faults(root, demand, offer("b", 2.4, "2025-01-01", option="spot"))[0]
    )
    assert faults(root, demand, offer("b", 1.1, "2025-01-01", option="spot"))[0] == []


def test_duplicates_and_contradictions_are_refused(root):
    row = offer("a", 2.3, "2025-01-01", valid_from="2025-01-01")
    assert any("the same offer_id" in line and "row 2" in line for line in faults(root, row, row)[0])
    assert any(
        "the same offer_id" in line
        for line in faults(root, row, {**row, "usd_per_hour": 2.4, "usd_per_gpu_hour": 2.4})[0]
    )


HOPPER = {
    "vendor": "NVIDIA", "architecture": "Hopper GH100", "family": "hopper", "form_factor": "SXM5", "year": 2023,
    "memory_gib": 79.6,
    "memory_marketed_gb": 80, "memory_type": "HBM3", "hbm_gb_per_s": 3350, "fp32_tflops": 67, "bf16_tflops": 989,
    "fp16_tflops": 989,
    "fp8_tflops": 1979, "scaleup_link": "NVLink4", "scaleup_gb_per_s": 450, "scaleup_gpus": 8, "source_id": "m",
}  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "word"),
    [
        ({"bf16_tflops": 1979}, "sparse peak"),
        ({"scaleup_gb_per_s": 900}, "both directions"),
        ({"fp8_tflops": 500}, "never slower"),
        ({"memory_gib": 85}, "exceeds"),
    ],
)
def test_accelerators_that_contradict_their_sisters_are_refused(root, cells, word):
    write(root, "accelerators", [{**HOPPER, "id": "h100-sxm5-80gb"}])
    assert faults(root, {**HOPPER, "id": "own"}, table="accelerators")[0] == []
    found, _ = faults(root, {**HOPPER, "id": "own", **cells}, table="accelerators")
    assert any(word in line for line in found), found


def rewritten(root, change):
    path = write(
        root / "incoming", "offers", [offer("a", 2.3, "2025-01-01"), offer("b", 2.4, "2025-01-01")], file="offers.csv"
    )
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"\n", b"\n\n"),
    ],
    ids=["byte-order mark", "CRLF", "blank lines"],
)
def test_harmless_habits_of_spreadsheets_are_read(root, change):
    assert [row["usd_per_hour"] for row in read_valid(TABLES["offers"], rewritten(root, change))] == [2.3, 2.4]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data.decode().replace("acme", "acmé").encode("latin-1"), "not UTF-8"),
        (lambda data: data.decode().encode("utf-16"), "UTF-16"),
        (lambda data: data.replace(b",", b";"), "commas"),
        (lambda data: data.replace(b"provider", b"vendor", 1), "provider"),
        (lambda data: data.replace(b"vcpus", b"usd_per_hour", 1), "twice"),
        (lambda data: data.replace(b"acme", b'"acme', 1), "CSV"),
        (lambda data: data.replace(b"acme", b"ac,me", 1), "header has"),
        (lambda data: data.replace(b"acme", b"ac\0me", 1), "NUL"),
        (lambda data: b"", "is empty"),
    ],
)
def test_files_that_are_not_plain_csv_are_refused_whole(root, change, reason):
    path = rewritten(root, change)
    with pytest.raises(DataError, match=reason):
        read_valid(TABLES["offers"], path)


def test_an_unknown_column_is_refused_with_the_nearest_and_an_own_one_is_left_alone(root):
    def add(name):
        return lambda data: b"".join(
            line + b"," + (name if i == 0 else b"1") + b"\n" for i, line in enumerate(data.splitlines())
        )

    _, found = check_file(TABLES["offers"], rewritten(root, add(b"usd_hour")))
    assert "did you mean usd_per_hour" in found[0].reason
    assert check_file(TABLES["offers"], rewritten(root, add(b"x_contract")))[1] == []


@pytest.mark.slow
def test_the_shipped_data_pass_their_own_check():
    report = check_folder(open_catalog().store.root)
    assert [str(fault) for fault in report.faults] == []
    assert report.rows > 3000


def test_the_medians_are_taken_within_a_year(root):
    """Five prices of 1 USD in 2024 and of 30 USD in 2026: 5.1 USD is dear in the first year, cheap in the second."""
    store, x = Store(root), {**offer("x", 1.0, "2024-06-01"), "gpu_assumed": False}
    days = [date(year, month, 1) for year in (2024, 2026) for month in (3, 4, 5, 6, 7)]
    market = [{**x, "usd_per_gpu_hour": 1.0 if day.year == 2024 else 30.0, "observed_on": day} for day in days]
    known = load_prices(store, "market", list(enumerate(market)))
    asked = [
        {**x, "observed_on": date(year, 5, 9), "recorded_on": date(year, 5, 9), "usd_per_gpu_hour": 5.1}
        for year in (2024, 2026)
    ]
    asked = [{**row, "usd_per_hour": 5.1} for row in asked]
    reference = Reference({}, {"h100-sxm5-80gb": {}}, {}, date(2027, 1, 1))
    found = list(check_prices(store, load_prices(store, "asked", list(enumerate(asked, 2))), known, reference))
    assert [(finding.row, finding.doubt) for finding in found] == [(2, True), (3, True)]
    for finding, ratio, median in zip(found, (5.1, 0.17), (1, 30), strict=True):
        assert re.findall(r"[\d.]+", finding.reason) == ["5.1", f"{ratio}", f"{median}"]


@pytest.mark.slow
def test_the_command_lists_faults_and_exits_with_5(root):
    path = write(root / "incoming", "offers", [offer("a", -1, "2025-01-01")], file="offers.csv")
    from gpucost.errors import CheckFailedError

    result = CliRunner().invoke(cli, ["data", "check", str(path), "--format", "json"])
    assert isinstance(result.exception, CheckFailedError)
    assert result.exception.exit_code == 5
    found = json.loads(result.stdout)
    assert not found["ok"]
    assert [row["place"].rsplit("/")[-1] for row in found["rows"]] == [
        "offers.csv:2:usd_per_gpu_hour",
        "offers.csv:2:usd_per_hour",
    ]
    assert CliRunner().invoke(cli, ["data", "check"]).exit_code == 0
