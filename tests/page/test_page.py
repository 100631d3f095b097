"""The page to plan on, in a real browser and by request: what it shows, how it refuses, what it never does."""

import contextlib
import json
import random
import re
import threading
import time
import tomllib
from io import BytesIO
from urllib.parse import urlencode

import pytest

import gpucost
from gpucost.page import questions
from gpucost.render.offers import ways
from gpucost.render.wording import without_commands

starlette = pytest.importorskip("starlette", reason="needs the extra serve")
TOKEN = "a-token"
DIGITS = 1e-11  # JSON holds the first twelve of a figure
ASKED = {"model": "8b", "tokens": "100b", "gpu": "h100", "gpus": "64"}


@pytest.fixture(scope="module")
def client():
    from starlette.testclient import TestClient

    from gpucost.page.app import make_app

    return TestClient(make_app(TOKEN), base_url="http://127.0.0.1")


def get(client, path, **asked):
    return client.get(f"/{TOKEN}/{path}", params=asked)


@pytest.mark.later
def test_an_answer_is_what_the_library_says_to_the_cent(client):
    found = get(client, "api/plan", **ASKED).json()
    best = gpucost.estimate(model="8b", tokens="100b", gpu="h100", gpus=64, top=questions.ROWS)
    assert found["headline"] == best.headline
    costs = [row["cost_usd"] for row in best.options]
    assert [row["cost_usd"] for row in found["rows"]] == pytest.approx(costs, rel=DIGITS, abs=0)
    assert all(name in found["sources"] for row in found["rows"] for name in row["source_ids"])


@pytest.mark.later
def test_a_price_of_ones_own_is_the_same_bill_at_that_price(client):
    found = get(client, "api/plan", **ASKED, own_price="1.5").json()
    best = found["rows"][0]
    hours = sum(line["quantity"] for line in best["lines"] if line["unit"] == "GPU-hour")
    other = sum(line["cost_usd"] for line in best["lines"] if line["unit"] != "GPU-hour")
    assert found["quoted"]["cost_usd"] == pytest.approx(hours * 1.5 + other, abs=0.05)


@pytest.mark.later
def test_owning_is_what_the_library_says(client):
    found = get(client, "api/own", **ASKED, own_gpu="h100-sxm", own_gpus="64", own_price="2.35").json()
    answer = gpucost.tco(gpu="h100-sxm", gpus=64, rent=2.35, draws=0).payload
    assert found["headline"] == answer["lead"]
    assert found["saving_usd"] == pytest.approx(answer["npv_usd"]["saving"], rel=1e-9)


def test_exports_hold_the_question(client):
    scenario = tomllib.loads(get(client, "export/scenario.toml", **ASKED).text)
    assert scenario["training"][0]["gpus"] == "64"
    assert gpucost.report(scenario).payload["parts"]
    import openpyxl

    book = openpyxl.load_workbook(BytesIO(get(client, "export/estimate.xlsx", **ASKED).content))
    assert len(book.sheetnames) > 2
    assert "<!doctype html>" in get(client, "export/estimate.html", **ASKED).text.lower()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"model": "nope", "tokens": "1b"}, "unknown model 'nope'"),
        ({"model": "8b"}, "--tokens is missing"),
        ({**ASKED, "gpus": "-1"}, "--gpus"),
        ({**ASKED, "own_price": "cheap"}, "your price"),
        ({**ASKED, "pool": "/etc/passwd"}, "takes no 'pool'"),
        ({**ASKED, "model": "x" * 3000}, "more than 2,000 characters"),
    ],
)
def test_wrong_input_gets_the_sentence_of_the_command(client, asked, said):
    answer = get(client, "api/plan", **asked)
    assert answer.status_code == 422
    assert said in answer.json()["error"]


def test_a_scenario_is_refused_where_its_plan_would_be_and_is_toml_of_any_sign(client):
    refused = get(client, "export/scenario.toml", **ASKED, strict_prices="maybe")
    assert (refused.status_code, "--strict-prices" in refused.json()["error"]) == (422, True)
    asked = {**ASKED, "strict_prices": "yes", "region": "a\x7fb\\"}
    run = tomllib.loads(get(client, "export/scenario.toml", **asked).text)["training"][0]
    assert (run["strict_prices"], run["region"]) == (True, "a\x7fb\\")


def test_the_address_is_said_once_it_is_listened_on_and_a_broken_request_stays_quiet(capfd, monkeypatch):
    import socket
    import webbrowser

    import uvicorn

    from gpucost.page.app import serve

    said, opened, released = [], [], threading.Event()

    def say(text):
        said.append(int(re.search(r":(\d+)/", text)[1]))
        socket.create_connection(("127.0.0.1", said[0]), 5).close()

    def browser(address):
        opened.append(address)
        released.wait(60)  # as one that returns when it is closed

    def run(self, sockets):
        assert self.config.log_level == "critical"

    monkeypatch.setattr(webbrowser, "open", browser)
    monkeypatch.setattr(uvicorn.Server, "run", run)
    try:
        serve(0, say)
    finally:
        released.set()
    assert len(opened) == len(said) == 1


def test_only_this_machine_and_only_with_the_token(client):
    assert client.get("/api/plan", params=ASKED).status_code == 404
    assert client.get("/other/api/plan", params=ASKED).status_code == 404
    assert client.get(f"/{TOKEN}/api/plan", params=ASKED, headers={"host": "evil.example"}).status_code == 400
    for method in ("post", "put", "delete", "patch"):
        assert getattr(client, method)(f"/{TOKEN}/api/plan").status_code == 405
    assert client.get(f"/{TOKEN}/../app.py").status_code == 404
    page = client.get(f"/{TOKEN}/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "no-referrer"


def test_the_page_asks_no_other_server(client):
    for name in ("", "page.css", "page.js"):
        text = client.get(f"/{TOKEN}/{name}").text
        assert set(re.findall(r"https?://[^\s\"'`)]+", text)) <= {"http://www.w3.org/2000/svg"}


def test_random_requests_are_answered_or_refused(client):
    chance = random.Random(3)
    values = ["8b", "", "\x1b[31m", "nan", "-1", "0", "1e308", "💥", "h100", "1b", "../x", "100%", "2026-13-40", "=1+1",
              "9" * 400, "<script>", "eu", "true", "none"]  # fmt: skip
    names = [
        *questions.FIELDS,
        *questions.OWN_FIELDS,
        *questions.SERVE_FIELDS,
        "own_price",
        "pool",
        "plan",
        "set",
        "as_of",
    ]
    for number in range(200):
        asked = {"model": "8b", "tokens": "1b", "gpus": "8", "gpu": "h100"} if number % 20 == 0 else {}
        asked |= {chance.choice(names): chance.choice(values) for _ in range(chance.randint(1, 4))}
        name = chance.choice(["plan", "plan", "own", "serve", "fit", "choices", "nonsense"])
        answer = get(client, f"api/{name}", **asked)
        assert answer.status_code in (200, 404, 422), (name, asked, answer.text)


@pytest.fixture(scope="module")
def address():
    import uvicorn

    from gpucost.page.app import make_app

    questions.catalog()
    server = uvicorn.Server(uvicorn.Config(make_app(TOKEN), host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not server.started and time.monotonic() < until:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/{TOKEN}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def browser(require_program):
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = require_program("chromium", "chromium-browser", "google-chrome")
    with sync_api.sync_playwright() as play:
        made = play.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=120_000)
        yield made
        made.close()


def opened(browser, address, *, width=1400, **asked):
    """Return a page that shows its answer, and what its console said."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="light")
    context.set_default_timeout(120_000)  # a busy machine answers slowly
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith((address, "data:")) else said.append(request.url))
    page.goto(f"{address}?{urlencode(asked)}")
    first = {"serve": "#serve-offers tbody tr", "own": "#own svg", "fit": "#memory svg"}.get(asked.get("tab"))
    page.locator(first or "#offers tbody tr").first.wait_for()
    return page, said


@pytest.mark.parametrize("tab", ["train", "serve", "own", "fit"])
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_passes_the_accessibility_check_at_every_width_in_light_and_dark(browser, address, width, tab):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page, said = opened(browser, address, width=width, **ASKED, tab=tab)
    back = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(back)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert (page.evaluate(back) == light) == (scheme == "light")
        found = axe.Axe().run(page).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        cut = "all => all.filter((one) => one.offsetWidth && one.scrollWidth > one.clientWidth + 1).length"
        assert page.locator(".wide").evaluate_all(cut) == 0
        ticks = page.locator(".chart:visible svg .tick.y")
        assert tab == "fit" or ticks.count() >= 2
    assert said == []


def test_the_page_shows_what_the_command_prints(browser, address):
    from click.testing import CliRunner

    from gpucost.cli import cli

    page, _ = opened(browser, address, **ASKED)
    command = page.locator("#command").text_content()
    printed = CliRunner().invoke(cli, [*command.split()[1:], "--format", "csv", "--fields", "cost_usd"]).output.split()
    shown = page.locator("#offers td[data-usd]").evaluate_all("cells => cells.map(cell => cell.dataset.usd)")
    assert [float(value) for value in shown[:10]] == [float(value) for value in printed[1:11]]


def test_the_answer_follows_the_keyboard_and_the_address_holds_it(browser, address):
    page, said = opened(browser, address, **ASKED)
    before = page.locator("#headline").inner_text()
    page.locator("input[name=model]").focus()
    for _ in range(4):  # the model's facts and its picker lie between
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "tokens":
            break
    page.keyboard.press("Control+A")
    page.keyboard.type("200b")
    page.locator("#command", has_text="200b").wait_for(state="attached")
    after = page.locator("#headline").inner_text()
    assert after != before
    assert "tokens=200b" in page.url
    again, _ = opened(browser, address, **{**ASKED, "tokens": "200b"})
    assert again.locator("#headline").inner_text() == after
    bill = page.get_by_role("button", name="Bill of option 1", exact=True)
    bill.focus()
    page.keyboard.press("Enter")
    assert page.locator("#bill-1").is_visible()
    assert "USD = " in page.locator("#bill-1").inner_text()
    assert [text for text in said if "422" not in text] == []  # "2" tokens, half typed, are refused


def test_a_wrong_value_is_said_beside_its_field_and_mended(browser, address):
    page, _ = opened(browser, address, **ASKED)
    page.fill("input[name=tokens]", "many")
    page.locator("#error", has_text="okens").wait_for()
    assert page.locator("input[name=tokens]").get_attribute("aria-invalid") == "true"
    page.fill("input[name=tokens]", "50b")
    page.locator("#headline", has_text="USD").wait_for()
    assert page.locator("#error").is_hidden()


def test_back_undoes_one_change_at_a_time_and_the_tabs(browser, address):
    page, said = opened(browser, address, **ASKED)
    page.fill("input[name=tokens]", "200b")
    page.locator("input[name=tokens]").blur()
    page.locator("#command", has_text="200b").wait_for(state="attached")
    page.fill("input[name=gpus]", "32")
    page.locator("input[name=gpus]").blur()
    page.locator("#train-cards", has_text="32 ×").wait_for()
    page.locator("#tab-fit").click()
    page.locator("#memory svg").wait_for()
    assert "tab=fit" in page.url
    page.go_back()
    page.locator("#pareto svg").wait_for()
    assert page.locator("#tab-train").get_attribute("aria-selected") == "true"
    page.go_back()
    page.locator("#train-cards", has_text="64 ×").wait_for()
    assert page.locator("input[name=tokens]").input_value() == "200b"
    page.go_back()
    page.locator("#command", has_text="100b").wait_for(state="attached")
    assert page.locator("input[name=tokens]").input_value() == "100b"
    assert said == []


def test_a_slider_writes_into_its_field_and_the_answer_follows(browser, address):
    page, said = opened(browser, address, **ASKED)
    before = page.locator("#headline").inner_text()
    page.locator('input[data-for="overhead"]').fill("45")
    page.locator("#command", has_text="--overhead 45%").wait_for(state="attached")
    assert page.locator("input[name=overhead]").input_value() == "45%"
    assert page.locator("#headline").inner_text() != before
    page.locator('input[data-for="tokens"]').fill("12")
    page.locator("#command", has_text="--tokens 1t").wait_for(state="attached")
    page.fill("input[name=tokens]", "10b")
    page.locator("#command", has_text="--tokens 10b").wait_for(state="attached")
    assert page.locator('input[data-for="tokens"]').input_value() == "10"
    assert said == []


def test_a_refusal_dims_what_was_shown_and_offers_what_can_be_had(browser, address):
    page, _ = opened(browser, address, model="8b", tokens="100b", gpu="h100", gpus="8")
    page.fill("input[name=deadline]", "2d")
    page.locator("#error", has_text="No offer meets 2 days").wait_for()
    assert "--" not in page.locator("#refused").inner_text()
    assert page.locator("#shown.stale #offers tbody tr").count() > 0
    assert page.locator("input[name=deadline]").get_attribute("aria-invalid") == "true"
    offers = page.locator("#nearest button")
    assert offers.count() == 2
    assert offers.first.inner_text().startswith("Deadline: ")
    offers.first.click()
    page.locator("#shown:not(.stale)").wait_for()
    assert page.locator("#refused").is_hidden()
    assert page.locator("input[name=deadline]").input_value() != "2d"


@pytest.mark.parametrize(("asked", "field", "value"), [
    ({"model": "8b", "tokens": "100b", "gpu": "h100", "gpus": "8", "deadline": "2d"}, "deadline", "21d"),
    ({"model": "70b", "tokens": "1b", "gpu": "l4", "gpus": "1"}, "gpus", "64"),
])  # fmt: skip
def test_the_nearest_questions_have_an_answer(client, asked, field, value):
    refused = get(client, "api/plan", **asked)
    assert refused.status_code == 422
    offered = refused.json()["nearest"]
    assert (offered[0]["field"], offered[0]["value"]) == (field, value)
    for change in offered:
        answer = get(client, "api/plan", **{**asked, change["field"]: change["value"]})
        assert answer.json()["headline"] == change["headline"]
    can_be_ordered = [change["orderable"] for change in offered]
    assert can_be_ordered == sorted(can_be_ordered, reverse=True)


@pytest.mark.parametrize(("field", "typed"), [("model", "lama-3-8b"), ("gpu", "h10"), ("region", "us-eats-1")])
def test_a_name_that_nobody_knows_can_be_mended_by_a_click(client, field, typed):
    asked = {"model": "8b", "tokens": "100b", field: typed}
    (first, *_) = get(client, "api/plan", **asked).json()["nearest"]
    assert first["field"] == field
    assert get(client, "api/plan", **{**asked, field: first["value"]}).status_code == 200


def test_a_wish_in_another_tab_can_be_taken_back_where_it_refuses(browser, address):
    page, _ = opened(browser, address, **ASKED, tab="fit")
    page.goto(f"{address}?{urlencode({**ASKED, 'tab': 'fit', 'budget': '100'})}")
    way_back = page.locator("#nearest button").first
    way_back.wait_for()  # before it, the page is being made
    assert page.locator("input[name=budget]").is_hidden()
    way_back.click()
    page.locator("#memory svg").wait_for()


def test_each_slider_in_sight_changes_the_answer(browser, address, client):
    moved = {"tokens": "200b", "deadline": "2d", "overhead": "40%", "mfu": "20%", "own_price": "9",
             "tokens_per_month": "1t", "tpot": "30ms", "utilisation": "20%"}  # fmt: skip
    page, _ = opened(browser, address, **ASKED)
    for tab, api in (("train", "plan"), ("serve", "serve"), ("own", "own"), ("fit", "fit")):
        page.locator(f"#tab-{tab}").click()
        seen = page.locator("input[type=range]:visible").evaluate_all("all => all.map((one) => one.dataset.for)")
        assert bool(seen) == (tab != "fit")
        asked = {name: value for name, value in ASKED.items() if name != "gpus"}
        before = get(client, f"api/{api}", **asked).json()
        for name in seen:
            after = get(client, f"api/{api}", **{**asked, name: moved[name]}).json()
            figures = {key for key in after if after[key] != before[key]} - {"command", "headline", "lead"}
            assert figures, (tab, name)


def numbers(text):
    return {word for word in re.findall(r"\d[\d,.]*\d|\d", text) if "." in word or "," in word}


@pytest.mark.parametrize("tab", ["train", "serve", "fit"])
@pytest.mark.parametrize("more", [{"gpu": "b200"}, {"gpu": "h200", "currency": "EUR"}])
def test_a_figure_of_the_first_line_has_the_digits_of_its_card(browser, address, tab, more):
    page, _ = opened(browser, address, model="8b", tokens="100b", **more, tab=tab)
    said, cards = (numbers(page.locator(of).inner_text()) for of in ("#headline", f"#{tab}-cards"))
    assert said
    assert said <= cards


def test_amounts_follow_the_currency_and_the_day_of_its_rate_is_named(browser, address, client):
    rate = next(one for one in get(client, "api/choices").json()["currencies"] if one["code"] == "EUR")
    rows = [row for row in questions.catalog().rows("exchange_rates") if row["currency"] == "EUR"]
    row = max(rows, key=lambda row: row["on"])
    assert (rate["usd"], rate["on"]) == (row["usd_per_unit"], str(row["on"]))
    page, said = opened(browser, address, **ASKED)
    best = get(client, "api/plan", **ASKED).json()["rows"][0]
    page.select_option("#currency", "EUR")
    page.locator("#headline", has_text=f"{best['cost_usd'] / rate['usd']:,.0f} EUR").wait_for()
    assert rate["on"] in page.locator("#rate").inner_text()
    assert "currency=EUR" in page.url
    for tab, panel in (("train", "#panel-train"), ("serve", "#panel-serve"), ("own", "#panel-own")):
        page.locator(f"#tab-{tab}").click()
        page.locator(f"{panel} .chart svg").first.wait_for()
        assert "EUR" in page.locator(panel).inner_text()
        assert not re.search(r"USD|\$", page.locator(panel).inner_text() + page.locator("#headline").inner_text())
    for _ in range(4):  # three tabs, and the currency
        page.go_back()
    page.locator("#headline", has_text=f"{best['cost_usd']:,.0f} USD").wait_for()
    assert said == []


def test_a_model_and_a_gpu_can_be_picked_by_their_facts(browser, address, client):
    from click.testing import CliRunner

    from gpucost.cli import cli

    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    facts = get(client, "api/facts").json()
    (chip,) = (row for row in facts["gpus"] if row["id"] == "h100-sxm5-80gb")
    assert (chip["memory_gib"], chip["hbm_gb_per_s"], chip["bf16_tflops"]) == (79.647, 3350, 989.4)  # the datasheet's
    licences = {row["id"]: row["licence"] for row in facts["models"]}
    assert (licences["llama-3.1-70b"], licences["palm-540b"]) == ("Llama 3.1 Community License", None)
    asked = f"prices --gpu {chip['id']} --option on_demand --max-age 60 --format json"
    listed = json.loads(CliRunner().invoke(cli, asked.split()).stdout)["rows"]
    assert chip["usd_per_gpu_hour"] == pytest.approx(min(row["usd_per_gpu_hour"] for row in listed))
    page, said = opened(browser, address, **ASKED, tab="fit")
    page.locator("#model-facts", has_text="32 layers, 131,072 tokens of context, Llama 3.1 Comm").wait_for()
    for name, find, value in (("model", "llama-3.1-70b", "llama-3.1-70b"), ("gpu", "h200-sxm", "h200-sxm-141gb")):
        page.locator(f"#pick-{name}").click()
        page.fill("#picker-find", find)
        assert axe.Axe().run(page).response["violations"] == []
        button = page.get_by_role("button", name=value, exact=True)
        if name == "model":
            assert licences[value] in page.locator("#picker-table tr", has=button).inner_text()
        button.click()
        assert page.locator("#picker").is_hidden()
        assert page.locator(f"input[name={name}]").input_value() == value
        page.locator("#command", has_text=value).wait_for(state="attached")
    assert said == []


def test_the_link_of_a_question_can_be_copied_and_a_month_stands_first_in_serve(browser, address):
    page, _ = opened(browser, address, **ASKED, tab="serve")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#link").click()
    page.locator("#linked", has_text="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    assert page.locator("#serve-cards dt").first.inner_text() == "A month"
    assert page.locator("#serve-offers th").first.inner_text() == "USD a month"


def test_a_service_that_is_refused_gets_the_nearest_service(client):
    asked = {"model": "8b", "tokens": "1b", "gpu": "l4", "tpot": "1ms"}
    refused = get(client, "api/serve", **asked)
    assert refused.status_code == 422
    (first, *_) = refused.json()["nearest"]
    assert first["field"] == "tpot"
    answer = get(client, "api/serve", **{**asked, "tpot": first["value"]}).json()
    assert answer["headline"] == first["headline"]


def test_a_budget_below_every_offer_gets_the_least_that_will_do(client):
    asked = {**ASKED, "budget": "100"}
    offered = get(client, "api/plan", **asked).json()["nearest"]
    (first,) = (change for change in offered if change["field"] == "budget" and change["value"])
    assert get(client, "api/plan", **{**asked, "budget": first["value"]}).status_code == 200
    less = str(int(first["value"]) - 1)
    assert get(client, "api/plan", **{**asked, "budget": less}).status_code == 422


def test_scenarios_stand_side_by_side_and_in_the_address(browser, address):
    page, said = opened(browser, address, **ASKED)
    page.locator("#keep").click()
    page.fill("input[name=tokens]", "50b")
    rows = page.locator("#beside-table tbody tr")
    rows.nth(1).wait_for()
    page.locator("#beside-table", has_text="8b, 50b").wait_for()
    assert "this one" in rows.first.inner_text()
    costs = [float(cell.replace(",", "")) for cell in rows.locator("td:nth-child(2)").all_inner_texts()]
    assert costs[0] < costs[1]
    again, _ = opened(browser, page.url.partition("?")[0])
    again.goto(page.url)
    again.locator("#beside-table tbody tr").nth(1).wait_for()
    page.get_by_role("button", name="Remove 8b, 100b").click()
    page.locator("#beside.empty").wait_for(state="attached")
    assert "beside" not in page.url
    assert said == []


@pytest.mark.parametrize(
    ("tab", "change", "said", "figure"),
    [
        ("serve", ("weights", "fp8"), "weights fp8 instead of auto", "usd_per_mtok"),
        ("own", ("gpus", "32"), "number of GPUs 32 instead of 64", "own_usd_per_gpu_hour"),
        ("fit", ("method", "lora"), "method lora instead of full", "needed_gb"),
    ],
)
def test_every_tab_sets_its_own_figures_side_by_side(browser, address, client, tab, change, said, figure):
    other = {**ASKED, change[0]: change[1]}
    page, errors = opened(browser, address, **ASKED, tab=tab, beside=urlencode(other))
    rows = page.locator("#beside-table tbody tr")
    rows.nth(1).wait_for()
    assert "this one" in rows.first.inner_text()
    assert said in rows.nth(1).inner_text()
    api = {"serve": "serve", "own": "own", "fit": "fit"}[tab]
    for row, asked in ((0, ASKED), (1, other)):
        found = get(client, f"api/{api}", **asked).json()
        value = (found["rows"][0] if tab == "serve" else found)[figure]
        shown = float(rows.nth(row).locator("td").nth(1).inner_text().replace(",", ""))
        assert shown == pytest.approx(value, rel=0.006)
    page.get_by_role("button", name=re.compile("^Open ")).click()
    page.locator(f"#tab-{tab}[aria-selected=true]").wait_for()
    page.locator("#beside.empty").wait_for(state="attached")
    assert f"{change[0]}={change[1]}" in page.url
    page.go_back()
    page.locator("#beside-table", has_text=said).wait_for()
    assert errors == []


@pytest.mark.parametrize(
    ("tab", "field", "value"),
    [("train", "budget", "100"), ("serve", "tpot", "1ms"), ("own", "budget", "100")],
)
def test_a_refusal_in_any_tab_offers_a_change_and_back_undoes_it(browser, address, tab, field, value):
    page, _ = opened(browser, address, **ASKED, tab=tab)
    box = page.locator(f"input[name={field}]")
    box.fill(value)
    box.blur()
    page.locator("#nearest button").first.wait_for()
    assert page.locator("#shown.stale").count() == 1
    assert not re.search(r"--[a-z]|[.!?] (?:or|and) ", page.locator("#refused").inner_text())
    page.locator("#nearest button").first.click()
    page.locator("#shown:not(.stale)").wait_for()
    assert box.input_value() != value
    page.go_back()
    page.locator("#nearest button").first.wait_for()
    assert box.input_value() == value
    page.go_back()
    page.locator("#shown:not(.stale)").wait_for()
    assert box.input_value() == ""
    assert page.locator(f"#tab-{tab}").get_attribute("aria-selected") == "true"


@pytest.mark.parametrize(("tab", "api", "figure"), [("train", "plan", "cost_usd"), ("serve", "serve", "usd_per_mtok")])
def test_the_map_has_every_region_whose_place_is_known(browser, address, client, tab, api, figure):
    page, said = opened(browser, address, model="8b", tokens="100b", tab=tab)
    places = get(client, f"api/{api}", model="8b", tokens="100b").json()["places"]
    at = {name: number for number, name in enumerate(places["names"])}
    one = "map" if tab == "train" else "serve-map"
    assert page.locator(f"#{one} circle").count() == len(places["rows"]) > 10
    rows = [row for row in places["rows"] if row[at["orderable"]]]
    assert rows[0][at[figure]] == min(row[at[figure]] for row in rows)
    assert str(rows[0][at["region"]]) in page.locator(f"#{one}-said").inner_text()
    assert page.locator("#land path").count() == 1
    assert said == []


@pytest.mark.more  # as much of a browser as a quarter of this file
def test_paper_and_axe_hold_with_scenarios_beside(browser, address):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    for width in (1400, 390):
        for tab in ("train", "serve", "own", "fit"):
            page, _ = opened(browser, address, width=width, **ASKED, tab=tab, beside="model=70b&tokens=1t")
            page.locator("#beside-table tbody tr").nth(1).wait_for()
            found = axe.Axe().run(page).response["violations"]
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.context.close()


def test_own_or_rent_speaks_of_this_run(client):
    plan = get(client, "api/plan", **ASKED).json()["rows"][0]
    found = get(client, "api/own", **ASKED).json()
    run = found["run"]
    assert (found["gpu"], found["gpus"]) == (plan["gpu"], plan["gpus"])
    answer = gpucost.tco(gpu=plan["gpu"], gpus=plan["gpus"], rent=round(plan["usd_per_gpu_hour"], 4), draws=0).payload
    assert found["own_usd_per_gpu_hour"] == pytest.approx(answer["levelised_usd_per_gpu_hour"], rel=1e-9)
    # 4 years of 8,760 hours, by hand
    hours = plan["gpus"] * 4 * 8760
    paid = sum(line["quantity"] for line in plan["lines"] if line["unit"] == "GPU-hour")
    assert run["share_fraction"] == pytest.approx(paid / hours, rel=1e-3)
    assert run["runs"] == pytest.approx(found["breakeven"]["utilisation_fraction"] * hours / paid, rel=1e-3)
    assert found["headline"] == answer["lead"]


def test_memory_is_that_of_the_machines_of_the_plan(client):
    plan = get(client, "api/plan", **ASKED).json()["rows"][0]
    found = get(client, "api/fit", **ASKED).json()
    assert (found["gpu"], found["gpus"], found["fits"]) == (plan["gpu"], plan["gpus"], True)
    assert sum(part["needed_gb"] for part in found["components"]) == pytest.approx(found["needed_gb"], rel=0.08)
    alone = get(client, "api/fit", model="70b", tokens="1b", gpu="l4", gpus="1").json()
    assert not alone["fits"]
    assert alone["needed_gb"] > alone["usable_gb"]


def test_serving_is_what_the_library_says(client):
    asked = {"model": "8b", "tokens": "100b", "gpu": "h100", "tokens_per_month": "20b", "weights": "fp8"}
    found = get(client, "api/serve", **asked).json()
    best = gpucost.inference(model="8b", gpu="h100", tokens_per_month="20b", precision="fp8", top=questions.ROWS)
    assert found["rows"][0]["usd_per_mtok"] == pytest.approx(best.best["usd_per_mtok"], rel=DIGITS, abs=0)
    assert found["headline"] == without_commands(best.payload["lead"])
    assert len(found["points"]["rows"]) == len(ways(best.payload))


def test_a_service_level_shows_its_table_and_knee(client):
    asked = {"model": "8b", "gpu": "h100", "users": "400", "think_time": "20s", "slo_ttft": "500ms", "percentile": "90"}
    found = get(client, "api/serve", tokens="1b", **asked).json()
    own = gpucost.inference(**asked, top=questions.ROWS).payload
    assert [row["gpu"] for row in found["levels"]] == [row["gpu"] for row in own["levels"]]
    assert found["levels"][0]["ttft_p95_ms"] == pytest.approx(own["levels"][0]["ttft_p95_ms"], rel=DIGITS)
    assert len(found["knee"]) == len(own["knee"]) > 4
    assert found["percentile"] == 90
    assert get(client, "api/serve", model="8b", tokens="1b", gpu="h100").json()["levels"] == []


def test_every_offer_is_a_point_and_countries_are_named(browser, address, client):
    page, _ = opened(browser, address, model="8b", tokens="100b")
    found = get(client, "api/plan", model="8b", tokens="100b").json()
    assert page.locator("#pareto circle").count() == len(found["points"]["rows"]) > 100
    orderable = found["points"]["names"].index("orderable")
    quotes = sum(not row[orderable] for row in found["points"]["rows"])
    assert page.locator("#pareto circle.quote").count() == quotes > 0
    assert page.locator("#pareto path.front").count() == 1
    where = page.locator("#regions tbody td:first-child").all_inner_texts()
    assert any(text.startswith("United States") for text in where)
    links = page.locator("#sources a")  # nothing is fetched from them
    assert links.count() > 0
    assert all(link.get_attribute("href").startswith("https://") for link in links.all())
    assert {link.get_attribute("rel") for link in links.all()} == {"noreferrer noopener"}


@pytest.mark.parametrize("asked", [{"model": "8b", "tokens": "100b"}, {**ASKED, "beside": "model=70b&tokens=1t"}])
@pytest.mark.parametrize("tab", ["train", "serve", "own", "fit"])
def test_paper_takes_two_pages(browser, address, tab, asked):
    page, _ = opened(browser, address, **asked, tab=tab)
    page.locator(f"#panel-{tab} svg").first.wait_for()
    printed = page.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "12mm"))
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2
    page.emulate_media(media="print")
    assert page.locator("form").is_hidden()
    assert page.locator("#headline").is_visible()


def test_a_copy_stands_alone_and_says_no_command(browser, tmp_path):
    from gpucost.page import static

    asked = ["model=8b&tokens=100b&gpu=h100&gpus=64", "model=8b&tokens=50b&gpu=h100&gpus=64"]
    path = static.write(str(tmp_path / "plan"), asked)
    context = browser.new_context(viewport={"width": 1400, "height": 900}, offline=True)
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else said.append(request.url))
    page.goto(f"file://{path}")
    page.locator("#offers tbody tr").first.wait_for()
    best = gpucost.estimate(model="8b", tokens="100b", gpu="h100", gpus=64)
    assert f"{best.best['cost_usd']:,.0f} USD" in page.locator("#headline").inner_text()
    for tab, shown in (("own", "#own svg"), ("fit", "#memory svg"), ("serve", "#serve-offers tbody tr")):
        page.locator(f"#tab-{tab}").click()
        page.locator(shown).first.wait_for()
        text = page.locator("body").inner_text()
        assert not re.search(r"--[a-z]|gpucost [a-z]", text), tab
    page.locator("#tab-train").click()
    page.select_option("#copied", asked[1])
    page.locator("#train-cards").wait_for()
    other = gpucost.estimate(model="8b", tokens="50b", gpu="h100", gpus=64)
    page.locator("#headline", has_text=f"{other.best['cost_usd']:,.0f} USD").wait_for()
    assert page.locator("input[name=tokens]").is_disabled()
    assert said == []
    page.goto(f"file://{path}?{asked[1]}&tab=fit")
    page.locator("#memory svg").wait_for()
    page.locator("#tab-train").click()
    page.locator("#headline", has_text=f"{other.best['cost_usd']:,.0f} USD").wait_for()


def test_the_command_writes_a_copy_and_the_page_hands_one_out(client, tmp_path):
    from click.testing import CliRunner

    from gpucost.cli import cli

    ran = CliRunner().invoke(
        cli, ["serve", "--static", str(tmp_path / "p"), "--question", f"http://x/?{urlencode(ASKED)}"]
    )
    assert ran.exit_code == 0, ran.output
    written = (tmp_path / "p" / "index.html").read_text("utf-8")
    handed = get(client, "export/plan.html", **ASKED).text
    assert handed == written
    assert '<link rel="stylesheet"' not in written
    assert not re.search(r"<script[^>]+src=", written)
    assert "default-src 'none'" in written
    wrong = CliRunner().invoke(cli, ["serve", "--static", str(tmp_path / "q"), "--question", "model=8b"])
    assert "tokens is missing" in str(wrong.exception)
    assert not (tmp_path / "q" / "index.html").exists()


def test_an_answer_asked_again_is_not_computed_again_unless_files_may_be_named(monkeypatch, tmp_path):
    from gpucost.ask import dispatch

    asked = []
    monkeypatch.setattr(questions, "_answered", questions._RecentAnswers(2))
    monkeypatch.setattr(dispatch, "answered", lambda name, stated, catalog: asked.append(stated) or object())
    first = questions._answered("estimate", {"model": "8b"})
    assert questions._answered("estimate", {"model": "8b"}) is first
    questions._answered("estimate", {"model": "70b"})
    questions._answered("estimate", {"model": "405b"})
    assert questions._answered("estimate", {"model": "8b"}) is not first  # the oldest was forgotten
    count = len(asked)
    monkeypatch.setattr(questions, "files", tmp_path)
    questions._answered("estimate", {"model": "8b"})
    assert len(asked) == count + 1


def test_a_page_of_another_site_is_refused_and_so_is_another_host(client):
    path = f"/{TOKEN}/api/choices"
    own = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
    assert client.get(path, headers=own).status_code == 200
    assert client.get(path, headers={"origin": "https://evil.example"}).status_code == 403
    assert client.get(path, headers={"origin": "null"}).status_code == 403
    assert client.get(path, headers={"origin": "http://127.0.0.1:81"}).status_code == 403
    assert client.get(path, headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}).status_code == 403
    opened_by_a_person = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get(f"/{TOKEN}/", headers=opened_by_a_person).status_code == 200
    assert client.get(path, headers={"host": "testserver"}).status_code == 400


@pytest.mark.slow
def test_the_page_reads_no_file_of_the_user(client, tmp_path):
    for name in ("secret.csv", "config.json"):
        (tmp_path / name).write_text("CANARYONE,CANARYTWO\nCANARYTHREE,5\n")
        for argument in (*questions.FIELDS, *questions.OWN_FIELDS, *questions.SERVE_FIELDS, questions.PRICE):
            for kind in ("plan", "own", "serve", "fit"):
                asked = {**ASKED, "own_gpu": "h100-sxm", "own_gpus": "8", argument: str(tmp_path / name)}
                text = get(client, f"api/{kind}", **asked).text
                assert "CANARY" not in text, (argument, kind)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-", b"GET"])
def test_a_request_that_does_not_arrive_is_given_up(sent, monkeypatch):
    import socket

    from gpucost.page import app

    monkeypatch.setattr(app, "HEAD_S", 0.5)
    server = app.server_of(app.make_app(TOKEN), host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not server.started and time.monotonic() < until:
        time.sleep(0.02)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), 30) as line:
            line.sendall(f"GET /{TOKEN}/page.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            found = line.recv(100_000)
            assert found.startswith(b"HTTP/1.1 200"), "a whole request is answered"
            while b"}" not in found[-3:] and (more := line.recv(100_000)):
                found += more
            began = time.monotonic()
            line.sendall(sent)
            with contextlib.suppress(OSError):
                while time.monotonic() < began + 20 and line.recv(1000):
                    line.sendall(b"a")  # what drips gets no more time
            assert time.monotonic() - began < 12
    finally:
        server.should_exit = True
        thread.join(10)


def test_a_whole_room_that_asks_at_once_is_answered(address):
    import urllib.request

    said, ready = [], threading.Barrier(64)

    def ask(number):
        ready.wait(60)
        url = f"{address}api/plan?{urlencode({**ASKED, 'tokens': f'{1 + number % 4}b'})}"
        with urllib.request.urlopen(url, timeout=120) as answer:
            said.append(answer.status)

    team = [threading.Thread(target=ask, args=(number,)) for number in range(64)]
    for one in team:
        one.start()
    for one in team:
        one.join()
    assert said == [200] * 64


def test_many_who_ask_at_once_are_answered_in_turn(monkeypatch):
    from gpucost.page import app

    at_once, most = [], []

    def slowly(asked):
        at_once.append(1)
        most.append(len(at_once))
        time.sleep(0.05)
        at_once.pop()
        return {}

    monkeypatch.setitem(app._ANSWERS, "plan", slowly)
    request = type("Request", (), {"path_params": {"name": "plan"}, "query_params": {}})
    team = [threading.Thread(target=app._answer, args=(request,)) for _ in range(16)]
    for one in team:
        one.start()
    for one in team:
        one.join()
    assert len(most) == 16
    assert max(most) <= app.SIDE_BY_SIDE
    monkeypatch.setattr(app, "PATIENCE_S", 0.01)
    for _ in range(app.SIDE_BY_SIDE):
        app._turns.acquire()
    try:
        assert app._answer(request).status_code == 503
    finally:
        for _ in range(app.SIDE_BY_SIDE):
            app._turns.release()
