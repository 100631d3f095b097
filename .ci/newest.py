"""Write constraints.txt anew: of every dependency the newest version that pyproject.toml allows, and for which Python.

python .ci/newest.py          needs the program uv
python .ci/newest.py --keep   adds what pyproject.toml asks for and the file lacks, drops what it asks for no more
"""

import subprocess
import sys
from pathlib import Path

HEAD = "# The versions that were tested, of Python 3.11 to 3.14. Made by .ci/newest.py; change it there.\n"
TOOLS = "build\nhatchling\n"  # what .ci/run makes the wheel with
FILE = Path("constraints.txt")

asked = ["uv", "pip", "compile", "-q", "pyproject.toml", "-", "--universal", "--python-version", "3.11"]
asked += ["--extra", "test", "--extra", "docs", "--no-header", "--no-annotate", "-o", str(FILE)]
subprocess.run([*asked, *([] if "--keep" in sys.argv else ["--upgrade"])], input=TOOLS, text=True, check=True)
FILE.write_text(HEAD + FILE.read_text("utf-8"), "utf-8")
