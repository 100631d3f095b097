"""How often an offer is interrupted where nobody measured it: one prior per provider and region class."""

import pytest

from gpucost.market.interruptions import InterruptionRates, unmeasured
from tests.training.market import BUCKET


def bucket(instance, region, low, high):
    ends = {"interruptions_per_instance_hour_low": low, "interruptions_per_instance_hour_high": high}
    return {**BUCKET, "instance_type": instance, "region": region, **ends}


NOBODY = (unmeasured().low, unmeasured().value, unmeasured().high)
CALM = [bucket(name, "us-east-1", 1e-5, 4e-5) for name in "abcde"]
ROUGH = [bucket(name, "eu-west-1", 1e-3, 4e-3) for name in "abcde"]


def test_what_was_measured_goes_first():
    found = InterruptionRates([*CALM, bucket("own", "us-west-2", 1e-2, 4e-2)]).of("acme", "own", "us-west-2")
    assert found.measured
    assert found.three == pytest.approx((1e-2, 2e-2, 4e-2))


def test_a_prior_is_the_spread_of_the_providers_products_in_the_region_class():
    rates = InterruptionRates([*CALM, *ROUGH])
    for region, three in (("us-west-9", (1e-5, 2e-5, 4e-5)), ("eu-north-1", (1e-3, 2e-3, 4e-3))):
        found = rates.of("acme", "new", region)
        assert not found.measured
        assert found.three == pytest.approx(three)
    low, typical, high = rates.of("acme", "new", "ap-south-1").three  # a class without products: all of the provider
    assert (low, high) == pytest.approx((1e-5, 4e-3))
    assert low <= typical <= high


def test_other_providers_get_the_widest_prior():
    found = InterruptionRates([*CALM, *ROUGH]).of("other", "a", "us-east-1")
    assert not found.measured
    assert found.three == NOBODY
    low, typical, high = found.three
    assert typical == pytest.approx((low * high) ** 0.5)


def test_one_product_is_no_prior_for_others():
    assert InterruptionRates([BUCKET]).of("acme", "new", "us-east-1").three == NOBODY
