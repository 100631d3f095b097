"""Questions that guides answer with a table, each from one command, with source, date and range."""

import json

import pytest

import gpucost
from gpucost.catalog import open_catalog
from gpucost.errors import UnknownNameError, UsageError
from gpucost.physics.hardware import cores_of
from tests.commands import in_process

DAY = "2026-11-20"


@pytest.fixture(scope="module")
def catalog():
    return open_catalog(DAY)


def rows_of(*arguments):
    ran = in_process(*arguments, "--as-of", DAY, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["rows"]


def test_generations_name_their_precisions_links_and_cores():
    rows = {row["id"]: row for row in rows_of("gpus", "--generations", "--vendor", "nvidia")}
    ampere, hopper = rows["a100-sxm4-80gb"], rows["h100-sxm5-80gb"]
    assert set(hopper["precisions"]) - set(ampere["precisions"]) == {"fp8"}
    assert hopper["scaleup_link"].startswith("NVLink4")
    assert (ampere["fp32_cores"], hopper["fp32_cores"]) == (6912, 16896)
    screen = in_process("gpus", "--generations", "--vendor", "nvidia", COLUMNS="80").stdout
    assert "NVLink4 450" in screen


@pytest.mark.parametrize(
    ("gpu", "cores"),  # as their makers' data sheets have them
    [("rtx-4090", 16384), ("rtx-3090", 10496), ("v100-sxm2-16gb", 5120), ("p100-sxm2-16gb", 3584), ("l40s", 18176),
     ("rtx-2080-ti", 4352), ("a40", 10752), ("t4", 2560), ("h100-pcie", 14592)],
)  # fmt: skip
def test_cores_are_those_of_the_data_sheet(catalog, gpu, cores):
    assert cores_of(catalog.accelerator(gpu)) == cores


def test_a_desktop_card_stands_beside_one_of_a_data_centre_with_its_terms():
    screen = in_process("gpus", "rtx-4090,h100-pcie", "--as-of", DAY, COLUMNS="100").stdout
    lines = {line.split("  ")[0].strip(): line for line in screen.splitlines()}
    assert "yes" in lines["ECC"]
    assert lines["MIG instances"].split()[-2:] == ["no", "7"]
    assert "82.6 660.6" in lines["TFLOP/s fp32 int8"]
    assert "licensed" in lines["in data centres"]
    assert "3 years" in lines["warranty"]


def test_one_row_for_each_cloud(catalog):
    rows = rows_of("prices", "--gpu", "h100-sxm", "--by", "provider")
    assert len({row["provider"] for row in rows}) == len(rows) > 10
    for row in rows[:5]:
        offers = catalog.offers("h100-sxm", row["provider"], option="on_demand")
        assert row["on_demand_usd_per_gpu_hour"] == pytest.approx(min(offer.usd_per_gpu_hour for offer in offers))
        assert row["source_id"]
        assert row["observed_on"]
    spot = next(row for row in rows if row["provider"] == "crusoe")
    assert spot["spot_usd_per_gpu_hour"] is None  # it sells none: not known, never zero


def test_links_are_compared_at_a_batch_that_is_said_and_can_be_set(catalog):
    small, large = (
        gpucost.compare(
            model="8b", gpu="h100-sxm", speed=True, gpus=8, global_batch=batch, micro_batch=1, catalog=catalog
        )
        for batch in (8, 256)
    )
    assert "One step: 8 sequences of 8,192 tokens" in small.payload["lead"]
    assert "One step: 256 sequences" in large.payload["lead"]
    with pytest.raises(UsageError, match="speed="):
        gpucost.compare(model="8b", gpu="h100-sxm", global_batch=8, catalog=catalog)


def test_side_by_side_says_tokens_of_a_kilowatt_hour(catalog):
    row = gpucost.compare(model="8b", gpu="h100-sxm", tokens="100b", catalog=catalog).payload["rows"][0]
    run = gpucost.estimate("8b", "100b", gpu="h100-sxm", top=1, catalog=catalog).best
    assert row["tokens_per_kwh"] == pytest.approx(100e9 / run["energy_kwh"])
    assert row["tokens_per_s_per_w"] == pytest.approx(row["tokens_per_kwh"] / 3.6e6)
    assert row["serving_tokens_per_kwh"] > 0


def test_hours_a_month_stand_for_a_utilisation(catalog):
    by_hours = gpucost.tco(gpu="rtx-4090", gpus=2, hours_per_month=146, catalog=catalog)
    by_share = gpucost.tco(gpu="rtx-4090", gpus=2, utilisation="20%", catalog=catalog)
    assert by_hours.payload["npv_usd"] == by_share.payload["npv_usd"]
    with pytest.raises(UsageError, match="given twice"):
        gpucost.tco(gpu="rtx-4090", gpus=2, hours_per_month=146, utilisation="20%", catalog=catalog)


def test_power_and_cooling_stand_apart_and_add_up(catalog):
    answer = gpucost.tco(gpu="h100-sxm", gpus=8, catalog=catalog)
    energy = next(row for row in answer.payload["lines"] if row["name"] == "own_energy_usd")["npv_usd"]
    pue = next(row["value"] for row in answer.payload["assumptions"] if row["name"] == "pue_ratio")
    asked = ("tco", "--gpu", "h100-sxm", "--gpus", "8", "--as-of", DAY, "--details")
    screen = " ".join(in_process(*asked, COLUMNS="80").stdout.split())
    assert f"power {energy / pue:,.0f}, cooling and losses (PUE {pue:g}) {energy * (1 - 1 / pue):,.0f}" in screen


def test_a_processor_is_refused_with_the_reason(catalog):
    for name in ("cpu", "xeon", "epyc 9654"):
        with pytest.raises(UnknownNameError, match="20 TFLOP/s"):
            catalog.accelerator(name)


# nvidia-smi: two GPUs for 30 seconds, one of them idle.

SMI = """timestamp, index, utilization.gpu [%], power.draw [W], memory.used [MiB]
2026/11/20 10:00:00.000, 0, 98 %, 600.00 W, 70000 MiB
2026/11/20 10:00:00.000, 1, 0 %, 120.00 W, 512 MiB
2026/11/20 10:00:10.000, 0, 96 %, 700.00 W, 71680 MiB
2026/11/20 10:00:10.000, 1, 2 %, 120.00 W, 512 MiB
2026/11/20 10:00:20.000, 0, 97 %, 800.00 W, 70100 MiB
2026/11/20 10:00:20.000, 1, [N/A], 120.00 W, 512 MiB
"""


def test_watch_reads_what_nvidia_smi_writes(tmp_path):
    file = tmp_path / "smi.csv"
    file.write_text(SMI, "utf-8")
    rows = {row["what"]: row["now"] for row in rows_of("watch", str(file))}
    assert rows["GPUs"] == 2
    assert rows["hours"] == pytest.approx(30 / 3600)
    assert rows["busy"] == pytest.approx((98 + 96 + 97 + 0 + 2) / 5 / 100)
    assert rows["idle"] == pytest.approx(2 / 5)
    assert rows["energy of the GPUs"] == pytest.approx((600 + 700 + 800 + 360) * 10 / 3.6e6)
    assert rows["memory of a GPU"] == pytest.approx(71680 * 2**20 / 1e9)  # GB, as the estimate beside it


def test_watch_holds_nvidia_smi_against_an_estimate(tmp_path):
    file, saved = tmp_path / "smi.csv", tmp_path / "saved.json"
    file.write_text(SMI, "utf-8")
    estimate = gpucost.estimate("8b", "1b", gpu="h100-sxm", gpus=8, catalog=open_catalog(DAY))
    saved.write_text(estimate.to_json(), "utf-8")
    rows = {row["what"]: row for row in rows_of("watch", str(file), "--estimate", str(saved))}
    assert rows["cost so far"]["now"] == pytest.approx(30 / 3600 * 8 * estimate.best["usd_per_gpu_hour"])
    assert rows["GPUs"]["estimated"] == 8


def test_watch_asks_for_an_estimate_of_a_log_and_names_a_faulty_cell(tmp_path):
    log, faulty = tmp_path / "train.log", tmp_path / "smi.csv"
    log.write_text("step: 10  loss:  4.2  tps: 7,123  tflops: 412.4  mfu: 41.7%\n", "utf-8")
    faulty.write_text(SMI.replace("2026/11/20 10:00:10.000, 0", "noon, 0"), "utf-8")
    assert "--estimate is missing" in in_process("watch", str(log)).stderr
    assert "'noon' is not a time" in in_process("watch", str(faulty)).stderr
