"""Attention of every layer and head, its tokens, and alignments of words."""

import dataclasses

import numpy as np
import pytest
from keras import ops

from keras_transformer import ensemble, load_pretrained
from keras_transformer.analysis import alignment
from keras_transformer.analysis.alignment import (
    align,
    attention,
    between_words,
)
from keras_transformer.config import TransformerConfig
from keras_transformer.layers import record_attention
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer, WordTokenizer
from keras_transformer.text.word_spans import spaced_words, words
from keras_transformer.translate.translator import Translator
from tests.backends import cases

SOURCE, TARGET = "Two  old dogs… 犬", "Zwei alte Hunde"
TEXTS = ["Two old dogs sleep.", "One dog sees the man.", "Zwei alte Hunde schlafen."] * 20


def make(tokenizer, randomize, **changes):
    sizes = dict(d_model=16, d_ff=16, num_heads=2, max_length=40)
    sizes |= dict(num_encoder_layers=1, num_decoder_layers=3)
    vocabularies = tokenizer.source_vocab_size, tokenizer.target_vocab_size
    model = Transformer(TransformerConfig(*vocabularies, **sizes | changes))
    return Translator(randomize(model, 2.0), tokenizer)


@pytest.fixture(scope="module")
def translator(randomize):
    return make(SentencePieceTokenizer.train(TEXTS, TEXTS, vocab_size=320), randomize)


def check(found, source, target):
    """Assert the properties of any attention."""
    sizes = len(found.source_tokens), len(found.target_tokens)
    assert found.encoder.shape[2:] == (sizes[0], sizes[0])
    assert found.decoder.shape[2:] == (sizes[1], sizes[1])
    assert found.cross.shape[2:] == (sizes[1], sizes[0])
    for weights in (found.encoder, found.decoder, found.cross):
        assert weights.dtype == "float32"
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert (np.triu(found.decoder, 1) == 0).all()
    assert found.input_tokens[1:] == found.target_tokens[:-1]
    assert all(isinstance(x, str) and x for x in found.source_tokens + found.target_tokens)
    for text, spans, tokens in (
        (source, found.source_spans, found.source_tokens),
        (target, found.target_spans, found.target_tokens),
    ):
        assert len(spans) == len(tokens)
        assert spans == sorted(spans)
        covered = {i for start, end in spans for i in range(start, end)}
        assert covered == {i for i, x in enumerate(text) if not x.isspace()}


def test_attention_of_all_layers(translator):
    found = attention(translator, SOURCE, TARGET)
    check(found, SOURCE, TARGET)
    assert found.encoder.shape[:2] == (1, 2)
    assert found.decoder.shape[:2] == found.cross.shape[:2] == (3, 2)
    assert found.input_tokens[0] == "<s>"
    assert found.source_tokens[-1] == found.target_tokens[-1] == "</s>"
    assert found.source_spans[-1] == (len(SOURCE), len(SOURCE))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.cross = None


@pytest.mark.once("made of parts that are tested under each backend")
def test_rows_are_those_that_predict(translator):
    (source,), (target,) = (
        translator.tokenizer.encode_source([SOURCE]),
        translator.tokenizer.encode_target([TARGET]),
    )
    inputs = {"source_ids": [source], "target_ids": [[translator.tokenizer.bos_id, *target[:-1]]]}
    with record_attention() as weights:
        translator.model({name: ops.convert_to_tensor(x) for name, x in inputs.items()})
    found = attention(translator, SOURCE, TARGET)
    for name, actual in (
        ("encoder/block_0/attention", found.encoder[0]),
        ("decoder/block_2/self_attention", found.decoder[2]),
        ("decoder/block_1/cross_attention", found.cross[1]),
    ):
        (expected,) = ops.convert_to_numpy(weights[name])
        np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_a_decoder_without_self_attention(translator, randomize):
    recurrent = make(translator.tokenizer, randomize, decoder_recurrence="ssru")
    found = attention(recurrent, SOURCE, TARGET)
    assert (len(found.encoder), len(found.decoder), len(found.cross)) == (1, 0, 3)
    assert len(between_words(found, "cross")[2]) == 3
    with pytest.raises(ValueError, match="part must be another: this decoder has no self-att.*'de"):
        between_words(found, "decoder")
    assert align(recurrent, [SOURCE], [TARGET])


LANGUAGES = {  # and the tokens before and after a source, and before a target
    "marian": (None, None, [], ["</s>"], [], "<pad>"),
    "m2m_100": ("en", "de", ["__en__"], ["</s>"], ["__de__"], "</s>"),
    "nllb": ("eng_Latn", "deu_Latn", ["eng_Latn"], ["</s>"], ["deu_Latn"], "</s>"),
    "mbart": ("en_XX", "de_DE", ["en_XX"], ["</s>"], ["de_DE"], "</s>"),
    "madlad": (None, "de", ["<2de>"], ["</s>"], [], "<unk>"),
    "t5": (None, "de", None, ["</s>"], [], "<pad>"),
}


@pytest.mark.parametrize("kind", cases(LANGUAGES, "marian"))
def test_pretrained_families(kind, pretrained_folder, tmp_path):
    pretrained_folder(kind, tmp_path, TEXTS, TEXTS)
    *languages, before, after, target_before, begin = LANGUAGES[kind]
    translator = load_pretrained(tmp_path, *languages)
    source, target = "Two  old dogs. 犬", TARGET
    found = attention(translator, source, target)
    check(found, source, target)
    assert found.input_tokens[0] == begin
    if before is None:  # "translate English to German: "
        before = found.source_tokens[: len(translator.tokenizer.source_frame.before)]
        assert len(before) > 3 and before[:2] == ["▁", "t"]
    assert found.source_tokens[: len(before)] == before
    assert found.source_tokens[-1:] == after
    assert found.target_tokens[: len(target_before)] == target_before
    assert found.source_spans[: len(before)] == [(0, 0)] * len(before)
    assert len(align(translator, [source], [target])[0]) == 3


@pytest.mark.once("words and names: no tensor differs")
def test_unknown_words_and_other_tokenizers(randomize):
    tokenizer = WordTokenizer.train(["a b", "a b"], ["x y z"])
    translator = make(tokenizer, randomize, num_decoder_layers=1)
    found = attention(translator, "a  Q b", "z x")
    check(found, "a  Q b", "z x")
    assert found.source_tokens == ["a", "<unk>", "b", "</s>"]
    assert found.source_spans == [(0, 1), (3, 4), (5, 6), (6, 6)]


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_from_word_to_word(translator, part):
    queries, keys, weights = between_words(attention(translator, SOURCE, TARGET), part)
    source, target = ([*(x[slice(*y)] for y in words(x)), "</s>"] for x in (SOURCE, TARGET))
    assert queries == (source if part == "encoder" else target)
    assert keys == (["<s>", *target[:-1]] if part == "decoder" else source)
    assert weights.shape[2:] == (len(queries), len(keys))
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)


@pytest.mark.once("words and names: no tensor differs")
def test_parts_have_names(translator):
    with pytest.raises(ValueError, match="part must be one of"):
        between_words(attention(translator, "x", "x"), "middle")


def test_alignment_by_hand(randomize, monkeypatch):
    """An alignment from the mean of the heads, without EOS."""
    translator = make(WordTokenizer.train(["a b c"] * 2, ["x y z"]), randomize)
    # Columns: a, b, c, </s>; rows: what predicts x, y, z, </s>.
    heads = [
        [[0.1, 0.5, 0.0, 0.4], [0.6, 0.1, 0.0, 0.3], [0.0, 0.0, 0.1, 0.9], [0, 0, 0, 1]],
        [[0.6, 0.0, 0.0, 0.4], [0.0, 0.4, 0.3, 0.3], [0.0, 0.0, 0.1, 0.9], [0, 0, 0, 1]],
    ]
    others = np.tile([0.0, 0.0, 1.0, 0.0], (1, 2, 4, 1))
    cross = [others, np.array([heads]), others]
    monkeypatch.setattr(alignment, "attention_weights", lambda *inputs: [([0], {"cross": cross})])
    assert align(translator, ["a b  c"], ["x y z"]) == [[(0, 0), (0, 1), (2, 2)]]
    guided = make(translator.tokenizer, randomize, guided_alignment=0.05)  # its first head aligns
    assert align(guided, ["a b  c"], ["x y z"]) == [[(1, 0), (0, 1), (2, 2)]]


def test_the_last_layer_but_one_aligns(randomize):
    tokenizer = WordTokenizer.train(["a b c"] * 2, ["x y z"])
    for count, chosen in ((1, 0), (2, 1), (3, 1), (6, 4)):
        model = make(tokenizer, randomize, num_decoder_layers=count).model
        assert model.decoder.aligning is model.decoder.blocks[chosen].cross_attention


@pytest.mark.once("words and names: no tensor differs")
def test_pieces_of_a_word_count_together(translator, monkeypatch):
    (ids,) = translator.tokenizer.encode_source(["Two oqvd"])
    spans = translator.tokenizer.spans("source", "Two oqvd")
    second = [start >= 4 for start, _ in spans] + [False]
    assert sum(second) > 2
    # The first word's one piece has more than each of the second's, which together have more.
    row = np.where(second, 0.6 / sum(second), 0.0)
    row[0] = 0.4
    cross = [np.tile(row, (1, 1, 4, 1))]
    monkeypatch.setattr(alignment, "attention_weights", lambda *inputs: [([0], {"cross": cross})])
    assert len(ids) == len(row)
    assert align(translator, ["Two oqvd"], ["dogs"]) == [[(1, 0)]]


def test_alignment_in_any_company(translator):
    sources, targets = [SOURCE, "One dog", "dogs"], [TARGET, "Hunde", "Zwei alte Hunde schlafen."]
    found = align(translator, sources, targets)
    pairs = zip(sources, targets, strict=True)
    assert found == [align(translator, [source], [target])[0] for source, target in pairs]
    for source, target, aligned in zip(sources, targets, found, strict=True):
        assert [word for _, word in aligned] == list(range(len(words(target))))
        assert all(0 <= word < len(words(source)) for word, _ in aligned)
    assert align(translator, [], []) == []


@pytest.mark.once("words and names: no tensor differs")
@pytest.mark.parametrize(
    "source,target,message",
    [
        (" ", "x", "source must be a text that has tokens, got ' '"),
        ("x", "", "target must be a text"),
        ("x" * 200, "x", "source must have at most 40 tokens"),
        ("x", "x" * 200, "target must have at most 40 tokens"),
        (3, "x", "source must be a string, got 3"),
        ("x", None, "target must be a string, got None"),
    ],
    ids=["blank", "empty", "long source", "long target", "number", "none"],
)
def test_bad_input(translator, source, target, message):
    with pytest.raises(ValueError, match=message):
        attention(translator, source, target)
    with pytest.raises(ValueError, match=message.split()[0] + "s must"):
        align(translator, [source], [target])


@pytest.mark.once("words and names: no tensor differs")
def test_what_has_no_tokens_or_too_many_is_left_out_if_not_strict(translator):
    sources, targets = ["Two dogs.", " ", "dog " * 60, "One dog"], ["Zwei Hunde.", "x", "Hunde", ""]
    pairs = align(translator, sources, targets, strict=False)
    assert pairs[0] == align(translator, sources[:1], targets[:1])[0] and pairs[0]
    assert pairs[1] == pairs[3] == [] and len(pairs[2]) == 1
    spaced = align(translator, ["Two dogs."], ["Zwei Hunde."], split=spaced_words)
    assert [j for _, j in spaced[0]] == [0, 1]  # the full stop belongs to its word


@pytest.mark.once("words and names: no tensor differs")
def test_only_a_model_that_shows_its_attention_aligns(translator):
    both = ensemble([translator, translator])
    with pytest.raises(ValueError, match="translator must be one with an encoder-decoder .*'Ensem"):
        align(both, ["x"], ["x"])
    with pytest.raises(ValueError, match="translator must be one with an encoder-decoder .*'Ensem"):
        attention(both, "x", "x")


@pytest.mark.once("words and names: no tensor differs")
def test_not_as_many(translator):
    with pytest.raises(ValueError, match="the same length, got 1 and 2"):
        align(translator, ["x"], ["x", "x"])
