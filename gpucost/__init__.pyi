from gpucost.api.questions import audit as audit
from gpucost.api.questions import choose as choose
from gpucost.api.questions import commit as commit
from gpucost.api.questions import compare as compare
from gpucost.api.questions import estimate as estimate
from gpucost.api.questions import fit as fit
from gpucost.api.questions import inference as inference
from gpucost.api.questions import mix as mix
from gpucost.api.questions import reconcile as reconcile
from gpucost.api.questions import roofline as roofline
from gpucost.api.questions import tco as tco
from gpucost.api.questions import throughput as throughput
from gpucost.api.reconcile import export as export
from gpucost.api.report import report as report
from gpucost.api.sweep import sweep as sweep
from gpucost.catalog import Catalog as Catalog
from gpucost.catalog import open_catalog as open_catalog
from gpucost.errors import GpuCostError as GpuCostError

__version__: str
