"""Foreign small files: glossaries, subtitles."""

import pytest
from hypothesis import example, given

from keras_transformer.serving.readers import subtitles
from keras_transformer.text.glossary import Glossary
from tests.fuzz.mutations import lines_of
from tests.fuzz.outcome import fuzz, outcome

pytestmark = pytest.mark.once("reads text; no tensors")

TERMS = ["dog\tHund\tHunde", "# a comment", "", "hot dog\tHotdog", "(a+)+$\t[x", "a\t"]
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


@fuzz(100)
@given(lines_of(SUBTITLES, [TIMES, "\n", "-->", "<", ">", "0", "\0"]))
@example(b"1" * 300_000)
@example(b"0:0:0,0 --> " * 30_000)
def test_subtitles(content):
    def read():
        return subtitles.filled(content, [f"{x}!" for x in subtitles.texts(content)])

    outcome("subtitles", read)
