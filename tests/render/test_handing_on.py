"""Reports that are handed on: stamped, safe to share, and figures put into a workbook of one's own."""

import json
import zipfile
from datetime import datetime
from fractions import Fraction

import openpyxl
import pytest
from click.testing import CliRunner
from numpy import datetime64

import gpucost
from gpucost.answers.saved import seal_of
from gpucost.cli import cli
from gpucost.errors import GpuCostError, UsageError
from gpucost.library.report import shareable
from gpucost.render.json import dumps
from tests.render import answers

SECRETS = (b"mysteriouscloud", b"acme-secret", b"1.298376", b"hush-hush", b"quotes-of-acme", b"76543.2", b"credits_usd",
           b"your price book")  # fmt: skip
BOOK = """
[[offer]]
provider = "mysteriouscloud"
gpu = "h100-sxm"
gpus = 8
usd_per_gpu_hour = 1.298376
observed_on = 2026-11-01
notes = "hush-hush"

[[discount]]
provider = "crusoe"
fraction = 0.37

[[credit]]
usd = 76543.21
"""
SCENARIO = {
    "name": "Shared", "as_of": "2026-11-20",
    "training": [{"name": "Run", "model": "8b", "tokens": "20b", "gpu": "h100-sxm", "gpus": 8, "top": 5}],
    "ownership": [{"name": "Own", "gpu": "h100-sxm", "gpus": 8, "draws": 0, "months": 12,
                   "rent": {"acme-secret": "1.298376/h, 12 months"},
                   "plan": {"rent_usd_per_gpu_hour": 1.298376, "pue_ratio": 1.3}}],
    "mix": [{"name": "Mix", "gpu": "h100-sxm", "constant": 8, "months": 6, "provider": "crusoe"},
            {"name": "Ours", "gpu": "h100-sxm", "constant": 8, "months": 6, "provider": "MysteriousCloud"}],
}  # fmt: skip


@pytest.fixture
def book(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "prices.toml").write_text(BOOK, "utf-8")
    monkeypatch.setenv("GPUCOST_BOOK", str(tmp_path / "book"))


def contents(path):
    """Return every byte of a file; of a workbook, those of its parts unpacked."""
    if path.suffix != ".xlsx":
        return path.read_bytes().lower()
    with zipfile.ZipFile(path) as packed:
        return b"".join(packed.read(name) for name in packed.namelist()).lower()


@pytest.mark.slow
def test_what_is_safe_to_share_holds_no_private_byte_in_any_medium(book, tmp_path):
    private = gpucost.report(SCENARIO)
    public = gpucost.report(SCENARIO, share_safe=True)
    for name in ("r.json", "r.xlsx", "r.html", "r.md", "r.txt"):
        public.write(str(tmp_path / f"public-{name}"))
        if name in ("r.json", "r.md"):
            private.write(str(tmp_path / f"private-{name}"))
            shown = contents(tmp_path / f"private-{name}")
            assert any(secret in shown for secret in SECRETS), name  # the test would see them
        hidden = contents(tmp_path / f"public-{name}")
        assert not [secret for secret in (*SECRETS, str(tmp_path).encode()) if secret in hidden], name
    left = public.payload["warnings"][-1]
    assert "ownership[1].rent, ownership[1].plan.rent_usd_per_gpu_hour, mix[2].provider." in left
    plan = {row["name"]: row["value"] for row in public.payload["parts"][1]["payload"]["assumptions"]}
    assert plan["pue_ratio"] == 1.3  # what is no price stays
    books = {row["price_book"] for row in public.payload["parts"][0]["payload"]["options"]}
    assert books <= {"shipped", "refreshed"}


@pytest.mark.slow
def test_a_saved_answer_is_asked_anew_without_the_book(book, tmp_path):
    saved = tmp_path / "saved.json"
    asked = {"gpu": "h100-sxm", "gpus": 8, "top": 5, "as_of": "2026-11-20", "option": "on_demand"}
    saved.write_text(dumps(gpucost.estimate("8b", "20b", **asked).payload), "utf-8")
    assert b"mysteriouscloud" in contents(saved)
    out = tmp_path / "out.json"
    run = CliRunner().invoke(cli, ["report", str(saved), "--share-safe", "-o", str(out)], catch_exceptions=False)
    assert run.exit_code == 0
    assert not [secret for secret in SECRETS if secret in contents(out)]
    assert gpucost.estimate("8b", "20b", **asked).best["provider"] == "mysteriouscloud"  # the book speaks again
    saved.write_text(dumps(answers.comparison()), "utf-8")
    with pytest.raises(UsageError, match="a saved comparison cannot be made safe to share"):
        gpucost.report(str(saved), share_safe=True)


@pytest.mark.slow
@pytest.mark.parametrize(("ask", "asked"), [
    (gpucost.tco, {"plan": {"gpu": "h100-sxm", "gpus": 8, "use": {"utilisation": 0.5, "months": 24}}}),
    (gpucost.tco, {"gpu": "h100-sxm", "gpus": 8, "known_as_of": datetime64("2026-11-01", "ns")}),
    (gpucost.mix, {"demand": [8, 16, 16], "gpu": "h100-sxm"}),
    (gpucost.mix, {"constant": 8, "growth": Fraction(1, 5), "plan": {"gpu": "h100-sxm", "pue_ratio": 2.5}}),
])  # fmt: skip
def test_a_saved_plan_is_asked_anew_as_it_was_asked(ask, asked, tmp_path):
    saved = tmp_path / "saved.json"
    found = ask(**asked, as_of=datetime(2026, 11, 20))
    saved.write_text(found.to_json(), "utf-8")
    assert gpucost.report(saved, share_safe=True).payload["parts"][0]["payload"]["lead"] == found.payload["lead"]


def test_a_demand_in_a_file_is_not_shared_and_is_said_to_be_missing(tmp_path):
    demand, saved = tmp_path / "d.csv", tmp_path / "saved.json"
    demand.write_text("month,gpus\n1,8\n2,16\n", "utf-8")
    saved.write_text(gpucost.mix(demand, gpu="h100-sxm").to_json(), "utf-8")
    with pytest.raises(UsageError, match=r"mix\[1\].demand"):
        gpucost.report(saved, share_safe=True)


@pytest.mark.parametrize(("model", "gpu", "said"), [
    ("our-secret-13b", "h100-sxm", r"without the price book of one's own, to be safe .*part 'Run': unknown model"),
    ("8b", "our-gpu", r"without the price book of one's own, to be safe .*unknown accelerator"),
    ("config.json", "h100-sxm", r"without the price book of one's own, training\[1\].model, to be safe .*required"),
])  # fmt: skip
def test_what_only_the_book_or_a_file_knows_is_not_shared(model, gpu, said, tmp_path):
    asked = {"name": "Run", "model": model, "gpu": gpu, "tokens": "1b", "gpus": 8}
    with pytest.raises(GpuCostError, match=said):
        gpucost.report({"name": "Shared", "as_of": "2026-11-20", "training": [asked]}, share_safe=True)


def test_files_quotes_and_prices_leave_a_request():
    said = []
    kept = shareable({"supply": {"gpu": "h100"}, "mix": [{"name": "a", "rent": 2, "plan": "secret.toml",
                      "set": {"quote": "x", "pue_ratio": 1.2}}]}, said, str.islower)  # fmt: skip
    assert kept == {"supply": {"gpu": "h100"}, "mix": [{"name": "a", "set": {"pue_ratio": 1.2}}]}
    assert said == ["mix[1].rent", "mix[1].plan", "mix[1].set.quote"]


def test_a_stamp_stands_on_every_medium_and_names_the_seal_of_the_answer(tmp_path):
    saved = tmp_path / "saved.json"
    saved.write_text(dumps(answers.counted()), "utf-8")
    result = gpucost.report(str(saved), status="approved", by="The desk", date="2026-11-22")
    stamp = result.payload["issued"]
    assert stamp == {
        "status": "approved",
        "by": "The desk",
        "on": "2026-11-22",
        "sha256": seal_of(dumps(answers.counted())),
    }
    words = f"Approved by The desk on 2026-11-22, SHA-256 {stamp['sha256']}"
    assert words in result.to_markdown()
    assert words in " ".join(result.to_text().split())
    result.to_html(str(tmp_path / "r.html"))
    assert words in (tmp_path / "r.html").read_text("utf-8")
    result.to_excel(str(tmp_path / "r.xlsx"))
    cover = {row[0].value: row[1].value for row in openpyxl.load_workbook(tmp_path / "r.xlsx")["Cover"].iter_rows()}
    assert (cover["Status"], cover["By"], cover["On"]) == ("approved", "The desk", "2026-11-22")
    assert cover["SHA-256"] == stamp["sha256"]


def test_a_stamped_answer_is_sealed_and_refused_once_it_was_changed(tmp_path):
    saved = tmp_path / "saved.json"
    saved.write_text(dumps(answers.counted()), "utf-8")
    gpucost.report(str(saved), status="approved").write(str(tmp_path / "stamped.json"))
    again = gpucost.report(str(tmp_path / "stamped.json"))
    assert again.payload["issued"]["status"] == "approved"
    changed = json.loads((tmp_path / "stamped.json").read_text("utf-8"))
    changed["scaling"][0]["days"] *= 2
    (tmp_path / "stamped.json").write_text(json.dumps(changed), "utf-8")
    with pytest.raises(UsageError, match=r"(--accept-changed|accept_changed=)"):
        gpucost.report(str(tmp_path / "stamped.json"))
    told = gpucost.report(str(tmp_path / "stamped.json"), accept_changed=True).payload
    assert "stamped.json was changed after it was saved" in told["warnings"][0]
