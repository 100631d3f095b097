#!/usr/bin/env python3
"""Answers scenarios before and after a change, writes what differs as a comment, and fails where a limit is broken.

It runs in a checkout, in pipelines of GitHub (`action.yml`), GitLab (`packaging/gitlab/cost.yml`) or any other, and
needs Python alone beside gpucost and git. The environment says what to do:

    SCENARIO         scenario files, one a line or with spaces between
    PART             names of parts, likewise; `all` is every part; a scenario without a named one gives its first
    BUDGET           most USD that each part may cost
    MOST_RISE        most by which the cost of each part may rise, such as 10%
    COMMENT          `true` writes the comment, or edits the one that an earlier run wrote
    ONLY_IF_CHANGED  `true` writes it only where a cost changes
    BASE             the branch that the change goes to
    PULL             number of the pull request, on GitHub
    GITLAB_TOKEN     a token that may write notes, on GitLab
    OUT              folder of `cost.md`, the comment in Markdown, and of the answers; else RUNNER_TEMP, else a new one
    GPUCOST          the command; else that of OUT/gpucost/bin
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib import request as http

OVER = 3  # exit code: a limit is broken
CENT = 0.005
said = os.environ.get


def words(name: str) -> list[str]:
    """Return the entries of a list in the environment."""
    return (said(name) or "").split()


def ask(out: Path, *arguments: str | Path, folder: Path | None = None) -> int:
    """Run gpucost; return its exit code."""
    command = said("GPUCOST") or str(out / "gpucost/bin/gpucost")
    return subprocess.run([command, *map(str, arguments)], cwd=folder, check=False).returncode


def must(code: int) -> int:
    """Return the code of a command that ran; leave with that of one that could not."""
    if code not in (0, OVER):
        sys.exit(code)
    return code


def git(*arguments: str) -> bool:
    """Run git; tell whether it succeeded."""
    return subprocess.run(["git", *arguments], capture_output=True, check=False).returncode == 0


@contextmanager
def base_checkout(out: Path, base: str) -> Iterator[Path]:
    """Check out the branch that a change goes to beside it, and remove that again."""
    place = out / "base"
    git("worktree", "remove", "--force", str(place))
    shutil.rmtree(place, ignore_errors=True)
    git("worktree", "prune")  # of a run that was stopped
    if not git("rev-parse", "--verify", f"origin/{base}"):  # a checkout without history
        git("fetch", "--depth", "1", "origin", f"{base}:refs/remotes/origin/{base}")
    git("worktree", "add", "--quiet", "--detach", str(place), f"origin/{base}")
    try:
        yield place
    finally:
        git("worktree", "remove", "--force", str(place))


def read(path: Path) -> dict[str, Any]:
    """Read a JSON file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def parts_of(answer: Path, wanted: Sequence[str]) -> list[str]:
    """Return the parts of a scenario's answer to compare, as `saved diff` calls them behind its file."""
    names = [str(part["name"]) for part in read(answer).get("parts", [])]
    chosen = names if list(wanted) == ["all"] else [name for name in names if name in wanted] or names[:1]
    return [f"#{name}" for name in chosen] or [""]


class Piece(NamedTuple):
    """What a change does to a part."""

    name: str
    text: str
    cost: float
    change: float
    over: bool


def compared(out: Path, scenario: str, part: str, was: Path | None, why_not: str) -> Piece:
    """Compare a part with what it was; where that is not known, all of its cost is new, and the budget alone holds."""
    after = f"{out / 'after.json'}{part}"
    before = after if was is None else f"{was}{part}"
    budget = ["--budget", said("BUDGET")] if said("BUDGET") else []
    rise = ["--most-rise", said("MOST_RISE")] if said("MOST_RISE") and was is not None else []
    form = "github" if said("GITHUB_REPOSITORY") else "md"
    limits = [*map(str, (*budget, *rise))]
    code = must(ask(out, "saved", "diff", before, after, *limits, "--format", form, "-o", out / "part.md"))
    must(ask(out, "saved", "diff", before, after, "--format", "json", "-o", out / "part.json"))
    figures, text = read(out / "part.json"), (out / "part.md").read_text(encoding="utf-8")
    cost = float(figures["after"])
    if was is None:
        over = f"\n**Over the budget of {said('BUDGET')} USD.**\n" if code == OVER else ""
        text = f"### GPU cost: ${cost:,.2f}\n\n{why_not}\n{over}"
    name = f"{scenario}{part}"
    return Piece(name, text, cost, cost if was is None else float(figures["change"]), code == OVER)


def pieces_of(out: Path, scenario: str, base: Path) -> list[Piece]:
    """Compare the parts of one scenario."""
    after, before = out / "after.json", out / "before.json"
    for answer in (after, before):
        answer.unlink(missing_ok=True)
    must(ask(out, "report", scenario, "-o", after))
    known: Path | None = None
    if not base.exists():
        why = f"The branch `{said('BASE')}` cannot be read, so nothing is compared."
    elif not (base / scenario).exists():
        why = "This scenario is new: all of its cost is new."
    elif ask(out, "report", scenario, "-o", before, folder=base) not in (0, OVER):
        why = f"What the scenario costs on `{said('BASE')}` cannot be read, so nothing is compared."
    else:
        why, known = "", before
    pieces = []
    for part in parts_of(after, words("PART")):
        same = known is not None and part in parts_of(known, ["all"])
        unknown = why or f"The part {part.removeprefix('#')} is new: all of its cost is new."
        pieces.append(compared(out, scenario, part, known if same else None, "" if same else unknown))
    return pieces


def comment_of(pieces: Sequence[Piece], marker: str) -> str:
    """Write the comment: the marker, a table where there are several parts, and each part."""
    if len(pieces) == 1:
        return f"{marker}\n{pieces[0].text}"
    change = sum(piece.change for piece in pieces)
    rows = [f"| {piece.name} | ${piece.cost:,.2f} | {piece.change:+,.2f} |" for piece in pieces]
    parts = [f"\n**{piece.name}**\n\n{piece.text.replace('### ', '', 1)}" for piece in pieces]
    head = f"### GPU cost: {change:+,.2f} USD over {len(pieces)} parts"
    return "\n".join([marker, head, "", "| part | cost | change |", "|---|--:|--:|", *rows, *parts])


def publish(text: str, marker: str, path: Path) -> None:
    """Write the comment on GitHub or GitLab, or edit the one that bears the marker; another one is never touched."""
    repository, pull, merge = said("GITHUB_REPOSITORY"), said("PULL"), said("CI_MERGE_REQUEST_IID")
    if repository and pull:
        comments = f"repos/{repository}/issues"
        chosen = f'.[] | select(.body | startswith("{marker}")) | .id'
        found = gh("--paginate", f"{comments}/{pull}/comments", "--jq", chosen).split()
        place = ("-X", "PATCH", f"{comments}/comments/{found[0]}") if found else (f"{comments}/{pull}/comments",)
        gh("--silent", *place, "-F", f"body=@{path}")
    elif merge and said("GITLAB_TOKEN"):
        notes = f"{said('CI_API_V4_URL')}/projects/{said('CI_PROJECT_ID')}/merge_requests/{merge}/notes"
        own = next((note["id"] for note in gitlab_notes(notes) if note["body"].startswith(marker)), None)
        gitlab(notes if own is None else f"{notes}/{own}", "POST" if own is None else "PUT", {"body": text})


def gh(*arguments: str) -> str:
    """Ask GitHub."""
    return subprocess.run(["gh", "api", *arguments], check=True, capture_output=True, text=True).stdout


def gitlab(url: str, method: str = "GET", body: dict[str, str] | None = None) -> tuple[Any, str]:
    """Ask GitLab; return the answer, and the page that follows."""
    heads = {"PRIVATE-TOKEN": said("GITLAB_TOKEN") or "", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with http.urlopen(http.Request(url, data, heads, method=method), timeout=60) as answer:
        return json.load(answer), answer.headers.get("X-Next-Page") or ""


def gitlab_notes(notes: str) -> Iterator[dict[str, Any]]:
    """Yield the notes of a merge request."""
    page = "1"
    while page:
        found, page = gitlab(f"{notes}?sort=asc&per_page=100&page={page}")
        yield from found


def main() -> int:
    """Answer, compare, publish; return the exit code."""
    out = Path(said("OUT") or said("RUNNER_TEMP") or tempfile.mkdtemp()).absolute()
    out.mkdir(parents=True, exist_ok=True)
    path = out / "cost.md"
    path.unlink(missing_ok=True)
    with base_checkout(out, said("BASE") or "main") as base:
        pieces = [piece for scenario in words("SCENARIO") for piece in pieces_of(out, scenario, base)]
    if not pieces:
        print("No scenario: name one in SCENARIO.", file=sys.stderr)
        return 2
    marker = f"<!-- gpucost: {' '.join(words('SCENARIO'))}#{' '.join(words('PART'))} -->"  # known by the next run
    path.write_text(comment_of(pieces, marker), encoding="utf-8")
    over = any(piece.over for piece in pieces)
    figures = {
        "comment": path,
        "cost": sum(piece.cost for piece in pieces),
        "change": sum(piece.change for piece in pieces),
        "over": str(over).lower(),
    }
    if outputs := said("GITHUB_OUTPUT"):
        with open(outputs, "a", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in figures.items())
    if summary := said("GITHUB_STEP_SUMMARY"):  # also where a fork may not comment
        with open(summary, "a", encoding="utf-8") as file:
            file.write(path.read_text(encoding="utf-8"))
    changed = any(abs(piece.change) >= CENT for piece in pieces)
    if said("COMMENT") == "true" and (changed or said("ONLY_IF_CHANGED") != "true"):
        try:
            publish(path.read_text(encoding="utf-8"), marker, path)
        except (OSError, subprocess.CalledProcessError):
            note = "::notice::" if said("GITHUB_REPOSITORY") else ""
            print(f"{note}This run may not comment, as one from a fork: its summary has the cost, as {path} has.")
    return OVER if over else 0


if __name__ == "__main__":
    sys.exit(main())
