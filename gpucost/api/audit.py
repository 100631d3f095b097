"""`gpucost.audit(...)`: whether a claim is possible, and what would be true."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gpucost.api.result import Result

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


@dataclass(frozen=True, slots=True)
class AuditResult(Result):
    """The verdict on a claim and the checks behind it."""

    kind: ClassVar[str] = "audit"
    rows_key: ClassVar[str] = "checks"

    @property
    def verdict(self) -> str:
        """`possible`, `implausible`, `impossible` or `unknown`."""
        return str(self.payload["verdict"])

    @property
    def possible(self) -> bool:
        """Whether no check found the claim impossible."""
        return self.verdict != "impossible"


def audit(*, catalog: "Catalog | None" = None, as_of: str | None = None, **claim: Any) -> AuditResult:
    """Return whether a claim is possible.

    Takes what the command takes, with underscores: model, tokens, gpu, gpus, days, hours, gpu_hours, cost, precision,
    method, sequence, fits, weights_gb, training_gb, tokens_per_s, batch, buy, rent_monthly, own_monthly,
    payback_months, hours_per_month, discount.
    """
    from gpucost.claims import audit as judge
    from gpucost.claims import make_claim

    said = make_claim(**claim)
    if catalog is None:
        from gpucost.catalog import open_catalog

        catalog = open_catalog(as_of)
    return AuditResult(judge(said, catalog))
