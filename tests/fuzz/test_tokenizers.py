"""Foreign tokenizers: saved folders, Hugging Face's folders and vocabulary files, each damaged."""

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.text import (
    KerasHubTokenizer,
    SentencePieceTokenizer,
    WordTokenizer,
    load_tokenizer,
    read_tokenizer,
)
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.fuzz.mutations import altered, damaged, json_files
from tests.fuzz.outcome import fuzz, outcome
from tests.pretrained_files import marian_files, tokenizer_files

pytestmark = pytest.mark.once("no tensors")

TEXTS = ["the old man loves the dog", "a cab, a mask", "don't", "Größe 12½ 犬"] * 3
KINDS = ["marian", "m2m_100", "nllb", "mbart", "t5", "madlad", "bart"]
ENCODERS = ["bert", "roberta", "gpt2", "esm", "tokenizer"]
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] <s> <pad> </s> <unk> <mask> <cls> <eos> a b ##a A L G"
HUB = {
    "module": "keras_hub.tokenizers",
    "class_name": "ByteTokenizer",
    "config": {"dtype": "int32", "lowercase": True},
    "registered_name": None,
}


class Folders(dict):
    """A dict that failures show in a word."""

    def __repr__(self):
        return "folders"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folders with tokenizers of each kind: name -> (folder, config.json)."""
    found = Folders()
    for name in (*KINDS, *ENCODERS, "pieces", "words", "saved marian", "saved t5", "hub"):
        folder = tmp_path_factory.mktemp("tokenizer")
        found[name] = folder, written(name, folder)
    return found


def written(name, folder):
    """Write a tokenizer of a kind; return the fields of its model."""
    if name == "marian":
        marian_files(folder, TEXTS, TEXTS, 40, separate=True)
        return dict(model_type="marian", vocab_size=40)
    if name in KINDS:
        return tokenizer_files(name, folder, TEXTS, 60)
    if name == "pieces":
        SentencePieceTokenizer.train(TEXTS, TEXTS, vocab_size=300).save(folder)
    elif name == "words":
        WordTokenizer.train(TEXTS, TEXTS).save(folder)
    elif name == "saved marian":
        written("marian", folder)
        read_tokenizer(folder, dict(model_type="marian")).save(folder)
    elif name == "saved t5":
        read_tokenizer(folder, written("t5", folder)).save(folder)
    elif name == "hub":
        facts = dict(shared=True, tokenizers=[HUB], fingerprint="", pad_id=0, unk_id=1)
        facts |= {"class": KerasHubTokenizer.__name__, "bos_id": 2, "eos_id": 3}
        (folder / "tokenizer.json").write_text(json.dumps(facts))
        (folder / "shared").mkdir()
    elif name == "tokenizer":
        TextTokenizer.train(TEXTS, "wordpiece", 90).save(folder)
    elif name in ("bert", "esm"):
        (folder / "vocab.txt").write_text("\n".join(PIECES.split()))
    else:
        pieces = dict(zip(PIECES.split(), range(30), strict=False)) | {"Ġ": 19, "ab": 20}
        (folder / "vocab.json").write_text(json.dumps(pieces))
        (folder / "merges.txt").write_text("#version: 0.2\na b\n")
        (folder / "added_tokens.json").write_text('{"<x>": 21, "<y>": 22}')
    if name in ENCODERS:
        options = dict(do_lower_case=True, strip_accents=None, add_prefix_space=False)
        (folder / "tokenizer_config.json").write_text(json.dumps(options))
        (folder / "config.json").write_text(json.dumps(dict(model_type=name, vocab_size=90)))
    return dict(model_type=name, vocab_size=90)


def changed(data, source, folder):
    """Write a copy of a folder with one file changed or left out."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    files = sorted(x for x in folder.rglob("*") if x.is_file())
    path = data.draw(st.sampled_from(files))
    content = path.read_bytes()
    if data.draw(st.integers(0, 9)) == 0:
        path.unlink()
    elif path.suffix == ".json":
        path.write_bytes(data.draw(json_files(json.loads(content))))
    else:
        path.write_bytes(data.draw(damaged(content)))
    return folder


def used(read, *arguments):
    """Read a tokenizer and use it: ids of a text are in its vocabulary."""
    tokenizer = read(*arguments)
    if isinstance(tokenizer, TextTokenizer):
        tokenizer.decode(tokenizer.encode(["a dog", ""]))
        return tokenizer
    if tokenizer.source_languages and tokenizer.target_languages:
        tokenizer = tokenizer.between(tokenizer.source_languages[0], tokenizer.target_languages[0])
    assert max(max(row, default=0) for row in tokenizer.encode_source(["a dog", ""])) < 1 << 31
    return tokenizer


@fuzz(120, share=3)
@given(st.data(), st.sampled_from(["pieces", "words", "saved marian", "saved t5", "hub"]))
def test_saved_folders(room, whole, data, name):
    folder = changed(data, whole[name][0], room / "tokenizer")
    outcome("tokenizers", used, load_tokenizer, folder)


@fuzz(160, share=3)
@given(st.data(), st.sampled_from(KINDS))
def test_folders_of_translators(room, whole, data, name):
    source, config = whole[name]
    folder = changed(data, source, room / "tokenizer")
    if data.draw(st.integers(0, 3)) == 0:
        config = data.draw(altered(config))
        config = config if isinstance(config, dict) else {}
    outcome("tokenizers", used, read_tokenizer, folder, config)


@fuzz(160, share=3)
@given(st.data(), st.sampled_from(ENCODERS))
def test_folders_of_encoders(room, whole, data, name):
    folder = changed(data, whole[name][0], room / "tokenizer")
    outcome("tokenizers", used, TextTokenizer.read, folder)
