"""The page as one file that stands alone: the answers of some questions inside, no server behind it."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlencode

from gpucost.arguments.files import without_contents
from gpucost.errors import GpuCostError, UsageError
from gpucost.page import questions
from gpucost.render.json import dumps
from gpucost.render.wording import without_commands
from gpucost.store.files import write_text

_MOST = 20  # questions of one file
_TABS = {"plan": questions.plan, "serve": questions.serve, "own": questions.own, "fit": questions.fit}
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
    " form-action 'none'"
)


def page(asked: Sequence[Mapping[str, str]]) -> str:
    """Return the page with the answers to questions; the first is shown unless the address asks another one."""
    if not asked or len(asked) > _MOST:
        raise UsageError(f"a page holds 1 to {_MOST} questions; found {len(asked)}.")
    kept = {urlencode(query): {name: _answer(ask, query) for name, ask in _TABS.items()} for query in asked}
    if all("error" in answers["plan"] for answers in kept.values()):
        questions.plan(asked[0])  # says why there is nothing to show
    held = dumps(_without_commands(kept)).replace("<", "\\u003c")
    text = document()
    for link, whole in (
        ('<link rel="stylesheet" href="page.css">', f"<style>{_asset('page.css')}</style>"),
        ('<script src="page.js" defer></script>', f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        (
            "</body>",
            f'<script type="application/json" id="kept">{held}</script>\n<script>{_asset("page.js")}</script>\n</body>',
        ),
    ):
        text = text.replace(link, whole)
    return text


def document() -> str:
    """Return the page without an answer; its maps draw on the outline of the land that stands in it."""
    land = files("gpucost.render").joinpath("assets", "land.svg").read_text("utf-8")
    return _asset("page.html").replace("<!-- land -->", land)


def _asset(name: str) -> str:
    return files("gpucost.page").joinpath("assets", name).read_text("utf-8")


def _answer(ask: Any, query: Mapping[str, str]) -> dict[str, Any]:
    """Return an answer, or why there is none: a plan that cannot be served can still be trained."""
    try:
        answer: dict[str, Any] = ask(query)
    except GpuCostError as error:
        sentence = " ".join(without_contents(error, query).split())
        return {"error": without_commands(sentence), "said": without_commands(sentence), "nearest": []}
    return answer


def _without_commands(kept: Mapping[str, Mapping[str, dict[str, Any]]]) -> dict[str, Any]:
    """Leave out the command lines: who opens the file may have no such program."""
    return {
        query: {
            name: {key: value for key, value in answer.items() if key != "command"} for name, answer in tabs.items()
        }
        for query, tabs in kept.items()
    }


def read_question(text: str) -> dict[str, str]:
    """Read a question as the address of the page holds it, with or without what stands before the question mark.

    >>> read_question("http://127.0.0.1:8000/token/?model=8b&tokens=100b")
    {'model': '8b', 'tokens': '100b'}
    """
    asked = dict(parse_qsl(text.rpartition("?")[2], keep_blank_values=False))
    return {name: value for name, value in asked.items() if name not in ("tab", "beside", "currency")}


def write(folder: str, asked: Sequence[str]) -> str:
    """Write the page of questions into a folder as index.html and return its path."""
    from pathlib import Path

    texts = asked or ("model=8b&tokens=100b",)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--static: {folder} cannot be made ({error.strerror}). Name another folder.") from None
    path = str(Path(folder, "index.html"))
    write_text(path, page([read_question(text) for text in texts]))
    return path
