"""QuestionAnswerer: every span that `transformers` scores, in one window or in several."""

import itertools
import random

import numpy as np
import pytest
import torch
import transformers

from keras_transformer import QuestionAnswerer, TextClassifier, load_pretrained
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer

WORDS = "good bad film the a who what".split()
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK]".split() + WORDS
LIMIT = 16
SHORT = [("who", "a good film"), ("what film", "the  bad film, the good film"), ("who", "bad")]


def passage_of(count):
    return " ".join(random.Random(count).choices(WORDS, k=count))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    config = transformers.BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=LIMIT, initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.BertForQuestionAnswering(config).eval()
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    return model, folder


@pytest.fixture(scope="module")
def answerer(theirs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported")
    load_pretrained(theirs[1]).save(folder)
    return QuestionAnswerer.load(folder)


def every_span(model, tokenizer, question, passage, longest, windows):
    """Every (score, start, end), best first: by loops, from the logits of `transformers`.

    `windows` are ranges of the passage's tokens.
    """
    ((ids, types, places),) = tokenizer.encode_pairs([(question, passage)], 1000)
    first = types.index(1)
    found, nulls = {}, []
    for window in windows:
        kept = [*range(first), *(first + i for i in window), len(ids) - 1]
        inputs = ([[x[i] for i in kept]] for x in (ids, types))
        names = ("input_ids", "token_type_ids")
        with torch.no_grad():
            logits = model(**dict(zip(names, map(torch.tensor, inputs), strict=True)))
        start, end = logits.start_logits[0].tolist(), logits.end_logits[0].tolist()
        nulls.append(start[0] + end[0])
        inside = [i for i, k in enumerate(kept) if places[k][0] >= 0]
        for i, j in itertools.product(inside, inside):
            if i <= j < i + longest:
                place = places[kept[i]][0], places[kept[j]][1]
                found[place] = max(start[i] + end[j], found.get(place, -np.inf))
    return sorted(((score - min(nulls), *place) for place, score in found.items()), reverse=True)


def test_parity(theirs, answerer):
    for longest in (10**9, 2):
        found = answerer.answer(SHORT, 4, max_answer_length=longest)
        for (question, passage), answers in zip(SHORT, found, strict=True):
            everything = [range(len(passage.replace(",", " ,").split()))]
            expected = every_span(
                theirs[0], answerer.tokenizer, question, passage, longest, everything
            )[:4]
            assert [(x.start, x.end) for x in answers] == [own[1:] for own in expected]
            scores = [own[0] for own in expected]
            assert [x.score for x in answers] == pytest.approx(scores, abs=1e-4)
            assert all(x.text == passage[x.start : x.end] for x in answers)


def test_windows(theirs, answerer):
    """17 words, 12 of them in a window; the last window is as long as the others."""
    passage = passage_of(17)
    starts = {128: (0, 5), 6: (0, 5), 2: (0, 2, 4, 5), 1: range(6)}
    for stride, own in starts.items():
        windows = [range(start, start + 12) for start in own]
        pieces = theirs[0], answerer.tokenizer
        expected = every_span(*pieces, "who", passage, 30, windows)[:3]
        # The other pairs share the batches, and change nothing.
        _, found, _ = answerer.answer([SHORT[0], ("who", passage), SHORT[1]], 3, stride=stride)
        assert [(x.start, x.end) for x in found] == [x[1:] for x in expected]
        scores = [x[0] for x in expected]
        assert [x.score for x in found] == pytest.approx(scores, abs=1e-4)
    exact = passage_of(12)  # it just fits
    (found,) = answerer.answer([("who", exact)], strict=True)
    ((score, *place), *_) = every_span(*pieces, "who", exact, 30, [range(12)])
    assert [found[0].start, found[0].end] == place
    assert found[0].score == pytest.approx(score, abs=1e-4)


def test_no_answer(answerer, tmp_path):
    answers = answerer.answer(SHORT, 3)
    scores = sorted(x.score for own in answers for x in own)
    middle = (scores[3] + scores[4]) / 2
    kept = answerer.answer(SHORT, 3, min_score=middle)
    assert kept == [[x for x in own if x.score >= middle] for own in answers]
    assert answerer.answer(SHORT, min_score=scores[-1] + 1) == [[], [], []]
    assert answerer.answer([("who", ""), ("who", "  ")]) == [[], []]
    assert answerer.answer([]) == []
    answerer.save(tmp_path)
    for one, other in zip(QuestionAnswerer.load(tmp_path).answer(SHORT, 3), answers, strict=True):
        assert [x.text for x in one] == [x.text for x in other]


@pytest.mark.once("places of tokens")
def test_no_answer_begins_or_ends_with_a_space():
    """The tokens of "bytes" begin with the space in front of a word."""
    tokenizer = TextTokenizer.train(["a good film", "the bad films"] * 3, "bytes", 290)
    sizes = dict(d_model=8, num_layers=1, num_heads=2, max_length=64, pad_id=tokenizer.vocab_size)
    config = BERTConfig(tokenizer.vocab_size + 1, head="span_extraction", **sizes)
    (found,) = QuestionAnswerer(BERT(config), tokenizer).answer([("film", " the bad \n film ")], 50)
    assert {"the", "bad", "the bad", "film"} <= {x.text for x in found}
    assert all(x.text and x.text == x.text.strip() for x in found)
    assert len({(x.start, x.end) for x in found}) == len(found)


@pytest.mark.once("arguments")
def test_bad_input(answerer):
    with pytest.raises(ValueError, match="questions must leave room.* 16 tokens, got 23 with"):
        answerer.answer([("who " * 20, "a film")])
    with pytest.raises(ValueError, match="at most 16 tokens each.*got 23"):
        answerer.answer([SHORT[0], ("who", "film " * 19)], strict=True)
    for name in ("top_k", "max_answer_length", "stride"):
        with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got 0"):
            answerer.answer(SHORT, **{name: 0})
    with pytest.raises(ValueError, match="min_score must be a finite number or None, got nan"):
        answerer.answer(SHORT, min_score=float("nan"))
    for pairs, message in (
        (("who", "a film"), r"pairs\[0\] must be a sequence of strings, got the one string 'who'"),
        ([("who",)], r"pairs\[0\] must be two texts"),
        ([SHORT[0], ("who", 1)], r"pairs\[1\] must hold strings, got int"),
    ):
        with pytest.raises(ValueError, match=message):
            answerer.answer(pairs)
    with pytest.raises(ValueError, match="QuestionAnswerer and the command answer"):
        TextClassifier(answerer.model, answerer.tokenizer)
