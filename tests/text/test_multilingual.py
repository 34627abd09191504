"""The tokenizers of M2M-100, NLLB, mBART-50 and T5 against those of `transformers`."""

import gzip
import json
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
    if kind in ("nllb", "mbart"):  # they have a token for spaces at the end, SentencePiece has none
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


@pytest.mark.parametrize("kind", KINDS)
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


def test_tasks(made):
    folder, config = made("t5")
    task = dict(prefix="translate English to German: ")
    params = dict(summarization={}, translation_en_to_de=task)
    ours = read_tokenizer(folder, config | dict(task_specific_params=params))
    expected = ours.encode_source([f"translate English to German: {text}" for text in TEXTS])
    assert ours.between("en", "de").encode_source(TEXTS) == expected


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


def test_legacy_nllb_has_the_language_last(made, tmp_path):
    folder, config = made("nllb")
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    options = dict(tokenizer_class="NllbTokenizer", legacy_behaviour=True)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
    ours = read_tokenizer(tmp_path, config).between("eng_Latn", "deu_Latn")
    (source,) = ours.encode_source(["dog"])
    assert source[-2:] == [ours.eos_id, ours.languages["eng_Latn"]]
    assert ours.encode_target(["dog"])[0][0] == ours.languages["deu_Latn"]


@pytest.mark.parametrize("kind", [*KINDS, "madlad"])
def test_saved_and_loaded(both, tmp_path, kind):
    ours, _ = both(kind)
    ours.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert again.fingerprint() == ours.fingerprint()
    assert again.between(*LANGUAGES[kind]).encode_target(TEXTS) == ours.encode_target(TEXTS)
    next((tmp_path / "hugging_face").glob("*.model")).unlink()
    with pytest.raises(FileNotFoundError, match=r"holds no tokenizer: there is neither"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("kind", ["mbart", "t5"])
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


def test_bad_files(made, tmp_path):
    folder, config = made("mbart")
    with pytest.raises(ValueError, match=r"model_type must be one of .*, got 'bert'"):
        read_tokenizer(folder, config | dict(model_type="bert"))
    size = config["vocab_size"]
    for wrong in (size - 1, size + 128):
        with pytest.raises(ValueError, match=f"it has {size} pieces, the model {wrong}"):
            read_tokenizer(folder, config | dict(vocab_size=wrong))
    with pytest.raises(FileNotFoundError, match=r"holds no tokenizer: there is neither"):
        read_tokenizer(tmp_path, config)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match=r"tokenizer.json cannot be read"):
        read_tokenizer(tmp_path, config)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"the SentencePiece model in .* cannot be read"):
        read_tokenizer(tmp_path, config)
    model = folder / "sentencepiece.bpe.model"
    (tmp_path / "sentencepiece.bpe.model").write_bytes(model.read_bytes())
    for options, message in (
        (dict(tokenizer_class="MBartTokenizer"), "has the tokenizer of mBART-25, which is not"),
        (
            dict(added_tokens_decoder={"5": dict(content="<x>")}),
            "token 5 is '<x>' in the former and .* in the latter",
        ),
        (dict(added_tokens_decoder={"5": "<x>"}), "must map each id to a token with a content"),
        (dict(added_tokens_decoder=[5]), "must map each id to a token with a content"),
    ):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
        with pytest.raises(ValueError, match=message):
            read_tokenizer(tmp_path, config)
    with pytest.raises(ValueError, match=r"sampling must be 0 .*, got 0.1"):
        read_tokenizer(folder, config).encode_source(["a"], sampling=0.1)
