"""SentencePiece tokenizers: round trips, tensorflow-text parity, reproducibility, bad input."""

import functools
import json
import multiprocessing
import pickle
import re
import threading
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.text import SentencePieceTokenizer, load_tokenizer

ENGLISH = [
    f"{who} {does} {what} {where}."
    for who in ("The dog", "A woman", "My friend")
    for does in ("sees", "is looking for", "doesn't want")
    for what in ("the ball", "a green house", "3.5 apples", "two-year-old children")
    for where in ("in the garden", "by the river", "here")
]
GERMAN = [
    f"{who} {does} {what} {where}."
    for who in ("Der Hund", "Eine Frau", "Mein Freund", "Das Mädchen")
    for does in ("sieht", "sucht", "mag")
    for what in ("den Ball", "ein grünes Haus", "3,5 Äpfel", "die Straße")
    for where in ("im Garten", "am Fluss", "hier")
]
UNICODE = [
    "naïve café, Straße, Ærøskøbing",
    "日本語のテキスト 中文 한국어",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🐶!",
    "e\u0301 a\u0323\u0308 q\u0307\u0323",
    "ﬁne １２３ ½ ㎏ …",
    "عربي עברית हिन्दी ไทย",
    "tab\there, a zero\u200bwidth space, a\u00a0no-break one",
    "▁ <unk> <s> </s> <pad> <0x41> <unused0>",
    "",
    "   ",
]


@functools.cache
def trained(kind="bpe", shared=True, lowercase=False, byte_fallback=True):
    return SentencePieceTokenizer.train(
        ENGLISH,
        GERMAN,
        vocab_size=400,
        kind=kind,
        shared=shared,
        lowercase=lowercase,
        byte_fallback=byte_fallback,
    )


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@settings(deadline=None, max_examples=200)
@given(text=st.text())
def test_no_character_is_lost(kind, text):
    tokenizer = trained(kind)
    (ids,) = tokenizer.encode_target([text])
    normalize = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.target_model).normalize
    assert tokenizer.decode_target([ids]) == [normalize(text).replace("▁", " ").strip(" ")]
    assert tokenizer.unk_id not in ids


@pytest.mark.parametrize("text", [*ENGLISH[:5], *GERMAN[:5], *UNICODE[:6]])
def test_decoded_text_is_the_text_but_for_nfkc(text):
    tokenizer = trained()
    (decoded,) = tokenizer.decode_source(tokenizer.encode_source([text]))
    assert unicodedata.normalize("NFKC", decoded) == unicodedata.normalize("NFKC", text)


def test_spaces_are_the_only_other_thing_that_changes():
    tokenizer = trained()
    ids = tokenizer.encode_source(["  two \t spaces\n", "a\u00a0no-break one"])
    assert tokenizer.decode_source(ids) == ["two spaces", "a no-break one"]


def test_special_ids_and_sizes():
    tokenizer = trained()
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2, 3)
    assert tokenizer.source_vocab_size == tokenizer.target_vocab_size == 400
    assert tokenizer.shared and tokenizer.source_model == tokenizer.target_model


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_vocabulary_is_a_multiple_of_eight_that_really_exists(kind, caplog):
    tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=321, kind=kind)
    assert tokenizer.source_vocab_size == 328
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    assert processor.get_piece_size() == 328
    assert not caplog.records


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_small_corpus_gets_a_smaller_vocabulary_and_a_warning(kind, caplog):
    tokenizer = SentencePieceTokenizer.train(["hello world"], ["hallo Welt"], kind=kind)
    assert tokenizer.source_vocab_size < 400 and tokenizer.source_vocab_size % 8 == 0
    assert "not 8000" in caplog.text
    every_id = [[id_] for id_ in range(tokenizer.source_vocab_size)]
    assert tokenizer.decode_source(every_id)[-1] == ""
    ids = tokenizer.encode_source(["hello <unused0> Welt"])
    assert tokenizer.decode_source(ids) == ["hello <unused0> Welt"]


def test_sentinels_stand_behind_the_pieces_and_are_no_text():
    plain = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=320)
    tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=320, sentinels=5)
    assert plain.sentinel_ids == () and tokenizer.source_vocab_size == 328
    assert tokenizer.sentinel_ids == tuple(range(320, 325))
    texts = ["<extra_id_0> is text", *ENGLISH]
    assert tokenizer.encode_source(texts) == plain.encode_source(texts)
    assert tokenizer.decode_source([[320, 324]]) == [""]
    with pytest.raises(ValueError, match="sentinels must be a whole number of at least 0, got -1"):
        SentencePieceTokenizer.train(ENGLISH, GERMAN, sentinels=-1)


def test_separate_vocabularies():
    tokenizer = trained(shared=False)
    assert not tokenizer.shared and tokenizer.source_model != tokenizer.target_model
    german = tokenizer.encode_target(GERMAN[:3])
    assert tokenizer.decode_target(german) == GERMAN[:3]
    assert tokenizer.encode_source(GERMAN[:3]) != german


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_text_never_becomes_a_special_id(kind, sampling):
    tokenizer = trained(kind)
    texts = ["</s>", "a </s> b", "<s><pad><unk>", "<0x41>", "<unused0>"]
    rows = tokenizer.encode_source(texts, sampling=sampling, seed=0)
    assert all(row[-1] == 3 and min(row[:-1]) > 3 for row in rows)
    assert tokenizer.decode_source(rows) == texts


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_empty_text_is_the_end_alone(sampling):
    assert trained().encode_source(["", "  \t\n"], sampling=sampling, seed=0) == [[3], [3]]
    assert trained().encode_source([], sampling=sampling, seed=0) == []
    assert trained().decode_target([[3], [], [0, 2]]) == ["", "", ""]
    assert trained().decode_target([]) == []


def test_decoding_stops_at_the_end_and_skips_padding():
    tokenizer = trained()
    (ids,) = tokenizer.encode_target(["Der Hund"])
    rows = np.array([[2, *ids, *ids], [0, *ids, 0, 0, *[0] * (len(ids) - 2)]])
    assert tokenizer.decode_target(rows) == ["Der Hund", "Der Hund"]


def test_without_byte_fallback_unknown_characters_are_unknown():
    assert (
        trained(byte_fallback=False).unk_id in trained(byte_fallback=False).encode_source(["日"])[0]
    )


def test_lowercase_is_the_models_own_and_keeps_sharp_s():
    tokenizer = trained(lowercase=True)
    ids = tokenizer.encode_source(["DIE Straße ÄÖÜ"])
    assert ids == tokenizer.encode_source(["die straße äöü"])
    assert tokenizer.decode_source(ids) == ["die straße äöü"]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_training_is_deterministic_and_quiet(kind, capfd):
    make = functools.partial(SentencePieceTokenizer.train, vocab_size=384, kind=kind)
    first, second = make(iter(ENGLISH), iter(GERMAN)), make(ENGLISH, GERMAN)
    assert first.source_model == second.source_model
    assert first.fingerprint() == second.fingerprint()
    assert make(GERMAN, ENGLISH[1:]).fingerprint() != first.fingerprint()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "options", [{}, {"kind": "unigram"}, {"lowercase": True}, {"byte_fallback": False}]
)
def test_tensorflow_text_gives_the_same_ids(options):
    tf_text = pytest.importorskip("tensorflow_text")
    import tensorflow as tf

    small = SentencePieceTokenizer.train(["hello"], ["hallo"], **options)  # has unused pieces
    for tokenizer in (trained(**options), small):
        twin = tf_text.SentencepieceTokenizer(
            model=tokenizer.source_model, out_type=tf.int32, add_eos=True
        )
        texts = ENGLISH + GERMAN + UNICODE
        ids = tokenizer.encode_source(texts)
        assert twin.tokenize(texts).to_list() == ids
        ours = tokenizer.decode_source(ids)
        theirs = [text.decode() for text in twin.detokenize(tf.ragged.constant(ids)).numpy()]
        assert ours == theirs


def sample(tokenizer, seed, results):
    results.put(tokenizer.encode_source(ENGLISH + UNICODE, sampling=0.2, seed=seed))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampling_depends_on_the_seed_alone(kind):
    tokenizer = trained(kind)
    texts = ENGLISH + UNICODE
    encode = functools.partial(tokenizer.encode_source, texts, sampling=0.2)
    expected = encode(seed=5)
    assert expected != tokenizer.encode_source(texts) != encode(seed=6) != expected
    encode(seed=None)
    assert encode(seed=np.int64(5)) == expected

    drawn = []
    thread = threading.Thread(target=lambda: drawn.append(encode(seed=5)))
    thread.start()
    thread.join()
    assert drawn == [expected]


def test_sampling_is_the_same_in_another_process():
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    for kind in ("bpe", "unigram"):
        process = context.Process(target=sample, args=(trained(kind), 5, results))
        process.start()
        assert results.get(timeout=60) == trained(kind).encode_source(
            ENGLISH + UNICODE, sampling=0.2, seed=5
        )
        process.join()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampled_ids_spell_the_same_texts(kind):
    tokenizer = trained(kind)
    texts = ENGLISH + GERMAN + UNICODE
    plain = tokenizer.decode_target(tokenizer.encode_target(texts))
    rows = tokenizer.encode_target(texts, sampling=0.5, seed=1)
    assert tokenizer.decode_target(rows) == plain
    assert all(row[-1] == tokenizer.eos_id for row in rows)


def test_pickled_tokenizer_gives_the_same_ids():
    # As multi-process data loading does it, in memory; no file of ours is a pickle.
    tokenizer = pickle.loads(pickle.dumps(trained()))
    assert tokenizer.encode_source(UNICODE) == trained().encode_source(UNICODE)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_save_and_load(tmp_path, kind, shared):
    tokenizer = trained(kind, shared)
    tokenizer.save(tmp_path / "new" / "tokenizer")
    loaded = load_tokenizer(tmp_path / "new" / "tokenizer")
    assert isinstance(loaded, SentencePieceTokenizer)
    assert (loaded.shared, loaded.kind) == (shared, kind)
    assert loaded.fingerprint() == tokenizer.fingerprint()
    for encode in ("encode_source", "encode_target"):
        same = functools.partial(getattr(loaded, encode), UNICODE + GERMAN)
        assert same() == getattr(tokenizer, encode)(UNICODE + GERMAN)
        expected = getattr(tokenizer, encode)(UNICODE + GERMAN, sampling=0.3, seed=7)
        assert same(sampling=0.3, seed=7) == expected


def test_failed_save_leaves_the_old_tokenizer(tmp_path, monkeypatch):
    trained().save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full_disk(path, content):
        with open(path, "wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="No space left"):
        trained("unigram").save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_folder_without_tokenizer(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no tokenizer: tokenizer\.json is missing"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", 'must name its "class"'),
        ('{"class": "Other"}', 'must name its "class", one of .*SentencePieceTokenizer'),
        ('{"class": "SentencePieceTokenizer"}', "lacks 'shared'"),
    ],
)
def test_broken_json(tmp_path, content, message):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tmp_path)


def test_missing_model_file(tmp_path):
    trained(shared=False).save(tmp_path)
    (tmp_path / "target.model").unlink()
    with pytest.raises(FileNotFoundError, match=r"target\.model is missing"):
        load_tokenizer(tmp_path)


def test_model_file_of_another_tokenizer(tmp_path):
    trained().save(tmp_path)
    (tmp_path / "shared.model").write_bytes(trained("unigram").source_model)
    with pytest.raises(ValueError, match="not those that were saved"):
        load_tokenizer(tmp_path)


def test_fingerprint_is_in_the_folder(tmp_path):
    trained().save(tmp_path)
    manifest = json.loads((tmp_path / "tokenizer.json").read_text())
    assert manifest["fingerprint"] == trained().fingerprint()
    assert trained().fingerprint() != trained(lowercase=True).fingerprint()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "word"}, r"kind must be one of \['bpe', 'unigram'\], got 'word'"),
        ({"vocab_size": 0}, "vocab_size must be an integer from 1 to 1,000,000, got 0"),
        ({"vocab_size": 10**7}, "vocab_size must be an integer from 1 to 1,000,000"),
        ({"vocab_size": 8000.0}, "vocab_size must be an integer"),
        ({"vocab_size": 100}, "vocab_size must be at least .* special pieces, 256 .* got 104"),
        ({"character_coverage": 0.5}, "character_coverage must be 0.98 to 1, got 0.5"),
    ],
)
def test_bad_training_options(options, message):
    with pytest.raises(ValueError, match=message):
        SentencePieceTokenizer.train(ENGLISH, GERMAN, **options)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([], [], "source_texts and target_texts must hold some text"),
        (["", " "], ["\n"], "got 3 empty lines"),
        ("one string", GERMAN, "source_texts must be a sequence of strings"),
        (ENGLISH, [*GERMAN, None], r"got NoneType at target_texts\[144\]"),
        (["x" * 5000], [], "lines of more than 4,192 bytes do not count"),
    ],
)
def test_bad_training_texts(source, target, message):
    with pytest.raises(ValueError, match=message):
        SentencePieceTokenizer.train(source, target)


def test_empty_target_of_a_separate_vocabulary():
    with pytest.raises(ValueError, match="target_texts must hold some text"):
        SentencePieceTokenizer.train(ENGLISH, [""], vocab_size=400, shared=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": "one string"}, "texts must be a sequence of strings"),
        ({"texts": ["a", 3]}, r"must hold strings, got int at texts\[1\]"),
        ({"texts": ["a", "b\ud83d"]}, "must be valid Unicode, got a lone surrogate"),
        ({"texts": ["b\ud83d"], "sampling": 0.1}, "must be valid Unicode, got a lone surrogate"),
        ({"texts": ["a"], "sampling": 1.5}, r"sampling must be from 0 \(off\) to 1, got 1.5"),
        ({"texts": ["a"], "sampling": -0.1}, "sampling must be from 0"),
        ({"texts": ["a"], "sampling": 0.1, "seed": -1}, "seed must be None or not negative"),
    ],
)
def test_bad_encoding_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        trained().encode_source(**arguments)


def test_one_row_of_ids_is_refused():
    with pytest.raises(ValueError, match="ids must be a sequence of sequences"):
        trained().decode_target([5, 6, 3])


def test_bad_models():
    with pytest.raises(ValueError, match="source_model must be the bytes of a SentencePiece model"):
        SentencePieceTokenizer(b"no model")
    with pytest.raises(ValueError, match="target_model must be the bytes"):
        SentencePieceTokenizer(trained().source_model, b"")


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_vocabulary_that_is_too_small_names_the_least_that_works(byte_fallback):
    make = functools.partial(
        SentencePieceTokenizer.train, ENGLISH, GERMAN, byte_fallback=byte_fallback
    )
    with pytest.raises(ValueError, match=r"^vocab_size must be at least \d+ for ") as found:
        make(vocab_size=8)
    least = int(re.search(r"at least (\d+)", str(found.value))[1])
    assert make(vocab_size=least).source_vocab_size == least
    with pytest.raises(ValueError, match=f"at least {least} .* got {least - 8}"):
        make(vocab_size=least - 8)
