"""Shaping of raw change points: a small folder of every form, whose rows one can tell by hand."""

import gzip

from benchmarks.history import shaped, written
from gpucost.catalog.names import NameIndex
from gpucost.refresh.known import Known

KARPENTER = """observed_on,cloud,instance,region,on_demand,spot,event,commit,committed_on
2023-01-05,aws,p5.48xlarge,us-east-1,98.32,,first,a,2023-01-05
2023-05-01,aws,p5.48xlarge,us-east-1,36.08,,change,a,2023-05-01
2025-06-23,aws,p5.48xlarge,us-east-1,55.04,,change,a,2025-06-23
2024-01-01,aws,m5.large,us-east-1,0.096,,first,a,2024-01-01
2026-05-04,gcp,a3-highgpu-8g,us-east4,88.49,40,first,a,2026-05-04
2026-06-10,gcp,a3-highgpu-8g,us-east4,88.49,,change,a,2026-06-10
2026-07-01,gcp,a3-highgpu-8g,us-east4,88.49,,gone,a,2026-07-01
"""
CYCLENERD = """observed_on,cloud,instance,region,on_demand,spot,cud_1y,cud_3y,event,commit
2022-02-09,gcp,a2-ultragpu-1g,us-east4,5.07,,3.6,2.5,first,a
2022-10-06,gcp,a2-ultragpu-1g,us-east4,5.07,1.8,1.1,0.9,change,a
"""
DAILY = """observed_on,cloud,instance,gpu,gpus,region,spot_min,spot_max,zones,on_demand
2023-01-01,aws,p5.48xlarge,H100,8.0,us-east-1,30,30,1,98.32
2023-01-02,aws,p5.48xlarge,H100,8.0,us-east-1,30.2,30.2,1,98.32
2023-01-03,aws,p5.48xlarge,H100,8.0,us-east-1,30.2,31,2,98.32
2023-01-04,aws,p5.48xlarge,H100,8.0,us-east-1,0,0,2,98.32
"""
SKYPILOT = """observed_on,cloud,instance,gpu,gpus,gpu_mib,region,on_demand,spot,event,catalog,commit
2023-01-17,lambda,gpu_1x_h100,H100,1.0,,us-west-1,2.4,,first,v5,a
2023-01-17,lambda,gpu_1x_h100,H100,1.0,,us-east-1,2.4,,first,v5,a
2023-02-01,aws,p5.48xlarge,H100,8.0,,us-east-1,98.32,33,spot,v5,a
2023-01-17,gcp,,H100,8.0,,us-east4,40,20,first,v5,a
2023-01-17,aws,g6f.large,L4,0.125,,us-east-1,0.2,,first,v5,a
"""


def test_raw_rows_become_change_points_and_what_is_left_out_is_counted(tmp_path):
    texts = {"karpenter_history": KARPENTER, "cyclenerd_history": CYCLENERD, "skypilot_history": SKYPILOT,
             "skypilot_spot_daily": DAILY}  # fmt: skip
    for name, text in texts.items():
        with gzip.open(tmp_path / f"{name}.csv.gz", "wt") as file:
            file.write(text)
    products = [("aws", "p5.48xlarge", "h100-sxm5-80gb", 8, None), ("gcp", "a3-highgpu-8g", "h100-sxm5-80gb", 8, None),
                ("gcp", "a2-ultragpu-1g", "a100-sxm4-80gb", 1, None)]  # fmt: skip
    nothing = NameIndex("accelerator", {}, {})
    rows, drops = shaped(tmp_path, Known(nothing, {}, products, (), nothing), {})
    found = [(row[1], row[5], row[6], row[7], row[8], row[9], row[10]) for row in rows]
    assert found == [
        ("p5.48xlarge", "on_demand", 0, 98.32, None, "2023-01-05", "first"),
        ("p5.48xlarge", "on_demand", 0, 55.04, None, "2025-06-23", "change"),
        ("p5.48xlarge", "spot", 0, 30.0, None, "2023-01-01", "first"),
        ("p5.48xlarge", "spot", 0, 30.2, 31.0, "2023-01-03", "change"),  # its dearest zone moved by 3 %
        ("a2-ultragpu-1g", "commitment", 12, 3.6, None, "2022-02-09", "first"),
        ("a2-ultragpu-1g", "commitment", 12, None, None, "2022-10-06", "gone"),  # a fault ends what was known
        ("a2-ultragpu-1g", "commitment", 36, 2.5, None, "2022-02-09", "first"),
        ("a2-ultragpu-1g", "commitment", 36, None, None, "2022-10-06", "gone"),
        ("a2-ultragpu-1g", "on_demand", 0, 5.07, None, "2022-02-09", "first"),
        ("a2-ultragpu-1g", "spot", 0, 1.8, None, "2022-10-06", "first"),
        ("a3-highgpu-8g", "on_demand", 0, 88.49, None, "2026-05-04", "first"),
        ("a3-highgpu-8g", "on_demand", 0, None, None, "2026-07-01", "gone"),
        ("a3-highgpu-8g", "spot", 0, 40.0, None, "2026-05-04", "first"),
        ("a3-highgpu-8g", "spot", 0, None, None, "2026-06-10", "gone"),
        ("gpu_1x_h100", "on_demand", 0, 2.4, None, "2023-01-17", "first"),  # one list for every region
    ]
    assert sum(drops.values()) == 9  # m5.large and an eighth of an L4 for one reason, of two sources
    assert {reason.split(",")[0].split(":")[0]: count for (_, reason), count in drops.items()} == {
        "versions of 2023-02-01 to 2023-09-17 hold wrong prices of GPU instances": 1,
        "no accelerator of the catalog": 1,
        "commitments for a2-ultragpu from 2022-10-06 on are wrong": 2,
        "a daily step of spot below 1 %": 1,
        "no price": 1,
        "a spot step that the daily series tells too": 1,
        "a GPU without its host": 1,
    }
    written(rows, tmp_path)
    assert (tmp_path / "aws-spot.csv").read_text().splitlines()[1].endswith(",30,,2023-01-01,first," + rows[2][11])
    assert (tmp_path / "gcp.csv").read_text().count("\n") == 11
