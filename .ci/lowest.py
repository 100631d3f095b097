"""Print the lowest version of every dependency that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
for bound in project["dependencies"]:
    found = re.match(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", bound)
    if not found:
        raise SystemExit(f"{bound}: a dependency states its lowest version as name>=version")
    print(f"{found[1]}=={found[2]}")
