from gpucost.ask.audit import audit as audit
from gpucost.ask.estimate import estimate as estimate
from gpucost.ask.fit import fit as fit
from gpucost.ask.inference import inference as inference
from gpucost.ask.invoices import commit as commit
from gpucost.ask.invoices import export as export
from gpucost.ask.invoices import reconcile as reconcile
from gpucost.ask.relations import relations as relations
from gpucost.ask.speed import roofline as roofline
from gpucost.ask.speed import throughput as throughput
from gpucost.ask.tco import mix as mix
from gpucost.ask.tco import tco as tco
from gpucost.catalog import Catalog as Catalog
from gpucost.catalog import open_catalog as open_catalog
from gpucost.errors import GpuCostError as GpuCostError
from gpucost.library.choose import choose as choose
from gpucost.library.compare import compare as compare
from gpucost.library.report import report as report
from gpucost.library.sweep import sweep as sweep

QUESTION_MODULES: dict[str, str]
__version__: str
