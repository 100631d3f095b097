"""Judging what sentences claim: each figure by the check of its quantity, or why it is not judged."""

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from msgspec.structs import replace

from gpucost.answers.checks import Audit, CheckRow
from gpucost.answers.common import frame
from gpucost.catalog import Catalog
from gpucost.claims import figures as hold
from gpucost.claims.audit import (
    IMPOSSIBLE,
    UNKNOWN,
    Check,
    Claim,
    check_decode,
    check_payback,
    check_training_memory,
    check_weights,
    most_favourable,
    run_checks,
    worst,
)
from gpucost.claims.reading import (
    OPTION_WORDS,
    PRECISION,
    Figure,
    Mention,
    Names,
    SentenceSubject,
    figures_of,
    precision_of,
    sentences_of,
)
from gpucost.errors import GpuCostError
from gpucost.physics.hardware import half_precision
from gpucost.physics.training.layouts import latest_year
from gpucost.types import Accelerator
from gpucost.units import HOURS_PER_DAY, HOURS_PER_MONTH, counted
from gpucost.workloads.training import OwnSpeed, make_workload, sizes, step_work

NOT_READ = "not understood"
_OF_MODEL = ("duration", "cost", "weights", "training memory", "decode speed", "training speed")
_TAKEN = "taken"  # a figure that another one is judged by
_CONTEXT = ("", "tokens", "parameters", "other")  # what a figure is stated for, not what is claimed

_OF_OTHERS = re.compile(r"\b(?:cpus?|xeons?|epyc|processors?|fpgas?|npus?)\b", re.IGNORECASE)  # no accelerators of ours
_CLOSE_BY = 20  # characters behind a price that say of what it is
_FEWEST_CORES = 1000  # of a whole accelerator

Judged = list[tuple[Figure, Check]]
# from (catalog, model as named, accelerators, whether a host's) to what a million of its tokens cost
TokenPrices = Callable[[Catalog, str, Sequence[Accelerator], bool], "hold.TokenPrice | None"]


class _Unasked(GpuCostError):
    """What a sentence does not say."""


def audit_text(text: str, catalog: Catalog, token_price: TokenPrices | None = None) -> Audit:
    """Read sentences, judge each figure that is understood, and say of the others why not.

    `token_price` answers what a million tokens of a model cost; without it such prices are not judged.
    """
    names, rows, notes = Names(catalog), [], []
    last = SentenceSubject()
    for sentence in sentences_of(text):
        subject = names.subject(sentence)
        subject, borrowed = (subject, []) if _OF_OTHERS.search(sentence) else _with_last(subject, last)
        last = subject
        judged = _Sentence(sentence, subject, catalog, token_price).judged()
        for figure, check in judged:
            rows.append({**check._asdict(), "sentence": sentence, "figure": figure.text})
        of_model = any(check.name in _OF_MODEL for _, check in judged)
        used = [word for word in borrowed if of_model or (word == "accelerator" and judged)]
        if used:
            notes.append(f"“{_short(sentence)}” names no {' and no '.join(used)}: taken from before.")
    verdict = worst([row["verdict"] for row in rows if row["name"] != NOT_READ])
    unread = sum(row["verdict"] == UNKNOWN for row in rows)
    return {
        "kind": "audit",
        **frame({"text": text}, catalog.as_of, catalog.version),
        "lead": _lead(rows, unread),
        "verdict": verdict,
        "checks": [cast(CheckRow, row) for row in rows],
        "notes": notes,
        "warnings": [],
        "sources": {},
    }


def _lead(rows: Sequence[dict[str, Any]], unread: int) -> str:
    if not rows:
        return "No figure with a unit was found: nothing to judge."
    count = {name: sum(row["verdict"] == name for row in rows) for name in ("impossible", "implausible", "possible")}
    told = ", ".join(f"{number} {name}" for name, number in count.items() if number)
    left = f"{unread} not judged" if unread else ""
    return f"{counted(len(rows), 'figure')}: {', '.join(filter(None, (told, left)))}."


def _with_last(subject: SentenceSubject, last: SentenceSubject) -> tuple[SentenceSubject, list[str]]:
    """Return a subject with what it lacks from the sentence before, and what that was."""
    borrowed: dict[str, Any] = {}
    if not subject.chips and last.chips:
        borrowed["chips"] = [Mention(0, 0, *mention[2:]) for mention in last.chips[:1]]
        if subject.gpus is None:
            borrowed["gpus"] = last.gpus
    if subject.model is None and last.model is not None:
        borrowed |= {"model": last.model, "model_told": last.model_told}
        if subject.tokens is None:
            borrowed["tokens"] = last.tokens
    told = [word for name, word in (("chips", "accelerator"), ("model", "model")) if name in borrowed]
    return replace(subject, **borrowed), told


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= 40 else f"{sentence[:37]}…"


class _Sentence:
    """One sentence with what it speaks of."""

    def __init__(
        self, sentence: str, subject: SentenceSubject, catalog: Catalog, token_price: TokenPrices | None
    ) -> None:
        self.sentence, self.subject, self.catalog, self.token_price = sentence, subject, catalog, token_price
        self.lowered = sentence.lower()
        self.beside = self.lowered  # without the names of accelerators, whose "PCIe" or "80GB" is no claim
        for mention in subject.chips:
            blank = " " * (mention.end - mention.start)
            self.beside = self.beside[: mention.start] + blank + self.beside[mention.end :]
        self.figures = [figure for figure in figures_of(sentence) if figure.quantity not in _CONTEXT]

    def says(self, *words: str) -> bool:
        """Tell whether the sentence holds one of some patterns."""
        return any(re.search(word, self.lowered) for word in words)

    def judged(self) -> Judged:
        """Return each figure with its check; those of a training run are judged together."""
        found = self._payback() or self._run()
        done = {figure.start for figure, _ in found}
        for figure in self.figures:
            if figure.start in done or self._is_name(figure):
                continue
            if figure.low <= 0:
                found.append((figure, _unread(figure, "a figure of nothing")))
                continue
            try:
                check = self._judge(figure)
            except GpuCostError as error:
                check = _unread(figure, str(error))
            if check is not None:
                found.append((figure, check))
        return sorted((one for one in found if one[1].name != _TAKEN), key=lambda entry: entry[0].start)

    def _is_name(self, figure: Figure) -> bool:
        """Tell whether a figure is part of the name of an accelerator: the 80GB of an A100 80GB."""
        return any(one.start <= figure.start < one.end for one in self.subject.chips)

    # --- a training run: what it takes and costs

    def _run(self) -> Judged:
        subject = self.subject
        stated = [figure for figure in self.figures if figure.low > 0]
        times = [figure for figure in stated if figure.quantity in ("hours", "months", "gpu_hours")]
        costs = [figure for figure in stated if figure.quantity == "usd" and not figure.per]
        if not (subject.model and subject.tokens and subject.chips and (times or costs)):
            return []
        if not self.says(r"\btrain", r"pre-?train", r"\brun\b", r"tokens"):
            return []
        mention, judged = subject.chips[0], []
        claim = Claim(
            model=subject.model_told,
            tokens=subject.tokens,
            precision=subject.precision if subject.precision in ("bf16", "fp16", "fp8", "fp32", "tf32") else None,
        )
        for figure in (*times[:1], *costs[:1]):
            told: dict[str, Any] = {}
            if figure.quantity == "gpu_hours":
                told = {"gpu_hours": figure.high}
            elif figure.quantity in ("hours", "months"):
                days = figure.high / HOURS_PER_DAY if figure.quantity == "hours" else figure.high * 365 / 12
                told = {"days": days, "gpus": subject.gpus or 1}
            else:
                told = {"cost_usd": figure.high, "gpus": subject.gpus}
            checks = run_checks(claim._replace(**told), self.catalog, mention.variants)
            wanted = "cost" if figure.quantity == "usd" else "duration"
            judged += [(figure, check) for check in checks if check.name == wanted]
        return judged

    # --- a payback: what is bought, what renting and owning cost each month, and the months claimed

    def _payback(self) -> Judged:
        if not self.says(r"pays? (?:itself )?back", r"pays? for itself", r"payback", r"break[- ]?even", r"amorti[sz]"):
            return []
        stated = [figure for figure in self.figures if figure.low > 0]
        months = [figure for figure in stated if figure.quantity == "months" and not self._is_name(figure)]
        bought = [figure for figure in stated if figure.quantity == "usd" and not figure.per]
        monthly = [figure for figure in stated if figure.quantity == "usd" and figure.per in ("month", "year")]
        hourly = [figure for figure in stated if figure.quantity == "usd" and figure.per == "hour"]
        if not months or not bought or not (monthly or hourly):
            return []
        of_month = sorted(figure.middle / (12 if figure.per == "year" else 1) for figure in monthly)
        gpus = self.subject.gpus or 1
        rent = of_month[-1] if monthly else hourly[0].middle * gpus * HOURS_PER_MONTH
        own = of_month[0] if len(of_month) > 1 else 0.0
        after = self.lowered[bought[0].start + len(bought[0].text) :][:_CLOSE_BY]
        each = re.match(r"\s*(?:each|apiece|per (?:gpu|card)|a (?:gpu|card))\b", after) is not None
        claim = Claim(
            buy_usd=bought[0].middle * (gpus if each else 1),
            rent_usd_per_month=rent,
            own_usd_per_month=own,
            payback_months=months[0].middle,
        )
        checks = {check.name: check for check in check_payback(claim)}
        return [(months[0], checks["payback"]), *((one, _taken(one)) for one in (*bought[:1], *monthly, *hourly))]

    # --- one figure by its quantity

    def _judge(self, figure: Figure) -> Check | None:
        judge = getattr(self, f"_{figure.quantity}", None)
        if judge is None:
            return _unread(figure, f"no check for a figure in {figure.quantity.replace('_', ' ')} here")
        check: Check | None = judge(figure)
        return check

    def _chips(self, figure: Figure) -> tuple[Mention, int]:
        """Return the accelerator that a figure is of, and how many of them together."""
        mention = self.subject.nearest(figure)
        if mention is None:
            raise _Unasked("of which accelerator?")
        together = self.says(
            r"aggregate", r"\bpod\b", r"cluster", r"together", r"total", r"\bnode\b", r"server", r"system"
        )
        gpus = (self.subject.gpus or 1) if together or (self.subject.gpus and len(self.subject.chips) == 1) else 1
        return mention, mention.system.gpus if mention.system else gpus

    def _precision(self, figure: Figure) -> str:
        """Return the precision named nearest to a figure, behind it before ahead of it."""
        end, best = figure.start + len(figure.text), None
        for match in PRECISION.finditer(self.sentence):
            distance = match.start() - end if match.start() >= end else (figure.start - match.end()) * 1.5 + 1
            if best is None or distance < best[0]:
                best = (distance, precision_of(match[1]))
        if best is None:
            raise _Unasked("at which precision?")
        return best[1]

    def _tflops(self, figure: Figure) -> Check:
        mention, gpus = self._chips(figure)
        sparse = self.says(r"\bspars", r"2:4") and not self.says(r"without sparsity", r"\bdense\b")
        gpus = (
            1
            if not mention.system and not self.says("aggregate", "together", "pod", "cluster", "node", "total")
            else gpus
        )
        return hold.check_peak(
            figure.middle, mention.variants, self._precision(figure), sparse=sparse, gpus=gpus, slack=figure.slack
        )

    def _gb_per_s(self, figure: Figure) -> Check:
        mention, gpus = self._chips(figure)
        near = self.beside[max(0, figure.start - 40) : figure.start + len(figure.text) + 30]
        if re.search(r"nvlink|interconnect|pci|infinity fabric|\blinks?\b|infiniband|ici", near):
            one_way = bool(re.search(r"unidirectional|one direction|one-way|per direction|each way", near))
            pcie = "pci" in near and not re.search(r"nvlink", near)
            return hold.check_link(figure.middle, mention.variants, pcie=pcie, one_way=one_way, slack=figure.slack)
        return hold.check_bandwidth(figure.middle, mention.variants, gpus, figure.slack)

    def _gb(self, figure: Figure) -> Check | None:
        subject = self.subject
        if self.says(r"all-?reduce", r"all-?gather", r"over pcie", r"over nvlink", r"exchange", r"synchroni[sz]"):
            return None  # what is sent, not what is claimed
        of_model = self.says(
            r"weights?\b", r"parameters?\b", r"gradients?\b", r"\bmodel\b", r"training memory", r"optimi[sz]er"
        )
        if subject.model is not None and of_model:
            workload = make_workload(subject.model, latest_year=latest_year(self.catalog.as_of))
            size = sizes(workload)
            if self.says(r"train", r"optimi[sz]er") and not self.says(r"gradients?\b", r"weights"):
                return check_training_memory(figure.high, size, "full")
            stated = [precision_of(match[1]) for match in PRECISION.finditer(self.sentence)]
            if not stated:
                raise _Unasked("in which precision?")
            return check_weights(figure.middle, self.catalog, workload, self._precision(figure))
        mention, gpus = self._chips(figure)
        if self.says(r"\bl2\b"):
            return hold.check_cache(figure.middle * 1000, mention.variants)
        if self.says(r"\bl1\b", r"cache", r"registers?\b", r"shared memory", r"matrix", r"buffer"):
            raise _Unasked("sizes of registers and caches but L2 are not on record by accelerator")
        return hold.check_memory(figure.middle, mention.variants, gpus, figure.slack)

    def _w(self, figure: Figure) -> Check:
        mention, gpus = self._chips(figure)
        servers = [mention.system] if mention.system else []
        if not servers and self.says(r"server", r"\bnode\b", r"cluster", r"system") and gpus > 1:
            servers = [
                one
                for one in self.catalog.systems()
                if one.accelerator_id in {chip.id for chip in mention.variants} and one.gpus == gpus
            ]
        return hold.check_power(figure.middle, mention.variants, servers, gpus, figure.slack)

    def _cores(self, figure: Figure) -> Check:
        mention, _ = self._chips(figure)
        if figure.high < _FEWEST_CORES and not re.search(r"cuda|fp32|shader", figure.text.lower()):
            raise _Unasked("which cores? FP32 cores of a whole accelerator are counted in thousands")
        return hold.check_cores(figure.middle, mention.variants)

    def _multiprocessors(self, figure: Figure) -> Check:
        mention, _ = self._chips(figure)
        return hold.check_multiprocessors(figure.middle, mention.variants)

    def _intensity(self, figure: Figure) -> Check:
        mention, _ = self._chips(figure)
        stated = PRECISION.search(self.sentence)
        precision = precision_of(stated[1]) if stated else half_precision(mention.variants[0])
        return hold.check_ridge(figure.middle, mention.variants, precision)

    def _ratio(self, figure: Figure) -> Check:
        precisions = [precision_of(match[1]) for match in PRECISION.finditer(self.sentence)]
        if len(self.subject.chips) == 1 and len(precisions) == 2:
            return hold.check_precisions(figure.middle, self.subject.chips[0].variants, *precisions)
        if len(self.subject.chips) < 2:
            raise _Unasked("of which two accelerators?")
        quantity = self._compared()
        first, second = self.subject.chips[:2]
        check = hold.check_ratio(figure.middle, quantity, first.variants, second.variants)
        if check.verdict == IMPOSSIBLE:
            turned = hold.check_ratio(figure.middle, quantity, second.variants, first.variants)
            check = min((check, turned), key=lambda one: ("possible", "implausible", "impossible").index(one.verdict))
        return check

    def _compared(self) -> str:
        """Return the quantity that a sentence compares: bandwidth, memory, links, power, or the peak at a precision."""
        if self.says(r"bandwidth"):
            return "bandwidth"
        if stated := PRECISION.search(self.sentence):
            return precision_of(stated[1])
        if self.says(r"memory", r"vram"):
            return "memory"
        if self.says(r"nvlink", r"\blink"):
            return "link"
        if self.says(r"watt", r"\bpower\b", r"tdp"):
            return "power"
        raise _Unasked("so many times of what? A peak at which precision, bandwidth, memory?")

    def _percent(self, figure: Figure) -> Check:
        if self.says(r"\bmfu\b", r"of (?:the |its |their )?(?:dense |theoretical )?peak"):
            return self._share_of_peak(figure)
        if self.says(r"cheaper", r"\bless\b", r"below", r"saves?\b", r"saving", r"discount"):
            return self._saving(figure)
        if self.says(r"more", r"higher", r"faster", r"larger", r"greater") and len(self.subject.chips) >= 2:
            return self._ratio(figure._replace(low=1 + figure.low / 100, high=1 + figure.high / 100))
        raise _Unasked("a share of what?")

    def _share_of_peak(self, figure: Figure) -> Check:
        """Judge a claimed MFU of training by the speed that it means."""
        if self.subject.model is None:
            raise _Unasked("a share of the peak, of which model?")
        mention, gpus = self._chips(figure)
        chip = most_favourable(mention.variants, self.subject.precision)
        workload = make_workload(self.subject.model, latest_year=latest_year(self.catalog.as_of))
        speed = OwnSpeed(mfu_fraction=figure.middle / 100).tokens_per_s(chip, gpus, step_work(workload)) * gpus
        return hold.check_training_speed(speed, self.catalog, workload, chip, gpus)

    def _saving(self, figure: Figure) -> Check:
        """Judge how much less an hour costs than another: of two accelerators on demand, or of two options of one."""
        chips, provider = self.subject.chips, self.subject.provider
        by_use = OPTION_WORDS["on demand"]  # what every other option is set against
        options = [name for word, name in OPTION_WORDS.items() if word in self.lowered and name != by_use]
        if not chips:
            raise _Unasked("less for which accelerator?")
        if len(chips) >= 2:
            cheap, dear = ((mention, by_use) for mention in chips[:2])
        elif options:
            cheap, dear = (chips[0], options[0]), (chips[0], by_use)
        else:
            raise _Unasked("less than what? Name two options, or two accelerators")
        sides = [
            hold.seller_prices(self.catalog, self._named(mention), mention.variants, provider, option)
            for mention, option in (dear, cheap)
        ]
        return hold.check_cheaper(figure.middle / 100, *sides)

    def _named(self, mention: Mention) -> str:
        """Return an accelerator as the sentence names it; one that it takes from before by its id."""
        return self.sentence[mention.start : mention.end] or mention.variants[0].id

    def _usd(self, figure: Figure) -> Check:
        subject = self.subject
        if figure.per == "hour":
            mention = subject.nearest(figure)
            if mention is None and subject.instance is None:
                raise _Unasked("of which accelerator or machine?")
            variants = mention.variants if mention and subject.instance is None else []
            whole = subject.gpus or (mention.system.gpus if mention and mention.system else None)
            return hold.check_rent(
                figure.middle,
                self.catalog,
                variants,
                gpus=whole,
                provider=subject.provider,
                instance=subject.instance,
                option=subject.option,
            )
        if figure.per == "million tokens":
            return self._usd_per_mtok(figure)
        if figure.per:
            raise _Unasked(f"what is paid each {figure.per}? --buy with --rent-monthly judges a payback")
        if self.says(r"\bpod\b", r"cluster"):
            raise _Unasked("of how many machines, with which network? Prices of single servers are on record")
        mention, gpus = self._chips(figure)
        if self.says(r"server", r"dgx", r"hgx", r"\bnode\b", r"\brack\b"):
            whole = mention.system.gpus if mention.system else self.subject.gpus
            return hold.check_server(figure.middle, self.catalog, mention.variants, whole)
        each = self.says(r"\beach\b", r"per gpu", r"per card", r"apiece")
        return hold.check_purchase(figure.middle, self.catalog, mention.variants, 1 if each else gpus)

    def _usd_per_mtok(self, figure: Figure) -> Check:
        if self.subject.model is None or self.token_price is None:
            raise _Unasked("a million tokens of which model?")
        hosted = self.says(r"\bapis?\b", r"hosted", r"endpoint", r"serverless")
        mention = self.subject.nearest(figure)
        if mention is None and not hosted:
            raise _Unasked("on which accelerator, or by whose API?")
        chips = mention.variants if mention and not hosted else []
        known = self.token_price(self.catalog, self.subject.model_told, chips, hosted)
        return hold.check_token_price(figure.middle, known)

    def _tokens_per_s(self, figure: Figure) -> Check:
        subject = self.subject
        if subject.model is None:
            raise _Unasked("of which model?")
        mention, gpus = self._chips(figure)
        stated = subject.precision
        workload = make_workload(subject.model, latest_year=latest_year(self.catalog.as_of))
        chip = most_favourable(mention.variants, stated)
        precision = stated or half_precision(chip)
        if self.says(r"\btrain"):
            known = precision if precision in ("bf16", "fp16", "fp8", "fp32", "tf32", "fp4") else None
            workload = replace(workload, precision=known)
            return hold.check_training_speed(figure.middle, self.catalog, workload, chip, gpus)
        batch = re.search(r"batch(?: size)?(?: of)? (\d+)", self.lowered)
        single = self.says(r"single (?:user|stream|sequence)", r"one (?:user|sequence)", r"batch(?: size)?(?: of)? 1\b")
        return check_decode(
            figure.middle, subject.model, precision, chip, gpus, 1 if single else int(batch[1]) if batch else None
        )

    def _s(self, figure: Figure) -> Check:
        if not self.says(r"all-?reduce", r"gradients?", r"exchange", r"synchroni[sz]", r"over pcie", r"over nvlink"):
            raise _Unasked("the time of what?")
        sizes_gb = [one for one in self.figures if one.quantity == "gb" and one.low > 0 and not self._is_name(one)]
        if not sizes_gb:
            raise _Unasked("of how many GB?")
        if self.subject.gpus is None or self.subject.gpus < 2:
            raise _Unasked("over how many accelerators? One has nothing to exchange")
        mention, _ = self._chips(figure)
        pcie = "pci" in self.beside and "nvlink" not in self.lowered[figure.start - 30 : figure.start + 40]
        chip = most_favourable(mention.variants, None)
        return hold.check_all_reduce(figure.high, sizes_gb[0].middle, self.subject.gpus, self.catalog, chip, pcie=pcie)

    def _kwh(self, figure: Figure) -> Check:
        hours = [one for one in self.figures if one.quantity in ("hours", "gpu_hours") and one.low > 0]
        if not hours:
            raise _Unasked("over how many hours?")
        mention, gpus = self._chips(figure)
        count = 1 if hours[0].quantity == "gpu_hours" else gpus
        return hold.check_energy(figure.middle, mention.variants, count, hours[0].middle)

    def _kg(self, figure: Figure) -> Check:
        energy = [one for one in self.figures if one.quantity == "kwh" and one.low > 0]
        if not energy:
            raise _Unasked("from how many kWh?")
        return hold.check_carbon(figure.middle, energy[0].middle, hold.grids(self.catalog))

    def _hours(self, figure: Figure) -> Check | None:
        if any(one.quantity in ("kwh", "usd") for one in self.figures):
            return None  # over which energy or money is counted
        raise _Unasked("the time of what? A run needs a model, tokens and accelerators")

    _gpu_hours = _hours

    def _months(self, figure: Figure) -> Check | None:
        raise _Unasked("--buy with --rent-monthly and --own-monthly judges a payback")


def _taken(figure: Figure) -> Check:
    """Mark a figure that another one is judged by."""
    return Check(_TAKEN, UNKNOWN, figure.middle, None, None, None, figure.quantity, "")


def _unread(figure: Figure, why: str) -> Check:
    return Check(NOT_READ, UNKNOWN, figure.middle, None, None, None, figure.quantity, f"Not judged: {why}")
