"""Each field of `tokenizer_config.json`, set to an unusual value: as `transformers`, or refused."""

import inspect
import json
import warnings

import pytest
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer_classes import CLASSES, ENCODERS, USUAL, adapted, class_of

LINES = ["The OLD man Loves the dog, don't", "Größe 12½ 犬犬 naïve CAFÉ", "a the  dog <mask> b"] * 3
TEXTS = [*LINES, "", " ", " two  spaces ", "Le Café: 3.14 x=y", "line\nbreak\ttab", "``q'' it's"]
WITHOUT = normalizers.BertNormalizer()  # case and accents
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "<pad>", "</s>", "<mask>"]
SIGNS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "[PAD]"]


def word_pieces(name):
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    lines = [
        y for x in LINES for y in (x, x.lower(), normalizers.BertNormalizer().normalize_str(x))
    ]
    trainer = trainers.WordPieceTrainer(special_tokens=WORDS, show_progress=False, vocab_size=200)
    made.train_from_iterator(lines, trainer)
    return getattr(transformers, name)(vocab=made.get_vocab(with_added_tokens=True))


def byte_pairs(name):
    special = [*SIGNS, "<|endoftext|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        special_tokens=special, initial_alphabet=alphabet, show_progress=False, vocab_size=330
    )
    made.train_from_iterator(LINES, trainer)
    spec = json.loads(made.to_str())["model"]
    return getattr(transformers, name)(vocab=spec["vocab"], merges=_pairs(spec))


def sign_pairs(name):
    made = Tokenizer(models.BPE(byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    special = ["<unk>", "<s>", "</s>", "<pad>", *(f"<0x{i:02X}>" for i in range(256))]
    special += ["<bos>", "<eos>", "<mask>"]
    trainer = trainers.BpeTrainer(special_tokens=special, show_progress=False, vocab_size=360)
    made.train_from_iterator(LINES, trainer)
    spec = json.loads(made.to_str())["model"]
    return getattr(transformers, name)(vocab=spec["vocab"], merges=_pairs(spec))


def unigrams(name):
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    lines = [y for x in LINES for y in (x, x.lower())]
    first = {"AlbertTokenizer": ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]}
    first["DebertaV2Tokenizer"] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    unused = ["<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"]  # of CamemBERT
    special = list(dict.fromkeys([*first.get(name, SIGNS), *SIGNS, *unused]))
    trainer = trainers.UnigramTrainer(
        special_tokens=special, unk_token=special[1], show_progress=False, vocab_size=120
    )
    made.train_from_iterator(lines, trainer)
    pieces = [tuple(x) for x in json.loads(made.to_str())["model"]["vocab"]]
    return getattr(transformers, name)(vocab=pieces)


def _pairs(spec):
    return [tuple(x.split(" ")) if isinstance(x, str) else tuple(x) for x in spec["merges"]]


MAKERS = {
    "AlbertTokenizer": unigrams, "BertTokenizer": word_pieces, "CamembertTokenizer": unigrams,
    "DebertaV2Tokenizer": unigrams, "DistilBertTokenizer": word_pieces,
    "GPT2Tokenizer": byte_pairs, "GemmaTokenizer": sign_pairs, "LlamaTokenizer": sign_pairs,
    "MPNetTokenizer": word_pieces, "Qwen2Tokenizer": byte_pairs, "RobertaTokenizer": byte_pairs,
    "WhisperTokenizer": byte_pairs, "XLMRobertaTokenizer": unigrams,
}  # fmt: skip
MODELS = {name: kind for kind, name in reversed(USUAL.items())} | {"LlamaTokenizer": "llama"}
ADDED = {"content": "the  dog", "special": False, "lstrip": True, "normalized": False}
BASE = {  # unusual values of the fields that all classes have
    "add_bos_token": True, "add_eos_token": True, "padding_side": "left", "model_max_length": 7,
    "truncation_side": "left", "clean_up_tokenization_spaces": True, "split_special_tokens": True,
    "extra_special_tokens": ["OLD"], "additional_special_tokens": ["man"], "unk_id": 2,
    "added_tokens_decoder": None, "sp_model_kwargs": {"enable_sampling": True}, "image_token": "12",
    "chat_template": "{{ bos_token }}", "legacy": True, "model_input_names": ["input_ids"],
    "errors": "strict", "trim_offsets": False, "language": "de", "task": "translate",
    "predict_timestamps": True, "use_default_system_prompt": True, "vocab_type": "spm",
}  # fmt: skip
FLAGS = (
    "add_prefix_space", "do_lower_case", "keep_accents", "split_by_punct", "strip_accents",
    "tokenize_chinese_chars",
)  # fmt: skip
INSIDE = ("vocab", "merges", "kwargs", "self", "_spm_precompiled_charsmap", "normalizer_file",
          "vocab_file", "args")  # fmt: skip


@pytest.fixture(scope="module", params=sorted(MAKERS))
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    MAKERS[request.param](request.param).save_pretrained(path)
    (path / "config.json").write_text(json.dumps({"model_type": MODELS[request.param]}))
    return request.param, path


def both(path):
    """Ids of the texts by our tokenizer and by that of `transformers`."""
    ours = TextTokenizer.read(path)
    theirs = transformers.AutoTokenizer.from_pretrained(path)
    # The beginning of Whisper's texts is that of its prompts, which the transcriber writes.
    framed = not isinstance(theirs, transformers.WhisperTokenizer)
    options = dict(add_special_tokens=framed, split_special_tokens=False)
    expected = [theirs.encode(text, **options) for text in TEXTS]
    return ours.encode(TEXTS, framed, ours.special_names), expected


def values(name, path):
    """The fields of a class and unusual values for each."""
    fields = inspect.signature(getattr(transformers, name).__init__).parameters
    vocabulary = Tokenizer.from_file(str(path / "tokenizer.json")).get_vocab()
    # What all classes inherit is tried with one of each kind: it takes time.
    base = BASE if name in ("BertTokenizer", "LlamaTokenizer", "XLMRobertaTokenizer") else ()
    for field in dict.fromkeys([*base, *FLAGS, *fields]):
        if field in INSIDE:
            continue
        if field == "added_tokens_decoder":
            yield field, {str(max(vocabulary.values()) + 1): ADDED}
            known = next(x for x in ("<mask>", "<s>", "<|endoftext|>") if x in vocabulary)
            yield field, {str(vocabulary[known]): {**ADDED, "content": known, "rstrip": True}}
        elif field.endswith("_token") and field not in BASE:
            yield field, "[MASK]" if field != "mask_token" else "[CLS]"
            piece = next(x for x in ("犬", "½", "a") if x in vocabulary)
            yield field, {"content": piece, "lstrip": True, "__type": "AddedToken"}
        else:
            yield from ((field, x) for x in ((True, False) if field in FLAGS else (BASE[field],)))


def test_each_field(folder):
    name, path = folder
    ours, theirs = both(path)
    assert ours == theirs
    where = path / "tokenizer_config.json"
    usual = json.loads(where.read_text())
    wrong, refused = [], set()
    for field, value in values(name, path):
        where.write_text(json.dumps({**usual, field: value}))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                ours, theirs = both(path)
        except ValueError as error:
            assert field in str(error), f"{field}: {error}"
            refused.add(field)
            continue
        except Exception as error:
            wrong.append((field, value, repr(error)[:200]))
            continue
        if ours != theirs:
            wrong.append((field, value))
    where.write_text(json.dumps(usual))
    assert wrong == []
    assert not {"do_lower_case", "add_prefix_space", "strip_accents"} & refused


def test_the_class_decides(tmp_path):
    """`transformers` sets what the class sets, also where `tokenizer_config.json` says nothing."""
    word_pieces("BertTokenizer").save_pretrained(tmp_path)
    where = tmp_path / "tokenizer_config.json"
    where.write_text(json.dumps({"do_lower_case": False, "tokenizer_class": "BertTokenizer"}))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    cased = both(tmp_path)
    content = TextTokenizer.read(tmp_path).content
    (tmp_path / "tokenizer.json").write_bytes(content)  # its own normalizer keeps the case
    where.unlink()
    ours, theirs = both(tmp_path)
    assert ours == theirs and cased[0] == cased[1] and ours != cased[0]
    where.write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(content.decode())
    ).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    assert both(tmp_path) == cased


@pytest.mark.parametrize(
    "kind,name,found",
    [
        ("bert", None, "BertTokenizer"),
        ("bert", "BertTokenizerFast", "BertTokenizer"),
        ("bert", "PreTrainedTokenizerFast", None),
        ("roberta", "TokenizersBackend", None),
        ("bert", "XLMRobertaTokenizer", "XLMRobertaTokenizer"),
        ("mistral", "LlamaTokenizerFast", None),
        ("qwen2", "LlamaTokenizer", "Qwen2Tokenizer"),
        ("llama", "LlamaTokenizer", "LlamaTokenizer"),
        ("llama", None, None),
        (None, None, None),
    ],
)
def test_classes(kind, name, found):
    path = "tokenizer_config.json"
    assert class_of({"tokenizer_class": name}, {}, path, kind) == found
    assert class_of({}, {"tokenizer_class": name}, path, kind) == found


@pytest.mark.parametrize("kind", ["bert", "llama", "mistral"])
@pytest.mark.parametrize("name", ["BertJapaneseTokenizer", "PhobertTokenizer", 3])
def test_unknown_classes_are_refused(kind, name):
    with pytest.raises(ValueError, match=r"^tokenizer_class in x must be one of \[.*'BertTokenize"):
        class_of({"tokenizer_class": name}, {}, "x", kind)


def test_byte_level_pieces_of_a_llama(tmp_path):
    """`transformers` reads them as they are, whatever LLaMA's class does to other pieces."""
    byte_pairs("GPT2Tokenizer").save_pretrained(tmp_path)
    for options in ({}, {"add_prefix_space": True}, {"legacy": True}):
        options = {"tokenizer_class": "LlamaTokenizerFast", **options}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
        (tmp_path / "config.json").write_text('{"model_type": "llama"}')
        ours, theirs = both(tmp_path)
        assert ours == theirs


@pytest.mark.parametrize("name", ["BertTokenizer", "GPT2Tokenizer", "XLMRobertaTokenizer"])
def test_options_that_fit_no_part_are_refused(name):
    content = b'{"normalizer": null, "pre_tokenizer": null, "model": {"vocab": {}}}'
    option = {"B": ("strip_accents", True), "G": ("add_prefix_space", True)}
    option, value = option.get(name[0], ("add_prefix_space", False))
    with pytest.raises(ValueError, match=f"^{option} in x is {value}, but tokenizer.json has no p"):
        adapted(content, name, {option: value}, "x")
    parts = b'{"type": "Sequence", "normalizers": [{"type": "BertNormalizer"}]}'
    with pytest.raises(ValueError, match=f"{option} in x must be true, false or null, got 'no'"):
        adapted(content.replace(b"null", parts), name, {option: "no"}, "x")
    assert sorted(CLASSES) and set(ENCODERS.values()) < set(CLASSES)
