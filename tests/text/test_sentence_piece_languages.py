"""One tokenizer for several target languages: tags, choices, samples, files, wrong codes."""

import functools
import pickle

import pytest

from keras_transformer.text import MarianTokenizer, SentencePieceTokenizer, load_tokenizer
from keras_transformer.text.hugging_face_tokenizer import write_tokenizer
from keras_transformer.text.marian_tokenizer import tag_of
from tests.text.sentences import ENGLISH, GERMAN

CODES = dict(source_languages=("en", "de"), target_languages=("de", "en", "pt-BR"))


@functools.cache
def tagged(**options):
    own = dict(vocab_size=400, symbols=("<BT>",)) | CODES | options
    return SentencePieceTokenizer.train(ENGLISH, GERMAN, **own)


@pytest.mark.parametrize("options", [{}, {"kind": "unigram"}, {"lowercase": True}])
@pytest.mark.parametrize("sampling", [0.0, 0.4])
def test_the_chosen_tag_is_one_piece_before_the_text(options, sampling):
    tokenizer, text = tagged(**options), "The dog sees the ball."
    assert tag_of("de") == ">>de<<"
    firsts = set()
    for language in CODES["target_languages"]:
        chosen = tokenizer.between("en", language)
        (ids,) = chosen.encode_source([text], sampling=sampling, seed=1)
        assert chosen.source_frame == ((ids[0],), (tokenizer.eos_id,))
        # The same as with the tag in the text, which training text has.
        assert tokenizer.encode_source([f"{tag_of(language)} {text}"], sampling=sampling, seed=1)
        (plain,) = tokenizer.encode_source([f"{tag_of(language)} {text}"])
        assert chosen.encode_source([text]) == [plain]
        assert chosen.encode_target([text]) == tokenizer.encode_target([text])
        assert plain[0] == ids[0] not in chosen.encode_target([text])[0]
        firsts.add(ids[0])
    assert len(firsts) == 3 and tokenizer.source_frame.before == ()


@pytest.mark.parametrize("sampling", [0.0, 0.4])
@pytest.mark.parametrize("shared", [True, False])
def test_a_symbol_is_one_piece(shared, sampling):
    tokenizer = tagged(shared=shared).between("en", "de")
    options = dict(sampling=sampling, seed=3)
    for seed in range(5):
        options = dict(sampling=sampling, seed=seed)
        marked, plain = tokenizer.encode_source(["<BT> The dog", "<BT>"], **options)
        assert len(plain) == 3 and marked[:2] == plain[:2]
    symbols = {"▁<BT>", "▁>>de<<", "▁>>en<<", "▁>>pt-BR<<"}
    assert symbols <= {*tokenizer.pieces_of("source")}
    assert shared or not symbols & {*tokenizer.pieces_of("target")}


def test_tensorflow_text_knows_the_tags():
    tf_text = pytest.importorskip("tensorflow_text")
    import tensorflow as tf

    texts = [">>de<< The dog", ">>pt-BR<< <BT> The dog", ">>en<< Der Hund >>de<<"]
    for kind in ("bpe", "unigram"):
        tokenizer = tagged(kind=kind)
        twin = tf_text.SentencepieceTokenizer(tokenizer.source_model, tf.int32, add_eos=True)
        assert twin.tokenize(texts).to_list() == tokenizer.encode_source(texts)


def test_a_language_must_be_chosen():
    with pytest.raises(ValueError, match="target_language must be one of de, en, pt-BR, got none"):
        tagged().encode_source(["The dog"])
    assert tagged().encode_source([""]) == [[tagged().eos_id]]
    with pytest.raises(ValueError, match="target_language must be one of 3 codes: .*, got 'fr'"):
        tagged().between("en", "fr")
    with pytest.raises(ValueError, match="source_language must be one of 2 codes: .*, got 'pt-BR'"):
        tagged().between("pt-BR", "en")
    one = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=400)
    assert one.between("en", "fr") is one
    with pytest.raises(ValueError, match="target_languages must be codes with a tag .* got 'fr'"):
        SentencePieceTokenizer(one.source_model, target_languages=["fr"])


def test_languages_that_folded_text_cannot_tell_apart():
    with pytest.raises(ValueError, match="codes with a tag of their own .* got 'pt-BR'"):
        options = dict(vocab_size=400, lowercase=True, target_languages=["pt-BR", "pt-br"])
        SentencePieceTokenizer.train(ENGLISH, GERMAN, **options)


@pytest.mark.parametrize("word", ["", "two words", " <BT>"])
def test_a_symbol_is_a_word(word):
    with pytest.raises(ValueError, match="symbols must be words without white space, got "):
        SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=400, symbols=[word])


def test_saved_with_its_languages(tmp_path):
    tokenizer = tagged().between("en", "pt-BR")
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert loaded.target_languages == CODES["target_languages"]
    assert loaded.source_languages == CODES["source_languages"]
    assert loaded.fingerprint() == tagged().fingerprint()
    for one in (loaded, pickle.loads(pickle.dumps(loaded))):
        chosen = one.between("en", "pt-BR")
        assert chosen.encode_source(ENGLISH) == tokenizer.encode_source(ENGLISH)
    tagged(target_languages=()).save(tmp_path)
    assert load_tokenizer(tmp_path).source_languages == CODES["source_languages"]


def test_exported_as_marians(tmp_path):
    write_tokenizer(tmp_path, tagged())
    theirs = MarianTokenizer.read(tmp_path)
    assert {*theirs.target_languages} == {*CODES["target_languages"]}
    for language in CODES["target_languages"]:
        ours = tagged().between("en", language).encode_source(ENGLISH)
        assert theirs.between("en", language).encode_source(ENGLISH) == ours
        tag = tag_of(language)
        assert theirs.encode_source([f"{tag} {text}" for text in ENGLISH]) == ours
