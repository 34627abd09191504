"""Every block of code of the pages, the results and the README: it runs, or its commands exist.

A page's blocks run in order, in one folder and one namespace, with tiny models in the places that
they name (`conftest.py`). Before a block `<!-- not run: REASON -->` says that it does not run here;
its commands are checked all the same. Output is marked as `text`.
"""

from __future__ import annotations

import importlib
import re
import shutil
import signal
import textwrap

import keras
import pytest

from keras_transformer import demo
from keras_transformer.system.ports import free_port

from .shell import ROOT, SERVERS, commands_of

RESULTS = "benchmarks/results"
PLACES = [f"{x}/*.md" for x in ("docs", "docs/lessons", RESULTS, f"{RESULTS}/quality")]
PAGES = sorted(x.relative_to(ROOT).as_posix() for place in PLACES for x in ROOT.glob(place))
PAGES = ["README.md", *(page for page in PAGES if page != "docs/add-a-family.md")]  # has its test
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<language>\w*)(?P<title>[^\n]*)\n(?P<code>.*?)\n```\n",
    re.DOTALL,
)
TITLE = re.compile(r' title="(.*)"')
LANGUAGES = ("bash", "python", "text", "mermaid", "javascript", "kotlin", "swift")
REASONS = ("needs a network", "needs data", "takes minutes", "takes hours")
ELSEWHERE = re.compile(r"(?:slow|it trains): (\S+) runs it")


def blocks(page):
    """(language, code, line of the page, file that it quotes or None, reason not to run or None)"""
    text = (ROOT / page).read_text("utf-8")
    for match in BLOCK.finditer(text):
        line = text[: match.start("code")].count("\n")
        quoted = TITLE.match(match["title"])
        reason = (match["mark"] or "").removeprefix("not run: ") or None
        yield match["language"], match["code"], line, quoted and quoted[1], reason


@pytest.mark.parametrize("page", PAGES)
def test_languages_and_reasons(page):
    """No block is left out because nobody knows its language, or why."""
    text = (ROOT / page).read_text("utf-8")
    found = list(blocks(page))
    assert len(found) * 2 == len(re.findall(r"^```", text, re.MULTILINE))
    for language, _, line, _, reason in found:
        assert language in LANGUAGES, f"{page}, line {line}"
        if reason and (elsewhere := ELSEWHERE.fullmatch(reason)):
            assert (ROOT / elsewhere[1]).exists(), f"{page}, line {line}: {reason}"
        else:
            assert reason in (None, *REASONS), f"{page}, line {line}: {reason}"


def test_few_blocks_do_not_run():
    pages = [page for page in PAGES if not page.startswith(RESULTS)]  # those of hours are there
    skipped = [page for page in pages for *_, reason in blocks(page) if reason]
    assert len(skipped) <= 25, skipped


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page):
    for language, code, *_ in blocks(page):
        if language == "bash":
            for pipe in commands_of(code):
                for command in pipe:
                    command.check()


def test_the_notebook_of_a_lesson_ends():
    """A cell waits for each of its commands: what serves runs in the background and is stopped."""
    for page in [page for page in PAGES if page.startswith("docs/lessons/")]:
        code = "\n".join(code for language, code, *_ in blocks(page) if language == "bash")
        servers = re.findall(r"^keras-transformer (?:serve|chat|launch).*", code, re.MULTILINE)
        assert all(re.search(r"> \S+ 2>&1 &$", line) for line in servers), page
        assert len(servers) == len(re.findall(r"^kill ", code, re.MULTILINE)), page


@pytest.mark.parametrize("page", PAGES)
def test_keras_is_imported_after_the_package(page):
    """Keras alone would take TensorFlow, which may not be installed."""
    code = "\n".join(code for language, code, *_ in blocks(page) if language == "python")
    found = re.findall(r"^(?:import|from) (keras\w*)", code, re.MULTILINE)
    assert found[:1] != ["keras"]


@pytest.mark.parametrize("page", PAGES)
def test_quoted_lines_stand_in_their_files(page):
    for _, code, line, quoted, _ in blocks(page):
        if quoted:
            lines = (ROOT / quoted).read_text("utf-8").splitlines()
            wanted = textwrap.dedent(code).splitlines()
            there = any(
                textwrap.dedent("\n".join(lines[i : i + len(wanted)])).splitlines() == wanted
                for i in range(len(lines))
            )
            assert there, f"{page}, line {line}: not in {quoted}"


@pytest.mark.parametrize("page", PAGES)
def test_names_in_the_text_exist(page):
    """Names of modules, their members, files and commands."""
    text = BLOCK.sub("", (ROOT / page).read_text("utf-8"))
    for name in re.findall(r"`([^`\n]+)`", text):
        if re.fullmatch(r"(keras_transformer|training|benchmarks|tests)/[\w/.]*", name):
            assert (ROOT / name).exists(), name
        elif page == "docs/paper.md" and re.fullmatch(r"[\w./]+\.py", name):
            assert (ROOT / "keras_transformer" / name).exists(), name
        elif re.fullmatch(r"(keras_transformer|training)(\.\w+)+", name):
            _resolve(name)
        elif re.match(r"keras-transformer \w+ \w", name):
            commands_of(name)[0][0].check()


def _resolve(name):
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for part in parts[i:]:
            found = getattr(found, part)
        return


@pytest.fixture
def small_corpus(monkeypatch):
    """The embedded corpus with 800 sentences to train at most, and 20 for the other parts."""
    splits = demo.splits

    def few(train=800, **sizes):
        return splits(train=min(train, 800), **sizes | dict(validation=20, test=20))

    monkeypatch.setattr(demo, "splits", few)


@pytest.fixture
def port():
    """A free one, in place of the pages' 5000; what serves there is stopped at the end."""
    yield str(free_port())
    while SERVERS:
        server = SERVERS.pop()
        server.terminate()
        assert server.wait(30) in (0, -signal.SIGTERM)


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page))])
def test_blocks_run(page, world, tmp_path, monkeypatch, small_corpus, port):
    if page.startswith("docs/lessons/") and keras.backend.backend() != "torch":
        pytest.skip("what lessons use has its tests on each backend: PyTorch alone saves time")
    folder = shutil.copytree(world, tmp_path / "world")
    monkeypatch.chdir(folder)
    scope = {"__name__": "page"}
    for language, code, line, quoted, reason in blocks(page):
        if reason or quoted:
            continue
        code = re.sub(r"\b5000\b", port, code)
        if language == "python":  # with the page's own line numbers
            exec(compile("\n" * line + code, page, "exec"), scope)
        elif language == "bash":
            for pipe in commands_of(code):
                wrote = ""
                for command in pipe:
                    wrote = command.run(wrote)
