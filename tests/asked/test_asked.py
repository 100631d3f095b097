"""One answer to a question, whichever way it is asked: `questions.toml` has questions, their faces and the truth."""

import json
import math
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gpucost
from gpucost.agents import tools
from gpucost.page import questions
from tests.commands import in_process

ROWS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text(encoding="utf-8"))["row"]
FACE = re.compile(r"^(?P<ask>.*) => (?P<path>[^*=]+?)(?: \* (?P<times>[\d.e+-]+))?(?: == (?P<wanted>.*))?$")


@pytest.fixture(scope="module")
def catalog():
    """Return the catalog of today, and let every face of these questions open each day's but once."""
    import gpucost.catalog as facts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facts, "open_catalog", cache(facts.open_catalog))
        yield facts.open_catalog()


def answer_of(ask: str, catalog: Any) -> Any:
    """Return what a face answers, as JSON would hold it; of a command its exit code too."""
    kind, _, rest = ask.partition(" ")
    if kind == "library":
        name, _, arguments = rest.partition("(")
        asked = eval(f"dict_of({arguments}", {"dict_of": lambda *places, **names: (places, names)})
        return getattr(gpucost, name)(*asked[0], **asked[1], catalog=catalog).payload
    if kind == "page":
        return questions.plan(json.loads(rest))
    if kind == "agents":
        name, _, arguments = rest.partition(" ")
        return tools.call(name, json.loads(arguments))
    done = in_process(*shlex.split(ask), "--format", "json")
    if done.returncode not in (0, 5):
        return {"exit": done.returncode, "error": done.stderr}
    answer = json.loads(done.stdout)
    return {**answer, "exit": done.returncode, "possible": answer.get("verdict") == "possible"}


def figure_of(answer: Any, path: str) -> Any:
    """Return a figure by its path: keys, places, the names of checks, or the length of a list."""
    found = answer
    for part in path.split("."):
        if part == "length":
            found = len(found)
        elif isinstance(found, list) and not part.isdigit():
            found = next(row for row in found if row["name"] == part)
        else:
            assert not isinstance(found, dict) or part in found, f"{part} is not in {str(found)[:400]}"
            found = found[int(part)] if isinstance(found, list) else found[part]
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["question"])
def test_every_face_gives_the_same_answer(row, catalog):
    figures = []
    for text in row["faces"]:
        face = FACE.match(text)
        assert face is not None, text
        figure = figure_of(answer_of(face["ask"], catalog), face["path"])
        if face["wanted"] is not None:
            assert str(figure).lower() == face["wanted"], text
        else:
            figures.append(figure * float(face["times"] or 1))
    for figure in figures[1:]:
        assert math.isclose(figure, figures[0], rel_tol=row.get("within", 0.001)), (row["faces"], figures)
    if "true" in row:
        low, high = row["true"]
        assert all(low <= figure <= high for figure in figures), (figures, row["source"])


def test_there_are_a_hundred_and_fifty_of_them():
    assert len(ROWS) >= 150
    assert len({row["question"] for row in ROWS}) == len(ROWS)
    assert all("source" in row for row in ROWS if "true" in row)
