"""`gpucost.audit(...)`: whether a claim is possible, and what would be true."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpucost.api.asking import opened
from gpucost.api.result import Result
from gpucost.catalog import Catalog


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Result):
    """The verdict on a claim and the checks behind it."""

    @property
    def verdict(self) -> str:
        """`possible`, `implausible`, `impossible` or `unknown`."""
        return str(self.payload["verdict"])

    @property
    def exit_code(self) -> int:
        """5 where the claim is impossible."""
        return 0 if self.possible else 5

    @property
    def possible(self) -> bool:
        """Whether no check found the claim impossible."""
        return self.verdict != "impossible"


def answer(given: Mapping[str, Any], catalog: Catalog | None = None) -> AuditResult:
    """Answer from arguments as they were given."""
    from gpucost.claims import audit, make_claim

    return AuditResult(audit(make_claim(**given), opened("audit", given, catalog)[1]))
