"""The tokenizers of M2M-100, NLLB, mBART-50 and T5 against those of `transformers`."""

import gzip
import os
from pathlib import Path

import pytest
import transformers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_transformer.text import load_tokenizer, read_tokenizer

TEXTS = ["The old man sees the dog.", "Ein Hund schläft hier.", "I see 3 dogs, don't I?"] * 20
KINDS = ("m2m_100", "nllb", "mbart", "t5")
LANGUAGES = {
    "m2m_100": ("en", "de"),
    "nllb": ("eng_Latn", "deu_Latn"),
    "mbart": ("en_XX", "de_DE"),
    "mbart25": ("en_XX", "de_DE"),
    "t5": (None, None),
    "madlad": (None, "de"),
}
FILES = {
    "de": "multi30k/test_2016_flickr.de.gz",
    "fr": "tatoeba-en-fr/dev.fr.gz",
    "es": "tatoeba-en-es/dev.es.gz",
    "ja": "enja-small/dev.ja.gz",
}


def theirs(kind, folder):
    """The tokenizer of `transformers`, from the same files."""
    source, target = LANGUAGES[kind]
    options = {} if source is None else dict(src_lang=source, tgt_lang=target)
    if kind == "nllb":  # from SentencePiece alone, version 5 leaves the languages out
        from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

        options["extra_special_tokens"] = FAIRSEQ_LANGUAGE_CODES
    classes = dict(
        m2m_100=transformers.M2M100Tokenizer,
        nllb=transformers.NllbTokenizer,
        mbart=transformers.MBart50Tokenizer,
        mbart25=transformers.MBartTokenizer,
    )
    return classes.get(kind, transformers.T5Tokenizer).from_pretrained(folder, **options)


@pytest.fixture(scope="module")
def made(tokenizer_files, tmp_path_factory):
    """`made(kind)`: the folder and what `config.json` says."""
    found = {}

    def make(kind):
        if kind not in found:
            folder = tmp_path_factory.mktemp(kind)
            found[kind] = folder, tokenizer_files(kind, folder, TEXTS)
        return found[kind]

    return make


@pytest.fixture(scope="module")
def both(made):
    found = {}

    def pair(kind):
        if kind not in found:
            folder, config = made(kind)
            ours = read_tokenizer(folder, config).between(*LANGUAGES[kind])
            found[kind] = ours, theirs(kind, folder)
        return found[kind]

    return pair


def check(kind, ours, other, texts):
    expected, targets = other(texts)["input_ids"], other(text_target=texts)["input_ids"]
    if kind == "nllb":
        # Where the languages' tokens are is known (fairseq's order); see `theirs`.
        codes = {other.convert_tokens_to_ids(x): i for x, i in ours.languages.items()}
        expected, targets = ([[codes.get(i, i) for i in x] for x in y] for y in (expected, targets))
    space = ours.pieces.ids.get("▁")
    if kind == "mbart25":  # what they shift to the front is our first input
        assert {x.pop() for x in targets} == {ours.bos_id}
    if kind in (
        "nllb",
        "mbart",
        "mbart25",
    ):  # they have a token for spaces at the end, SentencePiece has none
        expected, targets = ([_without_end(x, space) for x in y] for y in (expected, targets))
    assert ours.encode_source(texts) == expected
    assert ours.encode_target(texts) == targets
    found = other(texts)["input_ids"]
    if kind == "m2m_100":  # to which a language is text, unless the folder says otherwise
        found = [ids[1:] for ids in found]
    decoded = other.batch_decode(found, skip_special_tokens=True)
    assert ours.decode_source(expected) == [text.strip() for text in decoded]


def _without_end(ids, space):
    return ids[:-2] + ids[-1:] if len(ids) > 2 and ids[-2] == space else ids


@pytest.mark.parametrize("kind", [*KINDS, "mbart25"])
def test_equals_transformers(both, kind):
    check(
        kind, *both(kind), [*TEXTS, "", " ", "  a   b ", "naïve 犬 dog", "a\tb\u3000c", "old dog "]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_any_unicode(both, kind):
    @settings(max_examples=150)
    @given(st.lists(st.text(), min_size=1, max_size=3))
    @example(["a b", "\n\t", "\x00", "<"])
    def run(texts):
        special = "\x85", "▁", *both(kind)[1].all_special_tokens
        check(kind, *both(kind), [x for x in texts if not any(y in x for y in special)] or ["a"])

    run()


@pytest.mark.parametrize("language", FILES)
@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_real_lines(tokenizer_files, tmp_path, kind, language):
    if "KT_DATA" not in os.environ:
        pytest.skip("KT_DATA is not set: real data is not here")
    content = gzip.decompress(Path(os.environ["KT_DATA"], FILES[language]).read_bytes())
    lines = content.decode().split("\n")[:2000]
    config = tokenizer_files(kind, tmp_path, lines[:500], vocab_size=2000)
    ours = read_tokenizer(tmp_path, config).between(*LANGUAGES[kind])
    check(kind, ours, theirs(kind, tmp_path), lines)


def test_sentinels_and_tags(both):
    texts = ["The <extra_id_0> man<extra_id_1>sees <extra_id_99>", "<extra_id_100>"]
    check("t5", *both("t5"), texts[:1])
    assert both("t5")[0].encode_source(texts[1:]) == [[*both("t5")[0].pieces.encode(texts[1]), 1]]
    ours, other = both("madlad")
    tagged = [f"<2de> {text}" for text in TEXTS]
    assert ours.between(None, None).encode_source(tagged) == other(tagged)["input_ids"]
    assert ours.encode_source(TEXTS) == other(tagged)["input_ids"]
    assert ours.encode_target(TEXTS) == other(TEXTS)["input_ids"]
    assert ours.target_languages == ("de", "fr")


def test_languages(made):
    ours = read_tokenizer(*made("nllb"))
    with pytest.raises(ValueError, match="source_language must be chosen among this model's 202"):
        ours.encode_source(["a"])
    message = "target_language must be one of 202 codes such as .*deu_Latn.*, got 'deu'"
    with pytest.raises(ValueError, match=message):
        ours.between("eng_Latn", "deu")
    chosen = ours.between("eng_Latn", "deu_Latn")
    (source,), (target,) = chosen.encode_source(["dog"]), chosen.encode_target(["dog"])
    assert source[0] == ours.languages["eng_Latn"] and target[0] == ours.languages["deu_Latn"]
    assert source[1:] == target[1:] and target[-1] == ours.eos_id
    assert ours.decode_target([target]) == ["dog"]


@pytest.mark.parametrize("kind", [*KINDS, "madlad", "mbart25"])
def test_saved_and_loaded(both, tmp_path, kind):
    ours, _ = both(kind)
    ours.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert again.fingerprint() == ours.fingerprint()
    assert again.between(*LANGUAGES[kind]).encode_target(TEXTS) == ours.encode_target(TEXTS)
    next((tmp_path / "hugging_face").glob("*.model")).unlink()
    with pytest.raises(FileNotFoundError, match=r"holds no tokenizer: there is neither"):
        load_tokenizer(tmp_path)


def test_the_languages_of_mbart25(made):
    """25 sources, and the one target that the decoder begins with."""
    folder, config = made("mbart25")
    ours = read_tokenizer(folder, config)
    assert len(ours.source_languages) == 25 and ours.target_languages == ("de_DE",)
    with pytest.raises(ValueError, match="target_language must be one of 1 codes: de_DE, got"):
        ours.between("en_XX", "fr_XX")
    message = "decoder_start_token_id must be the id of the target language's token, got 2"
    with pytest.raises(ValueError, match=message):
        read_tokenizer(folder, config | dict(decoder_start_token_id=2))


@pytest.mark.parametrize("kind", ["mbart", "mbart25", "t5"])
def test_a_tokenizer_json_alone(both, made, tmp_path, kind):
    ours, other = both(kind)
    other.save_pretrained(tmp_path)
    assert not list(tmp_path.glob("*.model"))
    alone = read_tokenizer(tmp_path, made(kind)[1]).between(*LANGUAGES[kind])
    assert alone.encode_source(TEXTS) == other(TEXTS)["input_ids"]
    assert alone.source_vocab_size == ours.source_vocab_size
    assert alone.decode_target(ours.encode_target(TEXTS)) == ours.decode_target(
        ours.encode_target(TEXTS)
    )
    alone.save(tmp_path / "saved")
    again = load_tokenizer(tmp_path / "saved").between(*LANGUAGES[kind])
    assert again.encode_target(TEXTS) == alone.encode_target(TEXTS)
