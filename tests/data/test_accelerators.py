"""Accelerators against the arithmetic of their own columns and against public data sheets."""

import pytest

from tests.rules import for_each

from .tables import number, row, rows

ALL = rows("accelerators")

# width of the memory bus in bits and data rate per pin in Gbit/s, from the vendors' data sheets
BUSES = {
    "p100-sxm2-16gb": (4096, 1.43),
    "v100-sxm2-32gb": (4096, 1.752),
    "t4": (256, 10.0),
    "rtx-2080-ti": (352, 14.0),
    "a10": (384, 12.5),
    "rtx-3090": (384, 19.5),
    "rtx-a6000": (384, 16.0),
    "a100-sxm4-40gb": (5120, 2.43),
    "a100-sxm4-80gb": (5120, 3.186),
    "rtx-4090": (384, 21.0),
    "l4": (192, 12.5),
    "l40s": (384, 18.0),
    "h100-sxm5-80gb": (5120, 5.23),
    "h200-sxm-141gb": (6144, 6.25),
    "rtx-5090": (512, 28.0),
    "rtx-pro-6000-bw-ws": (512, 28.0),
    "mi250x": (8192, 3.2),
    "mi300x": (8192, 5.2),
    "mi325x": (8192, 6.0),
    "mi355x": (8192, 8.0),
    "rx-7900-xtx": (384, 20.0),
    "arc-pro-b60-24gb": (192, 19.0),
    "rtx-5080": (256, 30.0),
    "rtx-5070-ti": (256, 28.0),
    "rtx-pro-5000-bw-48gb": (384, 28.0),
    "rtx-pro-4500-bw": (256, 28.0),
    "rtx-pro-4000-bw": (192, 28.0),
    "rtx-a4500": (320, 16.0),
    "rtx-2000-ada": (128, 14.0),
    "rtx-3060": (192, 15.0),
    "gtx-1080": (256, 10.0),
    "p4": (256, 6.0),
    "m60": (256, 5.0),
    "a2": (128, 12.5),
    "t4g": (256, 10.0),
    "mi100": (4096, 2.4),
    "radeon-pro-v520": (2048, 2.0),
    "radeon-pro-v620": (256, 16.0),
    "radeon-pro-v710": (224, 16.0),
    "jetson-agx-thor-128gb": (256, 8.533),
    "ryzen-ai-max-395": (256, 8.0),
    "apple-m2-10c": (128, 6.4),
    "apple-m4-max-40c": (512, 8.533),
    "apple-m5-max-40c": (512, 9.6),
    "tpu-v2": (2048, 2.8),
}

# dense bf16 (fp16 before Ampere) in TFLOPS and memory bandwidth in GB/s as the vendor's page states them
DATA_SHEETS = {
    "v100-sxm2-32gb": (125, 900),
    "a100-sxm4-80gb": (312, 2039),
    "h100-sxm5-80gb": (989.4, 3350),
    "h100-pcie-80gb": (756, 2000),
    "h200-sxm-141gb": (989.4, 4800),
    "h20": (148, 4000),
    "b200-sxm": (2250, 7700),
    "gb200-nvl72-gpu": (2500, 8000),
    "l4": (121, 300),
    "l40s": (362, 864),
    "mi300x": (1307.4, 5300),
    "mi355x": (2500, 8000),
    "gaudi2": (432, 2450),
    "tpu-v5e": (197, 819),
    "tpu-v5p": (459, 2765),
    "tpu-v6e": (918, 1640),
    "trainium2": (667, 2900),
    "mi455x": (10000, 23300),
    "mi100": (92.3, 1228.8),
    "ascend-910c": (752, 3200),
    "inferentia1": (64, 53.7),
    "a2": (18, 200),
}

# bytes per second and direction: half of the total that vendors print
LINKS = {
    "v100-sxm2-32gb": 150,
    "a100-sxm4-80gb": 300,
    "a800-sxm4-80gb": 200,
    "h100-sxm5-80gb": 450,
    "h800-sxm5-80gb": 200,
    "b200-sxm": 900,
    "gb200-nvl72-gpu": 900,
    "mi300x": 448,
    "gaudi3": 525,
    "l40s": 0,
    "rtx-4090": 0,
}

# what nvidia-smi prints as total, in MiB
REPORTED_MIB = {
    "h100-sxm5-80gb": 81559,
    "h100-nvl-94gb": 95830,
    "h200-sxm-141gb": 143771,
    "b200-sxm": 183359,
    "b300-sxm": 275040,
    "gb200-nvl72-gpu": 189471,
    "gb300-nvl72-gpu": 284208,
    "rtx-pro-6000-bw-server": 97887,
}

SAME_RATE_FP8 = {"gaudi3", "trainium1", "inferentia2", "tpu-v5p", "tpu-v6e"}  # fp8 runs at the bf16 rate
FASTER_FP8 = {"trainium3": 3.75, "rubin-vr-nvl72-gpu": 4.375}
FP4_PER_FP8 = {
    "b300-sxm": 3.0, "gb300-nvl72-gpu": 3.0, "rtx-5090": 4.0, "rtx-5080": 4.0, "rtx-5070-ti": 4.0, "trainium3": 1.0,
}  # fmt: skip
TF32_LIKE_BF16 = {"trainium1", "trainium2", "trainium3", "inferentia2"}
FP16_SLOWER = {"gaudi3"}
BF16_SLOWER = {"mi100"}


@for_each("name", BUSES)
def test_bandwidth_is_bus_width_times_data_rate(name):
    bits, gbit_per_pin = BUSES[name]
    assert float(row("accelerators", name)["hbm_gb_per_s"]) == pytest.approx(bits * gbit_per_pin / 8, rel=0.03)


@for_each("name", DATA_SHEETS)
def test_peaks_are_the_dense_ones_of_the_data_sheet(name):
    item = row("accelerators", name)
    peak, bandwidth = DATA_SHEETS[name]
    assert float(item["bf16_tflops"] or item["fp16_tflops"]) == pytest.approx(peak, rel=0.01)
    assert float(item["hbm_gb_per_s"]) == pytest.approx(bandwidth, rel=0.02)


@for_each("name", LINKS)
def test_links_are_per_gpu_and_one_direction(name):
    assert float(row("accelerators", name)["scaleup_gb_per_s"]) == LINKS[name]


@for_each("name", REPORTED_MIB)
def test_memory_is_what_the_driver_reports(name):
    assert float(row("accelerators", name)["memory_gib"]) == pytest.approx(REPORTED_MIB[name] / 1024, abs=0.01)


@for_each("item", ALL, lambda item: item["id"])
def test_ratios_between_precisions(item):
    name = item["id"]
    tf32, bf16, fp16, fp8, fp4 = (number(item[f"{kind}_tflops"]) for kind in ("tf32", "bf16", "fp16", "fp8", "fp4"))
    if tf32 and bf16 and name not in FP16_SLOWER:
        assert bf16 / tf32 == pytest.approx(1.0 if name in TF32_LIKE_BF16 else 2.0, rel=0.03)
    if bf16 and fp16 and name not in FP16_SLOWER | BF16_SLOWER:
        assert fp16 == bf16
    if bf16 and fp8:
        expected = 1.0 if name in SAME_RATE_FP8 else FASTER_FP8.get(name, 2.0)
        assert fp8 / bf16 == pytest.approx(expected, rel=0.03)
    if fp8 and fp4:
        assert fp4 / fp8 == pytest.approx(FP4_PER_FP8.get(name, 2.0), rel=0.03)


@for_each("item", ALL, lambda item: item["id"])
def test_usable_memory_lies_below_the_marketed_size(item):
    """Marketed gigabytes are 2^30 bytes of the stacks for most; drivers keep some for themselves."""
    usable, marketed = float(item["memory_gib"]), float(item["memory_marketed_gb"])
    floor = 0.65 if item["vendor"] == "Apple" else 0.9
    assert floor * marketed <= usable <= 1.04 * marketed


@for_each("item", ALL, lambda item: item["id"])
def test_links_and_domains_agree(item):
    alone = int(item["scaleup_gpus"]) == 1
    assert not alone or item["scaleup_link"] == "none" or float(item["scaleup_gb_per_s"]) >= 0
    assert alone or float(item["scaleup_gb_per_s"]) > 0
    if "bridge" in item["scaleup_link"] and item["vendor"] == "NVIDIA":
        assert int(item["scaleup_gpus"]) == (4 if item["id"] == "h200-nvl-141gb" else 2)


def test_the_peaks_of_the_mi455x_are_the_stated_ones_and_dense():
    """40 PFLOP/s FP4 and 20 FP8: half of that is no peak of its."""
    item = row("accelerators", "mi455x")
    assert (number(item["fp4_tflops"]), number(item["fp8_tflops"])) == (40_000, 20_000)
    assert number(item["sparse_ratio"]) == 1


def test_missing_is_empty_and_never_zero():
    peaks = [column for column in ALL[0] if column.endswith("_tflops")]
    assert not [(item["id"], peak) for item in ALL for peak in peaks if item[peak] in ("0", "0.0")]
    assert row("accelerators", "v100-sxm2-32gb")["bf16_tflops"] == ""


@for_each("item", rows("systems"), lambda item: item["id"])
def test_a_node_is_no_faster_than_its_accelerators(item):
    accelerator = row("accelerators", item["accelerator_id"])
    assert float(item["scaleup_gb_per_s"]) <= float(accelerator["scaleup_gb_per_s"])
    if int(item["scaleup_gpus"]) > 1:
        assert float(item["scaleup_gb_per_s"]) > 0
    else:
        assert float(item["scaleup_gb_per_s"]) == 0
    if item["scaleout_gb_per_s"]:
        assert item["fabric"], "a scale-out bandwidth without a named network"


@pytest.mark.parametrize(
    ("name", "gigabytes_per_s"),
    [
        ("dgx-h100", 50),  # 400 Gbit/s per GPU, one direction
        ("aws-p5.48xlarge", 50),  # 3,200 Gbit/s ÷ 8 GPUs ÷ 8 bits
        ("aws-p4d.24xlarge", 6.25),  # 400 Gbit/s ÷ 8 ÷ 8
        ("azure-nd96asr-v4", 25),  # 200 Gbit/s per GPU
        ("gcp-a3-highgpu-8g", 12.5),  # 800 Gbit/s ÷ 8 ÷ 8
        ("gb200-nvl72", 50),
    ],
)
def test_scale_out_per_gpu_and_direction(name, gigabytes_per_s):
    assert float(row("systems", name)["scaleout_gb_per_s"]) == gigabytes_per_s


def test_no_network_means_no_clusters():
    for name in ("lambda-gpu-8x-h100-sxm5", "aws-g5.xlarge", "runpod-8x-h100-sxm5-80gb"):
        assert row("systems", name)["scaleout_gb_per_s"] == ""
