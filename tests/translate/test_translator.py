"""The translator: long texts, streams, wrong arguments, new weights."""

import itertools

import pytest

from keras_transformer.decoding import TreeConstraint
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.translate.translator import Translator
from tests.backends import BACKEND
from tests.small_translator import MAX_LENGTH, SHORT, TEXTS, make, random_weights


@pytest.mark.once("texts, files and options: no tensor differs")
def test_a_text_too_long_is_cut_with_a_warning_or_refused(translator, alone):
    fits = " ".join(["six"] * (MAX_LENGTH - 1))
    assert len(translator.tokenizer.encode_source([fits])[0]) == MAX_LENGTH
    whole = translator.translate([fits], strict=True, **SHORT)
    for tail in (" one two", " ten" * 50):
        with pytest.warns(UserWarning, match=f"texts must have at most {MAX_LENGTH} tokens"):
            assert translator.translate([TEXTS[0], fits + tail], **SHORT)[1:] == whole
        with pytest.raises(ValueError, match=f"{MAX_LENGTH} tokens .*'six six"):
            translator.translate([TEXTS[0], fits + tail], strict=True, **SHORT)
    with pytest.raises(ValueError, match="targets must have at most"):
        translator.score(["six"], [fits + " six"])


@pytest.mark.once("texts, files and options: no tensor differs")
@pytest.mark.parametrize("wrong", ["one two", b"one", [None], ["one", b"two"], [1]])
def test_refuses_what_is_no_list_of_strings(translator, wrong):
    for call in (translator.translate, translator.nbest, translator.sample):
        with pytest.raises(ValueError, match="texts must"):
            call(wrong)
    with pytest.raises(ValueError, match="sources must"):
        translator.score(wrong, ["one"])
    with pytest.raises(ValueError, match="targets must"):
        translator.score(["one"], wrong)
    with pytest.raises(ValueError, match="prefixes must"):
        translator.translate(["one"], prefixes=wrong)


@pytest.mark.once("texts, files and options: no tensor differs")
def test_streams_what_translate_translates(translator, alone):
    lines = (text + "\n" for text in [*TEXTS, ""])
    found = list(translator.translate_stream(lines, chunk_size=2, **SHORT))
    assert found == [*alone.values(), ""]
    assert list(translator.translate_stream([])) == []


@pytest.mark.once("texts, files and options: no tensor differs")
def test_a_stream_reads_no_further_than_it_must(translator, alone):
    read = []
    endless = (read.append(text) or text for text in itertools.cycle(TEXTS))
    stream = translator.translate_stream(endless, chunk_size=2, **SHORT)
    assert read == []
    assert [next(stream) for _ in range(3)] == [alone[text] for text in TEXTS[:3]]
    assert len(read) == 4


@pytest.mark.once("texts, files and options: no tensor differs")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size must be a whole number of at least 1, got 0"),
        ({"beam_size": 2.5}, r"beam_size must be a whole number of at least 1, got 2\.5"),
        ({"length_penalty": -1}, "length_penalty must be at least 0, got -1"),
        ({"length_penalty": float("nan")}, "length_penalty must be at least 0, got nan"),
        ({"max_extra_length": 0}, "max_extra_length must be a whole number of at least 1"),
        ({"min_length": -1}, "min_length must be a whole number of at least 0"),
        ({"tokens_per_batch": 0}, "tokens_per_batch must be a whole number of at least 1"),
    ],
)
def test_refuses_options_out_of_range(translator, options, message):
    for call in (translator.translate, translator.nbest):
        with pytest.raises(ValueError, match=message):
            call(["one"], **options)


@pytest.mark.once("texts, files and options: no tensor differs")
def test_refuses_options_of_one_method_out_of_range(translator):
    for options, message in [
        ({"temperature": 0}, "temperature must be above 0, got 0"),
        ({"temperature": None}, "temperature must be above 0, got None"),
        ({"top_k": -1}, "top_k must be a whole number of at least 0"),
        ({"top_p": 0}, r"top_p must be in \(0, 1\], got 0"),
        ({"top_p": 1.5}, r"top_p must be in \(0, 1\]"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            translator.sample(["one"], **options)
    with pytest.raises(ValueError, match="num_hypotheses must be at most beam_size=4, got 5"):
        translator.nbest(["one"], num_hypotheses=5)
    with pytest.raises(ValueError, match="num_hypotheses must be a whole number of at least 1"):
        translator.nbest(["one"], num_hypotheses=0)
    # The stream complains when it is made, not when it is first read.
    with pytest.raises(ValueError, match="chunk_size must be a whole number"):
        translator.translate_stream(["one"], chunk_size=0)
    with pytest.raises(ValueError, match="beam_size must be a whole number"):
        translator.translate_stream(["one"], beam_size=0)


@pytest.mark.once("tests/running/test_runner.py computes with new weights under each")
def test_new_weights_are_used_at_once(tokenizer, alone):
    translator = make(tokenizer, seed=4)
    translator.translate(TEXTS, **SHORT)
    translator.score(TEXTS, TEXTS)
    translator.model.set_weights(random_weights(translator.model, 5))
    assert translator.translate(TEXTS, **SHORT) == list(alone.values())


@pytest.mark.skipif(BACKEND != "tensorflow", reason="JAX compiles each shape, PyTorch none")
def test_texts_of_any_number_and_length_need_one_trace(tokenizer, monkeypatch):
    translator = make(tokenizer, seed=5)
    translator.translate(TEXTS[:1], **SHORT)
    monkeypatch.setattr(type(translator.model), "prefill", None)  # tracing would call it
    assert len(set(translator.translate(TEXTS, **SHORT))) > 1


@pytest.mark.once("texts, files and options: no tensor differs")
def test_refuses_a_tokenizer_of_another_size(tokenizer, translator):
    other = SentencePieceTokenizer.train(["one two"], ["two"], vocab_size=300)
    with pytest.raises(ValueError, match="source_vocab_size"):
        Translator(translator.model, other)


@pytest.mark.once("tests/running/test_search_functions.py searches shortlists under each")
def test_a_shortlist_is_saved_with_the_translator(translator, tmp_path):
    own = Translator(translator.model, translator.tokenizer)
    with pytest.raises(ValueError, match="shortlist must be False: the folder has no shortlist.s"):
        own.translate(["six"], shortlist=True)
    with pytest.raises(ValueError, match="shortlist must be True or False, got 1"):
        own.translate(["six"], shortlist=1)
    own.shortlist = Shortlist.train(own.tokenizer, TEXTS, TEXTS[::-1], per_piece=2, frequent=4)
    expected = own.translate(TEXTS, shortlist=True, **SHORT)
    alone = [own.translate([text], shortlist=True, **SHORT)[0] for text in TEXTS]
    assert alone == expected != own.translate(TEXTS, **SHORT)
    own.save(tmp_path)
    again = Translator.load(tmp_path)
    assert again.translate(TEXTS, shortlist=True, **SHORT) == expected
    with pytest.raises(ValueError, match="constraint must be None with shortlist=True"):
        again.translate(TEXTS, shortlist=True, constraint=TreeConstraint, **SHORT)
    # Other weights keep it; another translator in the folder has none.
    again.model = translator.model
    assert again.translate(TEXTS, shortlist=True, **SHORT) == expected
    Translator(translator.model, translator.tokenizer).save(tmp_path)
    assert Translator.load(tmp_path).shortlist is None
