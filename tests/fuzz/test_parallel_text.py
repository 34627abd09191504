"""Foreign parallel text: TSV, JSON lines, two files, packed or not; lines and documents."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.data.documents import read_documents, read_sentences
from keras_transformer.data.text_files import read_pairs, read_texts
from tests.fuzz.mutations import damaged, json_files, lines_of
from tests.fuzz.outcome import fuzz, outcome

pytestmark = pytest.mark.once("reads text; no tensors")

LINES = ["A dog runs.\tEin Hund läuft.", "Two cats.\tZwei Katzen.\tand more", "", "no tab"]
PARTS = ["\t", "\0", "\x85", "\u2029", "\ufeff", "a", " ", "\v"]
RECORDS = [
    {"en": "A dog.", "de": "Ein Hund."},
    {"source": "A dog.", "target": "Ein Hund."},
    {"translation": {"en": "A dog.", "de": "Ein Hund."}},
    {"text": "A dog."},
    "A dog.",
]
SHARE = 4
text_files = lines_of(LINES, PARTS)
packed = st.one_of(text_files.map(gzip.compress), damaged(gzip.compress("\n".join(LINES).encode())))


@fuzz(share=SHARE)
@given(text_files, st.sampled_from((".tsv", ".txt", ".json", ".csv", "")))
def test_one_file(room, content, suffix):
    (path := room / f"text{suffix}").write_bytes(content)
    pairs = outcome("parallel text", read_pairs, path)
    assert pairs is None or all(isinstance(x, str) for pair in pairs for x in pair)


@fuzz(share=SHARE)
@given(text_files, text_files)
def test_two_files(room, source, target):
    (room / "source").write_bytes(source)
    (room / "target").write_bytes(target)
    outcome("parallel text", read_pairs, room / "source", room / "target")
    outcome("lines", read_texts, room / "source")
    outcome("lines", read_sentences, room / "target")


@fuzz(share=SHARE)
@given(packed, st.sampled_from((".tsv.gz", ".tmx.gz", ".jsonl.gz", ".GZ")))
def test_packed_files(room, content, suffix):
    (path := room / f"text{suffix}").write_bytes(content)
    outcome("parallel text", read_pairs, path)
    outcome("lines", read_texts, path)


@fuzz(share=SHARE)
@given(st.lists(st.sampled_from(RECORDS).flatmap(json_files), min_size=1, max_size=4))
def test_json_lines(room, lines):
    (path := room / "text.jsonl").write_bytes(b"\n".join([*lines, json.dumps(RECORDS[0]).encode()]))
    outcome("parallel text", read_pairs, path)
    outcome("lines", lambda: list(read_documents(path)))
