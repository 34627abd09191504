"""Shortlists in Marian's forms: files that Marian reads and wrote, ours, and broken ones."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from keras_transformer import Translator
from keras_transformer.hub.marian.shortlists import read_shortlist, write_shortlist
from keras_transformer.pretrained import load_pretrained
from keras_transformer.text.lexical_shortlist import Shortlist
from tests.hub.marian.make import run
from tests.hub.marian.models import SOURCES, copied, needs_marian

pytestmark = pytest.mark.once("files: no tensor is read")

# Of `pymarian convert --shortlist lex.s2t 2 2 0 --dump-shortlist lex.bin`, with these words.
DATA = Path(__file__).with_name("data")
WORDS = ["</s>", "<unk>", "a", "b", "c", "d", "e", "f"]
ROWS = [[0], [], [4, 5], [7], [1], [1], [], []]


def tokenizer(shared=False, words=WORDS):
    return SimpleNamespace(
        source_vocab_size=len(words), target_vocab_size=len(words), shared=shared,
        eos_id=0, unk_id=1, pieces_of=lambda side: words, fingerprint=lambda: "mine",
    )  # fmt: skip


def rows_of(shortlist):
    return [sorted(row[row >= 0].tolist()) for row in shortlist.candidates]


def test_files_of_marian():
    options = dict(frequent=2, per_piece=2)
    binary = read_shortlist(DATA / "lex.bin", tokenizer())
    text = read_shortlist(DATA / "lex.s2t", tokenizer(), **options)
    for shortlist in (binary, text):
        assert rows_of(shortlist) == ROWS
        assert shortlist.frequent.tolist() == [0, 1] and shortlist.tokenizer == "mine"
    assert rows_of(read_shortlist(DATA / "lex.s2t", tokenizer(), least=0.6)) == [
        [0], [], [], [7], [], [], [], []
    ]  # fmt: skip
    # One vocabulary: Marian also allows the pieces of the source.
    both = rows_of(read_shortlist(DATA / "lex.bin", tokenizer(shared=True)))
    assert both == [sorted({i, *row}) for i, row in enumerate(ROWS)]


def test_ours_in_marians_form(tmp_path):
    candidates = np.array([[-1, -1], [3, -1], [5, 2], *[[-1, -1]] * 5], "int32")
    ours = Shortlist(candidates, np.array([6, 4], "int32"), "mine")
    write_shortlist(tmp_path / "lex.bin", ours, tokenizer())
    read = read_shortlist(tmp_path / "lex.bin", tokenizer())
    # The frequent ids, and EOS, are candidates of EOS, which is in each source.
    assert rows_of(read) == [[0, 4, 6], [3], [2, 5], [], [], [], [], []]
    assert len(read.frequent) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:20], "is not a whole shortlist: it ends in its header"),
        (lambda x: x[:-4], "is not a whole shortlist: it has 140 bytes instead of 144"),
        (lambda x: x[:100] + b"\1" + x[101:], "is damaged: its checksum"),
        (lambda x: b"\xff\xfe\xfd" + x, "is not a shortlist of Marian: neither binary nor text"),
        (lambda x: b"a b 0.1\na b\n", "line 2 of .* a target piece, a source piece and a number"),
        (lambda x: b"a b c\n", "line 1 of .*, got 'a b c'"),
    ],
)
def test_bad_files(change, message, tmp_path):
    path = tmp_path / "strange.bin"
    path.write_bytes(change((DATA / "lex.bin").read_bytes()))
    with pytest.raises(ValueError, match=message) as caught:
        read_shortlist(path, tokenizer())
    assert "strange.bin" in str(caught.value)


def test_another_vocabulary():
    with pytest.raises(ValueError, match="lex.bin is of another vocabulary: it has 8 source pie"):
        read_shortlist(DATA / "lex.bin", tokenizer(words=WORDS[:6]))


@pytest.mark.parametrize(("count", "is_read"), [(240, True), (238, True), (237, False)])
def test_the_last_pieces_may_have_no_candidates(count, is_read, tmp_path):
    words = ["</s>", "<unk>"] * 120
    ours = Shortlist(np.full((count, 1), 7, "int32"), np.array([6], "int32"), "mine")
    write_shortlist(tmp_path / "lex.bin", ours, tokenizer(words=words))
    if is_read:
        rows = rows_of(read_shortlist(tmp_path / "lex.bin", tokenizer(words=words)))
        assert rows[1:] == [[7]] * (count - 1) + [[]] * (240 - count)
    else:
        with pytest.raises(ValueError, match=r"another vocabulary: it has 237 source .* 240 and"):
            read_shortlist(tmp_path / "lex.bin", tokenizer(words=words))


def with_list(folder):
    """Copy a model, with a list of few random candidates in the options of its decoder."""
    path = copied("tied_all", folder)
    random = np.random.default_rng(0).integers(2, 240, (240, 4)).astype("int32")
    made = Shortlist(random, np.arange(9, dtype="int32"), "mine")
    write_shortlist(path.with_name("lex.bin"), made, tokenizer(words=["</s>", "<unk>"] * 120))
    options = path.with_name("tied_all.npz.decoder.yml")
    options.write_text(f"{options.read_text()}\nshortlist: [lex.bin, false]\n")
    return path


def test_a_model_with_a_list(tmp_path):
    translator = load_pretrained(with_list(tmp_path), "en", "de")
    rows = translator.shortlist.candidates
    assert translator.search["shortlist"] and rows.shape[0] == 241
    listed = translator.translate(SOURCES[:9])
    assert listed != translator.translate(SOURCES[:9], shortlist=False)
    translator.save(tmp_path / "saved")
    assert Translator.load(tmp_path / "saved").translate(SOURCES[:9]) == listed
    (tmp_path / "lex.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no shortlist .*lex.bin, which"):
        load_pretrained(tmp_path / "tied_all.npz")


@needs_marian
def test_translations_with_a_list_are_marians(tmp_path):
    """With its rule that the number of pieces is a multiple of 8: the next ids after the first."""
    path = with_list(tmp_path)
    options: dict[str, Any] = {"beam-size": 4, "normalize": 0.6, "mini-batch": 1, "cpu-threads": 1}
    options |= dict(models=path.name, vocabs=["joint.spm"] * 2, shortlist=["lex.bin", "false"])
    theirs = run(tmp_path, "decode", SOURCES[:20], **options).splitlines()
    translator = load_pretrained(path, "en", "de")
    rows, count = translator.shortlist.candidates, 0
    for source, expected in zip(SOURCES[:20], theirs, strict=True):
        (ids,) = translator.tokenizer.encode_source([source])
        allowed = {*rows[ids].flat} - {-1}
        following = iter(range(240))
        while len(allowed) % 8:
            allowed.add(next(following))
        none = np.full((241, 1), -1, "int32")
        translator.shortlist = Shortlist(none, np.array(sorted(allowed), "int32"), "")
        count += translator.translate([source]) == [expected.strip()]
    assert count == 20
