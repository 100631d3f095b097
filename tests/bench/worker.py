"""A measuring process without a GPU: speaks the lines of the real one, and misbehaves where a case asks for it."""

import json
import os
import sys
import time
from pathlib import Path

gpus = int(os.environ.get("STAND_IN_GPUS", "2"))
device = {"pytorch": "none", "device": os.environ.get("STAND_IN", "NVIDIA H100 80GB HBM3"), "gpus": gpus}
sick = os.environ.get("STAND_IN_SICK", "none") == (os.environ.get("CUDA_VISIBLE_DEVICES") or os.environ["LOCAL_RANK"])
if os.environ.get("STAND_IN_DIES") or (sick and os.environ["STAND_IN_SICKNESS"] == "dies"):
    sys.exit("no driver was found")
if os.environ.get("STAND_IN_SICKNESS") == "dies" and os.environ["WORLD_SIZE"] == "2":
    time.sleep(600)  # as a collective does whose other rank is gone
print("a library that greets", flush=True)
print(json.dumps({"software": {**device, "memory_gib": 79.2}}), flush=True)
for line in sys.stdin:
    case = json.loads(line)
    moods = json.loads(os.environ.get("STAND_IN_MOODS", "{}"))
    mood = moods.get(case["id"], "")
    if mood == "loses a rank":
        if os.environ["RANK"] == "1":
            sys.exit("fell off the bus")
        time.sleep(600)
    if mood == "is killed" and os.environ["RANK"] == "1":
        os.kill(os.getpid(), 9)
    if mood in ("hangs", "is killed"):
        time.sleep(600)
    if mood == "dies":
        sys.exit("an illegal memory access")
    if mood == "fails":
        print(json.dumps({"id": case["id"], "failed": "out of memory: needs 99.0 GB, 80.0 GB are free"}), flush=True)
        continue
    moved = (
        1.02 ** Path(os.environ["STAND_IN_LOG"]).read_text().splitlines().count(case["id"]) if mood == "moves" else 1.0
    )
    rate = {"tflops": 700.0, "gb_per_s": 3000.0, "bus_gb_per_s": 350.0, "tokens_per_s_per_gpu": 1000.0}
    with open(os.environ["STAND_IN_LOG"], "a") as log:
        log.write(case["id"] + "\n")
    times = {"time_s": (0.002 if sick else 0.001) * moved, "spread_fraction": 0.01}
    bound = {"bound": "host"} if case["op"] == "launch" else {}
    print(json.dumps({"id": case["id"], "figures": {**times, **rate, **bound}}), flush=True)
