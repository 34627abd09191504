"""Shortlists: IBM model 1 finds the words of a made-up lexicon; files; bad input."""

import numpy as np
import pytest

from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.lexical_shortlist import FILE, Shortlist

pytestmark = pytest.mark.once("files and texts: no tensor is read")

NOUNS = list("abcdefghijkl")


def texts(seed=0, count=300):
    """Sentences whose translation has other words in another order, and a frequent one."""
    generator = np.random.default_rng(seed)
    rows = [generator.choice(NOUNS, 4, replace=False) for _ in range(count)]
    return [" ".join(x) for x in rows], [
        " ".join(["x", *(word.upper() for word in x[::-1])]) for x in rows
    ]


@pytest.fixture(scope="module")
def words():
    """A tokenizer with a piece for each word and language."""
    sizes = dict(vocab_size=40, shared=False, byte_fallback=False)
    return SentencePieceTokenizer.train(*texts(), **sizes)


def id_of(tokenizer, side, word):
    encode = tokenizer.encode_source if side == "source" else tokenizer.encode_target
    (ids,) = encode([word])
    assert len(ids) == 1 + (ids[-1] == tokenizer.eos_id)
    return ids[0]


def test_the_best_candidate_is_the_translation(words):
    made = Shortlist.train(words, *texts(), per_piece=3, frequent=2)
    assert made.candidates.shape == (words.source_vocab_size, 3)
    assert made.candidates.dtype == made.frequent.dtype == np.int32
    for noun in NOUNS:
        row = made.candidates[id_of(words, "source", noun)]
        assert row[0] == id_of(words, "target", noun.upper())
    # The frequent ones are EOS and the article, which occur in each target.
    assert set(made.frequent) == {words.eos_id, id_of(words, "target", "x")}
    assert (made.candidates[words.pad_id] == -1).all()


def test_pieces_of_one_vocabulary_are_candidates_of_themselves():
    sources, targets = texts()
    tokenizer = SentencePieceTokenizer.train(sources, targets, vocab_size=300)
    made = Shortlist.train(tokenizer, sources, targets, per_piece=4)
    assert (made.candidates[:, 0] == np.arange(tokenizer.source_vocab_size)).all()
    rows = [x[x >= 0] for x in made.candidates[:, 1:]]
    assert any(map(len, rows)) and all(len(set(x)) == len(x) for x in rows)


CANDIDATES = np.array([[0, -1], [5, 6], [6, 7], [-1, -1], [9, 3]], "int32")
BATCH = np.array([[1, 2, 0], [4, 3, 0], [1, 1, 1]], "int32")


@pytest.mark.parametrize("prefix", [None, np.array([[8, 7], [3, 0], [12, 0]], "int32")])
@pytest.mark.parametrize(("lengths", "length"), [((), None), ((4, 32, 64), 32), ((3, 5), None)])
def test_the_tokens_of_a_batch(prefix, lengths, length):
    made = Shortlist(CANDIDATES, np.array([7, 11], "int32"), "mine")
    first = (0, 2, 3, 9, 14)  # the last two are suppressed
    ids, may_use = made.tokens_of(BATCH, first, 3, prefix, lengths)
    assert ids.dtype == np.int32 and len(ids) == (length or len(ids[ids >= 0]))
    assert tuple(ids[:5]) == first
    assert len({*ids}) == len(ids[ids >= 0]) + (-1 in ids)
    assert not may_use[:, ids < 0].any()
    for row, source in enumerate(BATCH.tolist()):
        expected = {x for i in source for x in CANDIDATES[i].tolist() if x >= 0}
        expected |= {7, 11, 0, 2, 3, *([] if prefix is None else prefix[row].tolist())}
        assert {*ids[may_use[row]]} == expected
    assert 14 in ids and not may_use[:, ids.tolist().index(14)].any()


def test_a_file_and_back(words, tmp_path):
    assert Shortlist.read(tmp_path, words) is None
    made = Shortlist.train(words, *texts())
    made.save(tmp_path)
    again = Shortlist.read(tmp_path, words)
    np.testing.assert_array_equal(again.candidates, made.candidates)
    np.testing.assert_array_equal(again.frequent, made.frequent)
    other = SentencePieceTokenizer.train(["a b"], ["c d"], vocab_size=300)
    with pytest.raises(ValueError, match=f"{FILE} is of another tokenizer: make it again"):
        Shortlist.read(tmp_path, other)
    (tmp_path / FILE).write_bytes(b"no tensors")
    with pytest.raises(ValueError, match=f"{FILE} is not a shortlist"):
        Shortlist.read(tmp_path, words)


def test_bad_input(words):
    sources, targets = texts()
    for arguments, options, said in (
        ((sources, targets[1:]), {}, "targets must be 300 texts, one per source, got '299 texts'"),
        (([], []), {}, "sources must be one or more texts"),
        ((sources, targets), dict(per_piece=0), "per_piece must be a whole number of at least 1"),
        ((sources, targets), dict(frequent=-1), "frequent must be a whole number of at least 0"),
        (("x", "y"), {}, "sources must be a sequence of strings"),
    ):
        with pytest.raises(ValueError, match=said):
            Shortlist.train(words, *arguments, **options)
    with pytest.raises(ValueError, match="candidates must be 2 axes of whole numbers"):
        Shortlist(np.zeros(3, "int32"), np.zeros(3, "int32"), "x")
