"""Sweeps that leave the size of the cluster open."""

import gpucost
from gpucost.training import search, sweep


def test_what_is_searched_at_once_stays_small(monkeypatch):
    """Each offer is tried in some ten sizes, at a kilobyte each: hundreds of requests at once would fill the memory."""
    tried = []

    def counted(problem):
        found = search.search(problem)
        tried.append(len(found[0]))
        return found

    monkeypatch.setattr(sweep, "search", counted)
    tokens = [1e10 * count for count in range(1, 31)]
    table = gpucost.sweep(model="8b", gpu="h100-sxm", tokens=tokens).to_frame()
    assert len(table) == len(tokens)
    assert len(tried) > 1
    assert max(tried) < 20_000
    alone = gpucost.estimate("8b", tokens[20], gpu="h100-sxm").best
    assert table["cost_usd"].iloc[20] == alone["cost_usd"]
