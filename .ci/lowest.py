"""Print the lowest version of every dependency that pyproject.toml allows, as constraints for pip.

What these need themselves stays at the version that was tested, but for the core of pydantic, which goes with it.
"""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
lowest = {}
for bound in project["dependencies"]:
    found = re.match(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", bound)
    if not found:
        raise SystemExit(f"{bound}: a dependency states its lowest version as name>=version")
    lowest[found[1].lower()] = f"{found[1]}=={found[2]}"
print(*lowest.values(), sep="\n")
for line in Path("constraints.txt").read_text("utf-8").splitlines():
    if not line.startswith("#") and line.partition("==")[0] not in {*lowest, "pydantic-core"}:
        print(line)
