"""Auditing claims about time, cost, memory, speed, specifications, prices, energy and payback; also in sentences."""

from gpucost.claims.audit import audit, make_claim

__all__ = ["audit", "make_claim"]
