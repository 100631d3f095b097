"""First answers of twenty typical questions, and who lists them: `python -m benchmarks.first_answers`.

Each question is asked as a person would ask it. Its first answer is an offer; beside it stand the lists that show the
same offer within LISTED_DAYS of the day: the same seller, accelerator, number in a machine, option and term, and the
same machine where both name one. A list is independent of the offer's own where another publisher made it. Where no
list shows the offer within that time, the answer must say so itself: the command ends with 1 where one does not. It
prints the page.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, NamedTuple

import gpucost
from gpucost import clock
from gpucost.catalog import Catalog, open_catalog
from gpucost.market.terms import LISTED_DAYS, unlisted

QUESTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Train 8B on 100B tokens", "estimate", {"model": "8b", "tokens": "100b"}),
    ("The same on H100", "estimate", {"model": "8b", "tokens": "100b", "gpu": "h100-sxm"}),
    ("The same on H200", "estimate", {"model": "8b", "tokens": "100b", "gpu": "h200"}),
    ("The same on B200 in a week", "estimate", {"model": "8b", "tokens": "100b", "gpu": "b200", "deadline": "7d"}),
    ("The same on A100", "estimate", {"model": "8b", "tokens": "100b", "gpu": "a100-sxm4-80gb"}),
    ("The same at a hyperscaler", "estimate", {"model": "8b", "tokens": "100b", "provider_class": "hyperscaler"}),
    ("The same in Europe", "estimate", {"model": "8b", "tokens": "100b", "region": "eu"}),
    ("The same as fast as can be", "estimate", {"model": "8b", "tokens": "100b", "optimize": "time"}),
    ("Train 1B on 20B tokens", "estimate", {"model": "1b", "tokens": "20b"}),
    ("Train 70B on 1T tokens in 90 days", "estimate", {"model": "70b", "tokens": "1t", "deadline": "90d"}),
    ("LoRA of 8B on 50M tokens, one GPU", "estimate", {"model": "8b", "tokens": "50m", "method": "lora", "gpus": 1}),
    ("QLoRA of 70B on 100M tokens", "estimate", {"model": "70b", "tokens": "100m", "method": "qlora"}),
    ("Serve 8B", "inference", {"model": "8b"}),
    ("Serve 8B on L4", "inference", {"model": "8b", "gpu": "l4"}),
    ("Serve 8B at 2 requests a second", "inference", {"model": "8b", "requests_per_s": 2}),
    ("Serve 70B in FP8", "inference", {"model": "70b", "precision": "fp8"}),
    ("Serve 70B in FP8 on H100", "inference", {"model": "70b", "precision": "fp8", "gpu": "h100-sxm"}),
    ("Serve 70B in INT8 on A100", "inference", {"model": "70b", "precision": "int8", "gpu": "a100-80gb"}),
    ("Serve gpt-oss-120b", "inference", {"model": "gpt-oss-120b"}),
    ("Serve DeepSeek-V3 in FP8", "inference", {"model": "deepseek-v3", "precision": "fp8"}),
)
# where only one of offer and list names a machine, the names do not tell them apart
_LISTS = """
SELECT o.source_id, any_value(s.publisher) AS publisher, max(o.observed_on) AS seen_on,
    arg_max(o.usd_per_gpu_hour, o.observed_on) AS usd
FROM offers AS o LEFT JOIN price_sources AS s USING (source_id)
WHERE o.provider = $provider AND o.gpu = $gpu AND o.gpus = $gpus AND o.option = $option
    AND coalesce(o.instance_type, $machine, '') = coalesce($machine, o.instance_type, '')
    AND coalesce(o.term_months, 0) = $term AND o.observed_on BETWEEN $day - $within AND $day
GROUP BY ALL ORDER BY seen_on DESC, o.source_id"""


class FirstAnswer(NamedTuple):
    """The first answer of a question: its offer, the lists that show it, and what the answer says itself."""

    question: str
    best: Mapping[str, Any]
    headline: str
    lists: list[dict[str, Any]]

    @property
    def is_consistent(self) -> bool:
        """Tell whether an answer that no list shows says so."""
        # the sentence that an answer says where the newest list is older than that
        sentence = unlisted(LISTED_DAYS + 1, "shipped").strip()
        return bool(self.lists) != (sentence in self.headline)

    @property
    def others(self) -> list[dict[str, Any]]:
        """Return the lists of other publishers than the offer's own."""
        publishers = {row["publisher"] for row in self.lists if row["source_id"] in self.best["source_ids"]}
        return [row for row in self.lists if row["publisher"] not in publishers]


def first_answers(catalog: Catalog) -> list[FirstAnswer]:
    """Ask every question."""
    asks: dict[str, Callable[..., Any]] = {"estimate": gpucost.estimate, "inference": gpucost.inference}
    catalog.laid.ensure("offers", "price_sources")
    answers = []
    for question, name, arguments in QUESTIONS:
        answer = asks[name](**arguments, top=1, catalog=catalog)
        best = answer.best
        # lists name the machine, of which the answer may take several
        offers = catalog.offers(provider=best["provider"])
        gpus = next(offer.gpus for offer in offers if offer.offer_id == best["offer_id"])
        lists = catalog.store.fetch(
            _LISTS,
            {
                **{name: best[name] for name in ("provider", "gpu", "option")},
                "gpus": gpus,
                "machine": best["instance_type"] or None,
                "term": best["term_months"] or 0,
                "day": catalog.as_of,
                "within": LISTED_DAYS,
            },
        )
        answers.append(FirstAnswer(question, best, answer.headline, lists))
    return answers


def page(answers: list[FirstAnswer], day: date) -> str:
    """Return the page."""
    listed = sum(bool(answer.lists) for answer in answers)
    several = sum(bool(answer.others) for answer in answers)
    lines = [
        "# First answers",
        "",
        f"Twenty typical questions on {day}, each with its first answer, by the budget that nine of ten such orders",
        "need, and the chance that it can be had. Beside it stand the lists that show the same offer within",
        f"{LISTED_DAYS} days: the same seller, accelerator, number in a machine, option and term, and the same machine",
        "where both name one. An answer that none shows says so on its first screen.",
        f"{listed} of {len(answers)} are in a list of that time, {several} in lists of more than one publisher.",
        "",
        "| question | first answer | quoted | chance | lists within 60 days |",
        "|---|---|--:|--:|---|",
    ]
    for answer in answers:
        best = answer.best
        offer = f"{best['gpus']:,} × {best['gpu']} at {best['provider']}"
        offer += f", {best['region']}" if best["region"] else ""
        offer += f", {best['option'].replace('_', ' ')}"
        offer += f" of {best['term_months']} months" if best["term_months"] else ""
        quote = f"{best['usd_per_gpu_hour']:.2f} on {best['price_observed_on']}"
        lists = "; ".join(f"{row['publisher']} {row['seen_on']} at {row['usd']:.2f}" for row in answer.lists[:4])
        lists += f"; {len(answer.lists) - 4} more" if len(answer.lists) > 4 else ""
        lists = lists or ("none, and the answer says so" if answer.is_consistent else "none")
        chance = f"{best['chance_available_fraction']:.0%}"
        lines.append(f"| {answer.question} | {offer} | {quote} | {chance} | {lists} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Ask, print the page, and say which answer does not tell that no list shows it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--as-of", type=date.fromisoformat, default=clock.today())
    options = parser.parse_args()
    answers = first_answers(open_catalog(options.as_of))
    print(page(answers, options.as_of), end="")
    silent = [answer.question for answer in answers if not answer.is_consistent]
    for question in silent:
        sys.stderr.write(f"{question}: whether a list shows the first answer and what the answer says disagree\n")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
