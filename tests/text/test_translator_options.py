"""Options of translators' tokenizers, set to unusual values: as `transformers`, or refused."""

import inspect
import json
import warnings

import pytest
import transformers

from keras_transformer.text import load_tokenizer, read_tokenizer
from keras_transformer.text.translator_options import (
    CLASSES,
    SMALL100,
    check_size,
    check_special_tokens,
    filled,
    listed_languages,
    translator_options,
)
from tests.pretrained_files import marian_files
from tests.text.test_multilingual import LANGUAGES, theirs

TEXTS = ["The old man sees the dog.", "Ein Hund schläft hier.", "I see 3 dogs, don't I ?"] * 20
KINDS = {
    "m2m_100": "M2M100Tokenizer", "mbart": "MBart50Tokenizer", "t5": "T5Tokenizer",
    "madlad": "T5Tokenizer", "marian": "MarianTokenizer",
}  # fmt: skip
VALUES = {
    "clean_up_tokenization_spaces": True, "truncation_side": "left", "padding_side": "left",
    "model_max_length": 7, "sp_model_kwargs": {"enable_sampling": True, "alpha": 0.1},
    "legacy": True, "legacy_behaviour": True, "language_codes": "m2m100", "num_madeup_words": 4,
    "src_lang": "fr", "tgt_lang": "fr", "source_lang": "fr", "target_lang": "de",
    "separate_vocabs": False, "extra_ids": 99, "do_lower_case": True, "keep_accents": True,
    "add_prefix_space": False, "strip_accents": True, "split_special_tokens": False,
    "add_bos_token": True, "add_eos_token": True, "errors": "strict",
}  # fmt: skip
INSIDE = {
    "self", "kwargs", "vocab", "merges", "vocab_file", "spm_file", "source_spm", "target_spm",
    "target_vocab_file", "additional_special_tokens", "_spm_precompiled_charsmap",
}  # fmt: skip


@pytest.fixture(scope="module", params=sorted(KINDS))
def made(request, tokenizer_files, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "marian":
        marian_files(folder, TEXTS, TEXTS)
        return request.param, folder, {"model_type": "marian"}
    return request.param, folder, tokenizer_files(request.param, folder, TEXTS)


def both(kind, folder, config):
    ours = read_tokenizer(folder, config)
    if kind == "marian":
        other = transformers.MarianTokenizer.from_pretrained(folder)
        found, expected = ours.encode_source(TEXTS), other(TEXTS)["input_ids"]
    else:
        languages = LANGUAGES[kind] if kind != "madlad" else (None, None)
        ours, other = ours.between(*languages), theirs(kind, folder)
        found, expected = ours.encode_source(TEXTS), other(TEXTS)["input_ids"]
    texts = other.batch_decode([x[1:] if kind in LANGUAGES and kind[0] == "m" and kind != "madlad"
                                else x for x in expected], skip_special_tokens=True)  # fmt: skip
    return (found, ours.decode_source(found)), (expected, [text.strip() for text in texts])


def test_each_field(made):
    kind, folder, config = made
    ours, expected = both(kind, folder, config)
    assert ours == expected
    where = folder / "tokenizer_config.json"
    usual = json.loads(where.read_text())
    fields = inspect.signature(getattr(transformers, KINDS[kind]).__init__).parameters
    wrong, refused = [], set()
    for field in sorted({*VALUES, *fields} - INSIDE):
        value = VALUES.get(field, "▁" if field.endswith("_token") else None)
        where.write_text(json.dumps({**usual, field: value}))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                ours, expected = both(kind, folder, config)
        except ValueError as error:
            assert field in str(error), f"{field}: {error}"
            refused.add(field)
            continue
        if ours != expected:
            wrong.append((field, value))
    where.write_text(json.dumps(usual))
    assert wrong == []
    assert {"sp_model_kwargs", "truncation_side", "eos_token", "unk_token"} <= refused


def test_texts_without_spaces_before_marks(made, tmp_path):
    kind, folder, config = made
    where = folder / "tokenizer_config.json"
    usual = json.loads(where.read_text())
    ids = read_tokenizer(folder, config).encode_source
    ids = ids(TEXTS[2:3]) if kind in ("marian", "t5", "madlad") else None
    where.write_text(json.dumps({**usual, "clean_up_tokenization_spaces": True}))
    tokenizer = read_tokenizer(folder, config)
    tokenizer.save(tmp_path)
    where.write_text(json.dumps(usual))
    assert load_tokenizer(tmp_path).clean_up is tokenizer.clean_up is True
    if ids:
        assert load_tokenizer(tmp_path).decode_source(ids) == ["I see 3 dogs, don't I?"]


def test_small_100(tokenizer_files, tmp_path):
    """The target's language is in the source; there, M2M-100 has the source's."""
    config = tokenizer_files("m2m_100", tmp_path, TEXTS)
    other = transformers.M2M100Tokenizer.from_pretrained(tmp_path, src_lang="de")
    for where in ("tokenizer_config.json", "config"):
        found = dict(config)
        if where == "config":
            found["tokenizer_class"] = SMALL100
            (tmp_path / "tokenizer_config.json").write_text("{}")
        else:
            (tmp_path / where).write_text(json.dumps({"tokenizer_class": SMALL100}))
        ours = read_tokenizer(tmp_path, found)
        with pytest.raises(ValueError, match="target_language must be chosen among this model's"):
            ours.encode_source(["a"])
        ours = ours.between(None, "de")
        assert ours.encode_source(TEXTS) == other(TEXTS)["input_ids"]
        assert ours.encode_target(TEXTS) == [ids[1:] for ids in other(TEXTS)["input_ids"]]
        assert ours.source_languages == () and "fr" in ours.target_languages
        ours.save(tmp_path / "saved")
        again = load_tokenizer(tmp_path / "saved").between(None, "de")
        assert again.encode_source(TEXTS) == ours.encode_source(TEXTS)


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_unknown_classes_are_refused(kind, tmp_path):
    for name in ("ByT5Tokenizer", 3):
        with pytest.raises(ValueError, match=r"^tokenizer_class in .* must be one of \["):
            translator_options(tmp_path, {"tokenizer_class": name}, kind)
    for name in (*CLASSES[kind], f"{CLASSES[kind][0]}Fast", None):
        translator_options(tmp_path, {"tokenizer_class": name}, kind)
    (tmp_path / "tokenizer_config.json").write_text('{"language_codes": "wmt20"}')
    if kind == "m2m_100":
        with pytest.raises(ValueError, match="^language_codes in .* is 'wmt20', which is not supp"):
            translator_options(tmp_path, {}, kind)


def test_the_vocabulary(tmp_path):
    with pytest.raises(ValueError, match="eos_token in .* is 'b', but the model's is 'a'"):
        check_special_tokens({"eos_token": "b"}, ["a", "b"], {"eos_token": 0}, tmp_path)
    with pytest.raises(ValueError, match="pad_token in .* is 'b', a piece of plain text"):
        check_special_tokens({"pad_token": "b"}, ["a", "b"], {"eos_token": 0}, tmp_path)
    added = {"added_tokens_decoder": {"2": {"content": "c"}}}
    assert filled(["a", "b"], tmp_path, added, {"vocab_size": 4}) == ["a", "b", "c", "<unused_3>"]
    with pytest.raises(ValueError, match="^added_tokens_decoder in .* differ: token 2 is 'c' in"):
        filled(["a"], tmp_path, added, {"vocab_size": 4})
    with pytest.raises(ValueError, match="it has 5 pieces, the model 4"):
        check_size(5, tmp_path, {"vocab_size": 4})
    assert listed_languages({"extra_special_tokens": ["deu_Latn"]}) == []
