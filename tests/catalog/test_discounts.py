"""Discounts name things as every command does; what names nothing is refused, what matches nothing is said."""

import pytest
from click.testing import CliRunner

from gpucost.catalog import open_catalog
from gpucost.errors import DataError

DAY = "2026-11-20"


def lowest(book=None, **wanted):
    found = open_catalog(DAY, book=book).offers(
        **{"provider": "aws", "gpu": "h100-sxm", "option": "on_demand", **wanted}
    )
    return min(offer.usd_per_gpu_hour for offer in found)


@pytest.fixture
def book(tmp_path):
    def write(*lines, name="book.toml"):
        path = tmp_path / name
        path.write_text("[[discount]]\nfraction = 0.2\n" + "\n".join(lines) + "\n")
        return path

    return write


@pytest.mark.parametrize(
    "lines",
    [
        ('gpu = "h100-sxm"',),
        ('gpu = "H100 SXM5 80GB"',),
        ('gpu = "h100"',),
        ('gpu = "l4, h100-sxm"',),
        ('provider = "AWS"',),
        ('provider = "Amazon"',),
        ('option = "on-demand"',),
        ('option = "On Demand, spot"',),
        ('provider = "AWS"', 'gpu = "h100-sxm"', 'option = "on-demand"', 'instance_type = "P5.48XLARGE"'),
        ("valid_from = 2026-01-01", "valid_until = 2026-12-31"),
    ],
)
def test_a_discount_is_found_by_any_name_that_a_command_takes(book, lines):
    assert lowest(book(*lines)) == pytest.approx(0.8 * lowest())


def test_a_discount_in_a_table_is_read_alike(tmp_path):
    (tmp_path / "discounts.csv").write_text("provider,gpu,option,fraction\nAWS,h100-sxm,on-demand,0.2\n")
    assert lowest(tmp_path) == pytest.approx(0.8 * lowest())


@pytest.mark.slow
def test_a_discount_spares_what_it_does_not_name(book):
    assert lowest(book('gpu = "b200"')) == lowest()
    assert lowest(book('option = "spot"')) == lowest()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('gpu = "h1000"', "unknown accelerator"),
        ('provider = "awss"', "aws"),
        ('option = "on-demnd"', "on_demand"),
        ('region = "us-esat-1"', "us-east-1"),
        ('instance_type = "p5.48xlrge"', "p5.48xlarge"),
        ("gpu = 3", "3"),
        ('provider = ""', "provider"),
        ('valid_from = "soon"', "YYYY-MM-DD"),
        ("valid_from = 2026-02-01\nvalid_until = 2026-01-01", "end before"),
    ],
)
def test_what_a_discount_names_and_nobody_knows_is_refused_by_its_column(book, line, reason):
    path = book(line)
    with pytest.raises(DataError, match=reason) as error:
        lowest(path)
    assert line.split(" ")[0] in str(error.value) or "valid_until" in str(error.value)


@pytest.mark.slow
def test_a_check_says_which_discount_matches_nothing(book, monkeypatch):
    from gpucost.cli import cli

    path = book('provider = "lambda"', 'option = "spot"', 'gpu = "h100-sxm"')
    said = CliRunner().invoke(cli, ["data", "check", str(path), "--format", "json"]).output
    assert "no price" in said
    assert "provider lambda" in said
    good = book('provider = "aws"')
    assert "no price" not in CliRunner().invoke(cli, ["data", "check", str(good), "--format", "json"]).output


def test_a_bill_and_a_catalog_take_off_the_same():
    import duckdb

    from gpucost.money.private_discount import paid_fraction, paid_fraction_sql

    cases = [(f, floor, price) for f in (0.1, 0.5) for floor in (None, 0.0, 1.9, 2.5, 9.0) for price in (2.0, 3.7)]
    with duckdb.connect() as connection:
        for fraction, floor, price in cases:
            paid = paid_fraction_sql("f", "l", "p")
            sql = f"SELECT {paid} FROM (SELECT ?::DOUBLE AS f, ?::DOUBLE AS l, ?::DOUBLE AS p)"
            assert connection.execute(sql, [fraction, floor, price]).fetchone() == (
                paid_fraction(fraction, floor, price),
            )
