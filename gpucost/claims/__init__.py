"""Auditing claims: is what someone says about time, cost, memory, serving speed or payback possible, and what would be true?"""

from gpucost.claims.audit import Claim, audit, make_claim

__all__ = ["Claim", "audit", "make_claim"]
