"""Auditing claims about time, cost, memory, serving speed and payback: what is possible, and what would be true."""

from gpucost.claims.audit import audit, make_claim

__all__ = ["audit", "make_claim"]
