"""A machine is judged against its datasheet and against machines on record."""

import re

import openpyxl
import pytest

from gpucost.bench import verdict
from gpucost.bench.machine import busy, parse
from gpucost.catalog import open_catalog


@pytest.fixture(scope="module")
def catalog():
    return open_catalog()


def bench_of(*figures, **more):
    return {"machine": {"device": "x", "power_limit_w": 700.0}, "figures": list(figures), "failed": [], **more}


def product(tflops, n=8192, **more):
    return {"id": "m", "op": "matmul", "precision": "bf16", "m": n, "k": n, "n": n, "tflops": tflops, **more}


@pytest.mark.parametrize(
    ("device", "accelerator"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA H200", "h200-sxm-141gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Some future thing", None),
    ],
)
def test_a_drivers_name_means_an_accelerator(catalog, device, accelerator):
    found = verdict.accelerator_of(catalog, device)
    assert (found and found.id) == accelerator


def test_half_of_the_datasheet_is_told(catalog):
    chip = catalog.accelerator("h100-sxm5-80gb")
    bench = bench_of(product(chip.bf16_tflops / 2))
    rows = verdict.rows_of(verdict.yardsticks(bench, chip, {"matmul.bf16": 0.75}))
    assert rows[0]["share_fraction"] == pytest.approx(0.5)
    assert rows[0]["verdict"] == "below usual"
    assert "50%" in verdict.findings(bench, chip, rows)[0]


def test_small_products_do_not_stand_for_the_peak(catalog):
    chip = catalog.accelerator("h100-sxm5-80gb")
    assert verdict.yardsticks(bench_of(product(20.0, n=256)), chip, {}) == []


def test_links_at_half_of_what_they_should_be_are_told_with_a_cause(catalog):
    chip = catalog.accelerator("h100-sxm5-80gb")
    row = {"id": "c", "op": "collective", "operation": "all_reduce", "size_bytes": 2**28, "bus_gb_per_s": 170.0}
    bench = bench_of(row)
    rows = verdict.rows_of(verdict.yardsticks(bench, chip, {"all_reduce": 0.8}))
    assert "topo" in verdict.findings(bench, chip, rows)[0]


def test_one_sick_gpu_of_two_is_named(catalog):
    rows = [{"gpu_index": i, "id": "matmul", "time_s": t, "failed": None} for i, t in enumerate((1.0, 1.0, 1.4))]
    told = verdict.findings(bench_of(each_gpu=rows), None, [])
    assert told == ["GPU 2 reaches 71% of its neighbours in matmul"]


def test_a_power_cap_and_heat_are_told(catalog):
    chip = catalog.accelerator("h100-sxm5-80gb")
    bench = bench_of(product(700.0, slowed_by=["hardware thermal limit"]))
    bench["machine"]["power_limit_w"] = 500.0
    told = " ".join(verdict.findings(bench, chip, []))
    assert "500 W" in told
    assert "hardware thermal limit" in told


def test_a_busy_gpu_is_told():
    line = "0, NVIDIA L4, 580.1, 72.00, 2040, 9000, 97, 2040, 71.2, 60, 0x0000000000000004"
    assert busy([parse(line)]) == ["GPU 0 is in use: 9,000 MiB taken, 97 % busy"]


def test_a_machine_has_a_place_among_those_on_record(catalog):
    chip = catalog.accelerator("h100-sxm5-80gb")
    shares = verdict.shares_by_machine(catalog.rows("bench_measurements"), catalog)
    best, worst = max(shares["matmul.bf16"]) * 989.4, min(shares["matmul.bf16"]) * 989.4
    machines = len(shares["matmul.bf16"]) + 1
    for tflops, place in ((best * 1.01, f"1 of {machines}"), (worst * 0.9, f"{machines} of {machines}")):
        sticks = verdict.yardsticks(bench_of(product(tflops)), chip, {})
        assert verdict.rows_of(sticks, shares)[0]["place"] == place


def test_the_measured_roof_lies_under_the_datasheets(catalog):
    chip = catalog.accelerator("h100-sxm5-80gb")
    copied = {"id": "c", "op": "copy", "size_bytes": 2**30, "gb_per_s": 3000.0}
    moved = 3 * 2 * 8192**2 / 1e9  # GB of a product of 8,192 rows
    big = product(680.0, gb_per_s=moved / (2 * 8192**3 / 680e12))
    thin = {**product(2.9, gb_per_s=2900.0), "m": 1}
    roof = verdict.roofline(bench_of(copied, big, thin), chip)
    tops = {curve: max(row["reached_tflops"] for row in roof if row["curve"] == curve)
            for curve in ("datasheet", "measured", "reached")}  # fmt: skip
    assert tops == {"datasheet": 989.4, "measured": 680.0, "reached": 680.0}
    points = {row["operation"]: row["intensity_flop_per_byte"] for row in roof if row["curve"] == "reached"}
    assert points["8,192"] == pytest.approx(8192 / 3, rel=1e-3)  # 2 n³ FLOP over 6 n² bytes
    assert points["1"] == pytest.approx(1.0)
    assert verdict.roofline(bench_of(copied), chip) == []
    assert {row["curve"] for row in verdict.roofline(bench_of(copied, thin), chip)} == {"datasheet", "reached"}


@pytest.mark.slow
def test_a_bench_is_drawn_on_the_terminal_and_as_a_page(tmp_path):
    from click.testing import CliRunner

    from gpucost.cli import cli
    from tests.bench.records import bench_on_record

    file, page = tmp_path / "node.json", tmp_path / "node.html"
    file.write_text(bench_on_record())
    shown = CliRunner().invoke(cli, ["bench", str(file), "--show"]).output
    assert "of peak" in shown
    assert "o datasheet   x measured   + reached" in shown
    CliRunner().invoke(cli, ["bench", str(file), "--show", "-o", str(page)])
    assert "Roofline" in page.read_text()
    rows = CliRunner().invoke(cli, ["bench", str(file), "--show", "--format", "csv"]).stdout.splitlines()
    assert rows[0].startswith("what,measured,peak")
    CliRunner().invoke(cli, ["bench", str(file), "--show", "-o", str(tmp_path / "node.xlsx")])
    sheets = openpyxl.load_workbook(tmp_path / "node.xlsx")
    cells = [str(cell) for row in sheets["Rows"].iter_rows(values_only=True) for cell in row]
    assert {"memory bandwidth", "launch"} < set(cells)
    assert any("ranges" in cell for cell in cells)
    assert "Charts" in sheets.sheetnames


def test_of_an_unknown_chip_the_figures_are_shown_without_peaks(tmp_path):
    from click.testing import CliRunner

    from gpucost.cli import cli
    from tests.bench.records import bench_on_record

    file = tmp_path / "node.json"
    file.write_text(bench_on_record("h100-d", "Some future thing"))
    shown = CliRunner().invoke(cli, ["bench", str(file), "--show"], env={"COLUMNS": "80"}).output
    assert "on record" in shown
    assert re.search(r"memory bandwidth +3,001 GB/s", shown)
    assert "peak  " not in shown


def test_rounds_that_agree_by_chance_are_no_figure(catalog):
    """One H100's product of 8,192 × 4,096 × 14,336, in two runs: the first one's two rounds agreed within 0.6 %."""
    first = {"time_s": 1.519, "rounds_s": [1.515, 1.523], "spread_fraction": 0.110}
    second = {"time_s": 1.421, "rounds_s": [1.421, 1.392, 1.486], "spread_fraction": 0.175}
    (low, high), (other_low, other_high) = verdict.range_of(first), verdict.range_of(second)
    assert low < second["time_s"] < high
    assert other_low < first["time_s"] < other_high
    row = verdict.rows_of(verdict.yardsticks(bench_of(product(700.0, **first)), catalog.accelerator("h100-sxm"), {}))[0]
    assert row["low"] < 700.0 < row["high"]
    assert verdict.range_of({**first, "spread_fraction": 0.03}) is None
    assert verdict.range_of({**first, "bound": "host", "spread_fraction": 0.5}) == (1.515, 1.523)


def test_what_does_not_repeat_is_told_as_a_range(catalog):
    chip = catalog.accelerator("h100-sxm5-80gb")
    steady = product(700.0, time_s=1.0, rounds_s=[1.0, 1.01, 0.99])
    moving = product(700.0, time_s=1.0, rounds_s=[1.0, 1.1, 0.8])
    host = {"id": "launch", "op": "launch", "time_s": 6e-6, "rounds_s": [6e-6, 6.1e-6], "bound": "host"}
    for figure, ends in ((steady, (None, None)), (moving, (700 / 1.1, 700 / 0.8))):
        row = verdict.rows_of(verdict.yardsticks(bench_of(figure), chip, {}))[0]
        assert row["measured"] == 700.0
        assert (row["low"], row["high"]) == pytest.approx(ends) if ends[0] else (None, None)
    bench = bench_of(steady, moving, host)
    assert "2 of 3 cases" in " ".join(verdict.findings(bench, chip, []))
    ends = [(row["case"], row["low_ms"], row["high_ms"]) for row in verdict.ranges_of(bench)]
    assert ends == [("m", 800.0, pytest.approx(1100.0)), ("launch", 6e-3, pytest.approx(6.1e-3))]
    assert verdict.findings(bench_of(steady), chip, []) == []
