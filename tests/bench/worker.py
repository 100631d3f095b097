"""A measuring process without a GPU: speaks the lines of the real one, and misbehaves where a case asks for it."""

import json
import os
import sys
import time

device = {"pytorch": "none", "device": os.environ.get("STAND_IN", "NVIDIA H100 80GB HBM3"), "gpus": 2}
if os.environ.get("STAND_IN_DIES"):
    sys.exit("no driver was found")
print("a library that greets", flush=True)
print(json.dumps({"software": {**device, "memory_gib": 79.2}}), flush=True)
for line in sys.stdin:
    case = json.loads(line)
    moods = json.loads(os.environ.get("STAND_IN_MOODS", "{}"))
    mood = moods.get(case["id"], "")
    if mood == "hangs":
        time.sleep(600)
    if mood == "dies":
        sys.exit("an illegal memory access")
    if mood == "fails":
        print(json.dumps({"id": case["id"], "failed": "out of memory: needs 99.0 GB, 80.0 GB are free"}), flush=True)
        continue
    rate = {"tflops": 700.0, "gb_per_s": 3000.0, "bus_gb_per_s": 350.0, "tokens_per_s_per_gpu": 1000.0}
    with open(os.environ["STAND_IN_LOG"], "a") as log:
        log.write(case["id"] + "\n")
    print(json.dumps({"id": case["id"], "figures": {"time_s": 0.001, "spread_fraction": 0.01, **rate}}), flush=True)
