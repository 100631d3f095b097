"""Engine tests run on a physics of round numbers unless they ask for the real one."""

import pytest

from gpucost.workloads import speeds
from tests.training.market import round_physics


@pytest.fixture
def round_speeds(monkeypatch):
    monkeypatch.setattr(speeds, "search_layouts", round_physics)
