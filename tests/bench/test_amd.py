"""Power and clocks of AMD GPUs are read as the driver's files say them."""

import pytest

from gpucost.bench import machine


@pytest.fixture
def cards(tmp_path):
    """The driver's files: a display of another maker, an MI300X, and the connector of a screen."""
    sensors = tmp_path / "card1" / "device" / "hwmon" / "hwmon4"
    sensors.mkdir(parents=True)
    for name in ("card0", "card1-DP-1"):
        (tmp_path / name / "device").mkdir(parents=True)
        (tmp_path / name / "device" / "vendor").write_text("0x1a03\n")
    files = {
        "vendor": "0x1002", "product_name": "AMD Instinct MI300X OAM", "gpu_busy_percent": "100",
        "mem_info_vram_used": str(4 * 2**30), "hwmon/hwmon4/power1_input": "500000000",
        "hwmon/hwmon4/power1_cap": "750000000", "hwmon/hwmon4/freq1_input": "2100000000",
        "hwmon/hwmon4/temp2_input": "61000",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / "card1" / "device" / name).write_text(text + "\n")
    return tmp_path


def test_the_drivers_files_are_read(cards):
    (found,) = machine.from_files(cards)
    assert found.name == "AMD Instinct MI300X OAM"
    assert (found.power_w, found.power_limit_w, found.clock_mhz, found.temperature_c) == (500.0, 750.0, 2100.0, 61.0)
    assert (found.memory_used_mib, found.utilisation_percent, found.reasons) == (4096.0, 100.0, 0)
    assert machine.busy([found]) == ["GPU 0 is in use: 4,096 MiB taken, 100 % busy"]


def test_a_bench_watches_amd_gpus_while_it_runs(cards, monkeypatch):
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    monkeypatch.setattr(machine, "CARDS", cards)
    monkeypatch.setattr(machine, "LOOK_S", 0.01)
    begin = machine.time.monotonic()
    with machine.watching() as watch:
        until = begin + 10
        while len(watch.samples) < 3 and machine.time.monotonic() < until:
            machine.time.sleep(0.01)
    assert watch.between(begin, machine.time.monotonic())["power_w"] == 500.0


def test_a_card_whose_driver_says_nothing_gives_no_false_figure(tmp_path):
    assert machine.from_files(tmp_path) == []
    (tmp_path / "card0" / "device").mkdir(parents=True)
    (tmp_path / "card0" / "device" / "vendor").write_text("0x1002\n")
    (found,) = machine.from_files(tmp_path)
    assert (found.power_w, found.clock_mhz, found.temperature_c, found.reasons) == (None, None, None, 0)
