"""Power and clocks of AMD GPUs are read as the driver's files, `amd-smi` and `rocm-smi` say them."""

import json

import pytest

from gpucost.bench import machine

# As `rocm-smi --json` says it of an MI250X of 2023, and of an MI300X.
ROCM = {
    "card0": {
        "Temperature (Sensor edge) (C)": "45.0", "Temperature (Sensor junction) (C)": "52.0",
        "sclk clock speed:": "(1090Mhz)", "socclk clock speed:": "(1090Mhz)", "Max Graphics Package Power (W)": "560.0",
        "Average Graphics Package Power (W)": "128.0", "GPU use (%)": "100", "VRAM Total Memory (B)": "68702699520",
        "VRAM Total Used Memory (B)": "10485760", "Card series": "AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2",
    },
    "card1": {
        "Current Socket Graphics Package Power (W)": "746.0", "Max Graphics Package Power (W)": "750.0",
        "sclk clock speed:": "(2105Mhz)", "GPU use (%)": "N/A", "Card Series": "AMD Instinct MI300X",
        "Temperature (Sensor junction) (C)": "71.0",
    },
    "system": {"Driver version": "6.8.5"},
}  # fmt: skip
METRIC = {
    "gpu": 0,
    "usage": {"gfx_activity": {"value": 97, "unit": "%"}, "umc_activity": {"value": 31, "unit": "%"}},
    "power": {"socket_power": {"value": 741, "unit": "W"}, "gfx_voltage": "N/A"},
    "clock": {"gfx_0": {"clk": {"value": 1812, "unit": "MHz"}, "min_clk": {"value": 132, "unit": "MHz"},
                        "max_clk": {"value": 2100, "unit": "MHz"}, "clk_locked": "DISABLED"}},
    "temperature": {"edge": "N/A", "hotspot": {"value": 68, "unit": "C"}},
    "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 284, "unit": "MB"}},
    "throttle": {"ppt_violation_status": "ACTIVE", "prochot_violation_status": "NOT ACTIVE",
                 "hbm_thermal_violation_status": "N/A"},
}  # fmt: skip


def test_rocm_smi_is_read_in_the_words_of_two_generations():
    old, new = machine.from_rocm_smi(ROCM)
    assert (old.power_w, old.power_limit_w, old.clock_mhz, old.temperature_c) == (128.0, 560.0, 1090.0, 52.0)
    assert (old.memory_used_mib, old.utilisation_percent, old.driver) == (10.0, 100.0, "6.8.5")
    assert machine.slowed_by(old.reasons) == []
    assert (new.power_w, new.utilisation_percent, new.name) == (746.0, None, "AMD Instinct MI300X")
    assert machine.slowed_by(new.reasons) == ["power cap"]


@pytest.mark.parametrize("answer", [[METRIC], {"gpu_data": [METRIC]}])
def test_amd_smi_is_read_before_and_since_rocm_7(answer):
    (found,) = machine.from_amd_smi(answer)
    assert (found.power_w, found.clock_mhz, found.clock_max_mhz) == (741.0, 1812.0, 2100.0)
    assert (found.temperature_c, found.memory_used_mib, found.utilisation_percent) == (68.0, 284.0, 97.0)
    assert machine.slowed_by(found.reasons) == ["power cap"]


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


@pytest.mark.parametrize("said", ["", "not json", "[]", "{}", '{"gpu_data": [7]}', "[null]", '{"card0": {}}'])
def test_a_tool_that_says_nothing_of_use_gives_no_false_figure(said, monkeypatch, tmp_path):
    done = type("Done", (), {"stdout": said})
    monkeypatch.setattr(machine.shutil, "which", lambda name: name)
    monkeypatch.setattr(machine, "CARDS", tmp_path)
    monkeypatch.setattr(machine.subprocess, "run", lambda *words, **how: done)
    assert all(sample.power_w is None for sample in machine.look_amd())
    assert json.dumps(machine.look_amd())
