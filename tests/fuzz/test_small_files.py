"""Foreign small files: glossaries, recipes in TOML, subtitles."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.serving.readers import subtitles
from keras_transformer.text.glossary import Glossary
from keras_transformer.training.recipe import FOLDER, read_recipe
from tests.fuzz.mutations import damaged, lines_of
from tests.fuzz.outcome import fuzz, outcome

pytestmark = pytest.mark.once("reads text; no tensors")

TERMS = ["dog\tHund\tHunde", "# a comment", "", "hot dog\tHotdog", "(a+)+$\t[x", "a\t"]
RECIPE = """\
corpus = "files"
vocab_size = 500
epochs = 2
clip_norm = 1.0
monitor = "val_loss"
[model]
d_model = 64
dropout = 0.1
[[corpora]]
source = "a.en"
target = "a.de"
weight = 2.5
[distribution]
data = -1
"""
TOML = ["nan", "inf", "-inf", "-1", "0", "1e400", "true", '""', "[]", "{}", "[[]]", "1979-05-27"]
TOML += ["9" * 5000, "[" * 3000 + "]" * 3000, '"../x"', "0xffffffffffffffffff", "{a = {a = 1}}"]
TIMES = "00:00:01,000 --> 00:00:02,000"
SUBTITLES = ["1", TIMES, "A <i>dog</i> runs.", "", "2", TIMES + " X1:0", "\ufeff1", "9" * 3000]


@fuzz(100)
@given(lines_of(TERMS, ["\t", "#", "\\", "(", " ", "\ufb01", "\u0130", "<term>"]))
@example(b"a" * 200_000 + b"\tb")
def test_glossaries(room, content):
    (path := room / "terms.tsv").write_bytes(content)

    def used():
        glossary = Glossary.read(path)
        glossary.terms_in("A hot dog saw the dog. " + "a" * 2000)
        return glossary

    outcome("glossaries", used)


@st.composite
def recipes(draw):
    lines = draw(st.sampled_from((RECIPE, (FOLDER / "grammar.toml").read_text("utf-8")))).split(
        "\n"
    )
    for _ in range(draw(st.integers(1, 3))):
        i = draw(st.integers(0, len(lines) - 1))
        name, equals, _ = lines[i].partition("=")
        value = draw(st.sampled_from(TOML))
        lines[i] = draw(st.sampled_from((f"{name}{equals}{value}", "", lines[0], f"x={value}")))
    content = "\n".join(lines).encode()
    return draw(damaged(content)) if draw(st.integers(0, 3)) == 0 else content


changes = st.builds("{}={}".format, st.sampled_from(("epochs", "model.d_model", "x.y", "", "seed")),
                    st.sampled_from(TOML))  # fmt: skip


@fuzz(150)
@given(recipes(), st.lists(changes, max_size=2))
def test_recipes(room, content, changes):
    (path := room / "own.toml").write_bytes(content)
    outcome("recipes", read_recipe, str(path), changes)


@fuzz(100)
@given(lines_of(SUBTITLES, [TIMES, "\n", "-->", "<", ">", "0", "\0"]))
@example(b"1" * 300_000)
@example(b"0:0:0,0 --> " * 30_000)
def test_subtitles(content):
    def read():
        return subtitles.filled(content, [f"{x}!" for x in subtitles.read(content)[0]])

    outcome("subtitles", read)
