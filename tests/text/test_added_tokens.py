"""Tokens that the files beside a tokenizer add, as `transformers` adds them."""

import json

import pytest
import transformers
from tokenizers import Tokenizer, models

from keras_transformer.text.added_tokens import check_named_tokens, with_added_tokens
from keras_transformer.text.text_tokenizer import TextTokenizer

TEXTS = ["to be", "a <x>b<y> c", "<z>to be", " <x> <y> <z> "]
TRAINED = TextTokenizer.train(["to be or not"], "bytes", 260).with_special_tokens(["<x>"])
NEXT = len(TRAINED.pieces())
FILES = [
    {"tokenizer_config.json": {"extra_special_tokens": ["<y>", "<z>"]}},
    {"special_tokens_map.json": {"additional_special_tokens": ["<y>"], "pad_token": "<x>"}},
    {
        "special_tokens_map.json": {
            "pad_token": {"content": "<y>", "lstrip": True, "rstrip": False, "normalized": True}
        },
        "added_tokens.json": {"<y>": NEXT, "<z>": NEXT + 1},
    },
    {
        "tokenizer_config.json": {
            "added_tokens_decoder": {
                str(NEXT): {"content": "<y>", "lstrip": True, "special": True},
                str(NEXT - 1): {"content": "<x>", "lstrip": True, "rstrip": True, "special": True},
            }
        },
        "added_tokens.json": {"<z>": 3},  # does not count
    },
]


@pytest.mark.parametrize("files", FILES)
def test_ids_are_those_of_transformers(files, tmp_path):
    TRAINED.save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    options = {"tokenizer_class": "PreTrainedTokenizerFast"}
    for name, content in {"tokenizer_config.json": {}, **files}.items():
        content = content | (options if name == "tokenizer_config.json" else {})
        (tmp_path / name).write_text(json.dumps(content))
    ours = TextTokenizer.read(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert ours.encode(TEXTS, special=ours.special_names) == [theirs.encode(x) for x in TEXTS]
    assert {*ours.special_names} == {
        x.content for x in theirs.added_tokens_decoder.values() if x.special
    }


def test_ids_that_contradict_the_vocabulary():
    decoder = {"7": {"content": "<y>"}}
    with pytest.raises(ValueError, match=r"id of '<y>' in added_tokens_decoder of x must be"):
        with_added_tokens(TRAINED.content, {"added_tokens_decoder": decoder}, "x")
    for wrong in ([1], {"a": {"content": "b"}}, {"1": {}}, {"1": None}):
        with pytest.raises(ValueError, match="added_tokens_decoder in x must map each id"):
            with_added_tokens(TRAINED.content, {"added_tokens_decoder": wrong}, "x")
    with pytest.raises(ValueError, match="bos_token in x must be a token or null, got 3"):
        with_added_tokens(TRAINED.content, {"bos_token": 3}, "x")


def test_named_tokens_that_contradict_the_file():
    words = TextTokenizer.train(["to be [M]"], "wordpiece", 40)
    ends = "cls_token", "sep_token"
    usual = {"cls_token": "[CLS]", "sep_token": {"content": "[SEP]"}, "unk_token": "[UNK]"}
    check_named_tokens(words.content, usual | {"mask_token": "[MASK]"}, ends, "x")
    check_named_tokens(words.content, {"cls_token": "[PAD]", "unk_token": "[PAD]"}, None, "x")
    for name, problem in {
        "cls_token": r"is '\[PAD\]', but texts begin with '\[CLS\]'",
        "sep_token": r"is '\[PAD\]', but texts end with '\[SEP\]'",
        "mask_token": r"must be one of .*, got '\[PAD\]'",
        "unk_token": r"must be '\[UNK\]', as in the vocabulary, got '\[PAD\]'",
    }.items():
        with pytest.raises(ValueError, match=f"^{name} in x {problem}"):
            check_named_tokens(words.content, usual | {name: "[PAD]"}, ends, "x")
    padded = Tokenizer.from_buffer(words.content)
    padded.enable_padding(length=8)  # the tokenizer.json of all-MiniLM-L6-v2 has such an entry
    check_named_tokens(padded.to_str().encode(), usual, ends, "x")
    unigram = Tokenizer(models.Unigram([("a", 0.0), ("<unk>", 0.0)], 1)).to_str().encode()
    with pytest.raises(ValueError, match="unk_token in x must be '<unk>'"):
        check_named_tokens(unigram, {"unk_token": "a"}, ends, "x")
