"""Auditing claims about time, cost, memory, speed, specifications, prices, energy and payback."""

from gpucost.claims.audit import audit, make_claim

__all__ = ["audit", "make_claim"]
