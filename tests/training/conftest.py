"""Engine tests run on a physics of round numbers unless they ask for the real one."""

import pytest
from tests.training.market import round_physics

from gpucost.training import speeds


@pytest.fixture
def round_speeds(monkeypatch):
    monkeypatch.setattr(speeds, "search_layouts", round_physics)
