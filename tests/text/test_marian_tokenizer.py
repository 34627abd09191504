"""Marian's tokenizer against that of `transformers`."""

import gzip
import json
import os
from pathlib import Path

import pytest
import transformers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_transformer.text import MarianTokenizer, load_tokenizer

ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"] * 20
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."] * 20
LANGUAGES = {
    "de": "multi30k/test_2016_flickr.{}.gz",
    "fr": "tatoeba-en-fr/dev.{}.gz",
    "es": "tatoeba-en-es/dev.{}.gz",
    "ja": "enja-small/dev.{}.gz",
}


def theirs(folder):
    options = json.loads((folder / "tokenizer_config.json").read_text())
    separate = options["separate_vocabs"]
    target = str(folder / "target_vocab.json") if separate else None
    return transformers.MarianTokenizer(
        str(folder / "source.spm"), str(folder / "target.spm"), str(folder / "vocab.json"),
        target_vocab_file=target, **options,
    )  # fmt: skip


@pytest.fixture(scope="module", params=[False, True], ids=["shared", "separate"])
def both(request, marian_files, tmp_path_factory):
    folder = marian_files(
        tmp_path_factory.mktemp("marian"), ENGLISH, GERMAN, separate=request.param
    )
    return MarianTokenizer.read(folder), theirs(folder)


def check(ours, other, sources, targets):
    assert ours.encode_source(sources) == other(sources)["input_ids"]
    ids = other(text_target=targets)["input_ids"]
    assert ours.encode_target(targets) == ids
    assert ours.decode_target(ids) == other.batch_decode(ids, skip_special_tokens=True)


def test_equals_transformers(both):
    tagged = [">>fra<<The old dog", ">>fra<< The old dog", ">>no such<<dog", ">>fra dog", "a >>b<<"]
    check(*both, [*ENGLISH, *tagged, "", " ", "naïve 犬"], [*GERMAN, "", "  a   b ", "犬 Hund"])


@settings(max_examples=200)
@given(st.lists(st.text(), min_size=1, max_size=3))
@example(["\u2581", "a\u2581b", "\n\t", "\x00", "<"])
def test_any_unicode(both, texts):
    texts = [text for text in texts if not any(x in text for x in ("</s>", "<unk>", "<pad>"))]
    check(*both, texts or ["a"], texts or ["a"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_thousand_real_lines(marian_files, tmp_path, language):
    if "KT_DATA" not in os.environ:
        pytest.skip("KT_DATA is not set: real data is not here")
    paths = [Path(os.environ["KT_DATA"], LANGUAGES[language].format(x)) for x in ("en", language)]
    sources, targets = (
        gzip.decompress(path.read_bytes()).decode().splitlines()[:2000] for path in paths
    )
    folder = marian_files(tmp_path, sources[:500], targets[:500], vocab_size=2000)
    check(MarianTokenizer.read(folder), theirs(folder), sources, targets)


def test_special_ids(both):
    ours, other = both
    assert ours.eos_id == other.eos_token_id == 0
    assert ours.unk_id == other.unk_token_id == 1
    assert ours.bos_id == ours.pad_id == ours.target_vocab_size - 1
    assert ours.target_languages == ("deu", "fra")


def test_between_puts_the_tag(both):
    ours, _ = both
    french = ours.between(None, "fra")
    assert french.encode_source(ENGLISH[:3]) == ours.encode_source(
        [f">>fra<<{text}" for text in ENGLISH[:3]]
    )
    assert french.encode_target(GERMAN) == ours.encode_target(GERMAN)
    assert french.fingerprint() == ours.fingerprint()
    message = "target_language must be one of 2 codes: deu, fra, got 'de'"
    with pytest.raises(ValueError, match=message):
        ours.between("en", "de")


def test_what_looks_like_the_end_is_spelled_out(both):
    ours, _ = both
    assert ours.encode_source(["a </s> dog"])[0].count(ours.eos_id) == 1


def test_saved_and_loaded(both, tmp_path):
    ours, _ = both
    ours.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert again.fingerprint() == ours.fingerprint()
    assert again.encode_target(GERMAN) == ours.encode_target(GERMAN)


def test_bad_files(marian_files, tmp_path):
    folder = marian_files(tmp_path, ENGLISH, GERMAN)
    with pytest.raises(ValueError, match="sampling must be 0 for a MarianTokenizer, got 0.1"):
        MarianTokenizer.read(folder).encode_source(["a"], sampling=0.1)
    vocabulary = json.loads((folder / "vocab.json").read_text())
    for change, message in (
        (lambda x: x.pop("<pad>"), r"vocabulary must have the pieces \['<pad>'\]"),
        (lambda x: x.update(more=len(x) + 3), "vocabulary must have each id from 0 to"),
    ):
        changed = dict(vocabulary)
        change(changed)
        (folder / "vocab.json").write_text(json.dumps(changed))
        with pytest.raises(ValueError, match=message):
            MarianTokenizer.read(folder)
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "source.spm").write_bytes(b"x")
    with pytest.raises(ValueError, match="source_model must be the bytes of a SentencePiece model"):
        MarianTokenizer.read(folder)
    (folder / "source.spm").unlink()
    with pytest.raises(FileNotFoundError, match="source.spm is missing"):
        MarianTokenizer.read(folder)
