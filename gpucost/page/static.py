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


def page(queries: Sequence[Mapping[str, str]]) -> str:
    """Return the page with the answers to questions; the first is shown unless the address asks another one."""
    if not queries or len(queries) > _MOST:
        raise UsageError(f"a page holds 1 to {_MOST} questions; found {len(queries)}.")
    answers: dict[str, dict[str, dict[str, Any]]] = {}
    for query in queries:
        tabs = answers.setdefault(urlencode(query), {})
        for name, ask in _TABS.items():
            try:
                answer = ask(query)
            except GpuCostError as error:  # a plan that cannot be served can still be trained
                sentence = without_commands(" ".join(without_contents(error, query).split()))
                answer = {"error": sentence, "said": sentence, "nearest": []}
            # without the command line: who opens the file may have no such program
            tabs[name] = {key: value for key, value in answer.items() if key != "command"}
    if all("error" in tabs["plan"] for tabs in answers.values()):
        questions.plan(queries[0])  # says why there is nothing to show
    # within a script only "<" could end it
    script = dumps(answers).replace("<", "\\u003c")
    text = document()
    for link, whole in (
        ('<link rel="stylesheet" href="page.css">', f"<style>{_asset('page.css')}</style>"),
        ('<script src="page.js" defer></script>', f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        (
            "</body>",
            f'<script type="application/json" id="kept">{script}</script>\n'
            f"<script>{_asset('page.js')}</script>\n</body>",
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


def _read_question(text: str) -> dict[str, str]:
    """Read a question as the address of the page holds it, with or without what stands before the question mark.

    >>> _read_question("http://127.0.0.1:8000/token/?model=8b&tokens=100b")
    {'model': '8b', 'tokens': '100b'}
    """
    query = dict(parse_qsl(text.rpartition("?")[2], keep_blank_values=False))
    # what the page remembers of its own view is no part of the question
    return {name: value for name, value in query.items() if name not in ("tab", "beside", "currency")}


def write(folder: str, addresses: Sequence[str]) -> str:
    """Write the page of questions into a folder as index.html and return its path."""
    from pathlib import Path

    texts = addresses or ("model=8b&tokens=100b",)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--static: {folder} cannot be made ({error.strerror}). Name another folder.") from None
    path = str(Path(folder, "index.html"))
    write_text(path, page([_read_question(text) for text in texts]))
    return path
