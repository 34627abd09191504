"""Vocabularies of folders: a text's ids are those of `transformers`."""

import gzip
import json
import os
from pathlib import Path

import pytest
import sentencepiece
import transformers

from keras_transformer.text.text_tokenizer import TextTokenizer

RESIDUES = "L A G V S E R T I D P K Q N F Y M H W C X B U Z O . -".split()
SPECIAL = ["<cls>", "<pad>", "<eos>", "<unk>"]
TEXTS = ["Größe 12½ 犬 don't", "  two  spaces ", "", "a<mask> b <mask>c </s>", "NAÏVE café\u0301"]


def encode(tokenizer, texts):
    """As `transformers` does, where text that spells a special token becomes it."""
    return tokenizer.encode(texts, special=tokenizer.special_names)


def kind(folder, name):
    (folder / "config.json").write_text(json.dumps(dict(model_type=name)))


def test_residues(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, *RESIDUES, "<null_1>", "<mask>"]))
    kind(tmp_path, "esm")
    ours = TextTokenizer.read(tmp_path)
    theirs = transformers.EsmTokenizer.from_pretrained(tmp_path)
    texts = ["MKTVRQERLK", "M K T", "MK<mask>Q", "M1JK", "mk.-", ""]
    assert encode(ours, texts) == [theirs.encode(text) for text in texts]
    assert ours.vocab_size == len(theirs)
    ours.save(tmp_path)
    assert TextTokenizer.read(tmp_path).encode(texts) == ours.encode(texts)


def test_byte_pairs_that_are_framed(tmp_path):
    trained = TextTokenizer.train(["a cab", "a mask"], "bytes", 262)
    pieces = json.loads(trained.content)["model"]
    words = [*SPECIAL, *list(pieces["vocab"])[1:], "<mask>"]
    words[:4] = ["<s>", "<pad>", "</s>", "<unk>"]
    (tmp_path / "vocab.json").write_text(json.dumps({x: i for i, x in enumerate(words)}))
    merges = (x if isinstance(x, str) else " ".join(x) for x in pieces["merges"])
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n")
    kind(tmp_path, "roberta")
    ours = TextTokenizer.read(tmp_path)
    mask = transformers.AddedToken("<mask>", lstrip=True)  # as in the files of RoBERTa's own
    theirs = transformers.RobertaTokenizer.from_pretrained(tmp_path, mask_token=mask)
    assert encode(ours, TEXTS) == [theirs.encode(text) for text in TEXTS]
    ((ids, _, _),) = ours.encode_pairs([("a cab", "a mask")], 20)
    assert ids == theirs.encode("a cab", "a mask")


def test_pieces_of_an_mt5(tmp_path):
    lines = ["the old man loves the dog", "Größe 12½ 犬", "don't", "a cab, a mask", "café"] * 4
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(tmp_path / "spiece"), vocab_size=50,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    kind(tmp_path, "mt5")
    options = {"tokenizer_class": "T5Tokenizer", "extra_ids": 0}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
    ours = TextTokenizer.read(tmp_path)
    theirs = transformers.T5Tokenizer.from_pretrained(tmp_path)
    texts = [*(x for x in TEXTS if "<mask>" not in x), "source: the dog candidate: der Hund"]
    assert encode(ours, texts) == [theirs.encode(text) for text in texts]
    assert ours.vocab_size == len(theirs)


@pytest.mark.parametrize("family", ["xlm-roberta", "camembert"])
def test_sentence_pieces(family, tmp_path):
    lines = ["the old man loves the dog", "Größe 12½ 犬", "don't", "a cab, a mask", "café"] * 4
    for kind_of_pieces in ("unigram", "bpe"):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=str(tmp_path / "sentencepiece.bpe"),
            vocab_size=50, model_type=kind_of_pieces, unk_id=0, bos_id=1, eos_id=2, pad_id=-1,
            minloglevel=2, hard_vocab_limit=False,
        )  # fmt: skip
        if kind_of_pieces == "unigram":
            kind(tmp_path, family)
            ours = TextTokenizer.read(tmp_path)
            mask = transformers.AddedToken("<mask>", lstrip=True)  # as in the released files
            names = {"xlm-roberta": "XLMRobertaTokenizer", "camembert": "CamembertTokenizer"}
            theirs = getattr(transformers, names[family]).from_pretrained(tmp_path, mask_token=mask)
    texts = [*TEXTS, "the dog loves the old man", "Ⅻ ﬁ　x"]
    assert encode(ours, texts) == [theirs.encode(text) for text in texts]
    assert ours.vocab_size == len(theirs)
    assert ours.decode(encode(ours, texts)) == theirs.batch_decode(
        [theirs.encode(text) for text in texts], skip_special_tokens=True
    )
    ((ids, _, _),) = ours.encode_pairs([("a cab", "a mask")], 30)
    assert ids == theirs.encode("a cab", "a mask")
    with pytest.raises(ValueError, match="cannot be read: model_type in .* must be 1, a unigram"):
        TextTokenizer.read(tmp_path)


def test_word_pieces_of_mpnet(tmp_path):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "a", "cab", "mask", "##s", "b", "c", "犬"]
    (tmp_path / "vocab.txt").write_text("\n".join([*pieces, "two", "<mask>"]))
    kind(tmp_path, "mpnet")
    ours = TextTokenizer.read(tmp_path)
    theirs = transformers.MPNetTokenizer.from_pretrained(tmp_path)
    texts = [*TEXTS, "a cab, a mask 犬s"]
    assert encode(ours, texts) == [theirs.encode(text) for text in texts]
    assert ours.vocab_size == len(theirs)
    ((ids, types, _),) = ours.encode_pairs([("a cab", "a mask")], 30)
    assert ids == theirs.encode("a cab", "a mask") and not any(types)


@pytest.mark.once("texts")
def test_sentence_pieces_of_deberta(tmp_path):
    """Ids as those of the SentencePiece model; `transformers` 5.23 leaves its normalization out."""
    lines = ["the old man loves the dog", "Größe 12½ 犬", "don't", "a cab, a mask", "café"] * 4
    special = dict(pad="[PAD]", bos="[CLS]", eos="[SEP]", unk="[UNK]")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(tmp_path / "spm"), vocab_size=50,
        minloglevel=2, hard_vocab_limit=False,
        **{f"{name}_id": i for i, name in enumerate(special)},
        **{f"{name}_piece": piece for name, piece in special.items()},
    )  # fmt: skip
    kind(tmp_path, "deberta-v2")
    ours = TextTokenizer.read(tmp_path)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    texts = [TEXTS[0], TEXTS[1], TEXTS[2], TEXTS[4], "the dog loves the old man", "Ⅻ ﬁ　x\ta\nb"]
    assert ours.encode(texts) == [[1, *pieces.encode(text), 2] for text in texts]
    theirs = transformers.DebertaV2Tokenizer.from_pretrained(tmp_path)
    plain = ["Größe 12 犬 don't", "", "a[MASK] b [MASK]c [SEP]", "the dog loves  the old man "]
    assert encode(ours, plain) == [theirs.encode(text) for text in plain]
    assert ours.vocab_size == len(theirs) == len(pieces) + 1
    ((ids, types, _),) = ours.encode_pairs([("a cab", "a mask")], 30)
    expected = theirs("a cab", "a mask")
    assert (ids, types) == (expected["input_ids"], expected["token_type_ids"])
    assert ours.decode(ours.encode(texts[4:5])) == texts[4:5]
    options = tmp_path / "tokenizer_config.json"
    options.write_text(json.dumps(dict(do_lower_case=True)))
    assert TextTokenizer.read(tmp_path).encode(["THE DOG"]) == ours.encode(["the dog"])
    options.write_text(json.dumps(dict(split_by_punct=True)))
    with pytest.raises(ValueError, match="split_by_punct in .* is True, which is not supported"):
        TextTokenizer.read(tmp_path)


@pytest.mark.skipif("KT_DATA" not in os.environ, reason="KT_DATA is not set")
@pytest.mark.parametrize("case", ["uncased", "cased"])
def test_word_pieces_of_real_lines(case, tmp_path):
    data = Path(os.environ["KT_DATA"])
    vocabulary = data / "tokenizers" / f"bert-base-{case}" / "vocab.txt.gz"
    (tmp_path / "vocab.txt").write_bytes(gzip.decompress(vocabulary.read_bytes()))
    options = dict(do_lower_case=case == "uncased")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
    kind(tmp_path, "bert")
    lines = list(TEXTS)
    for name in (
        "sst2/test.tsv.gz", "multi30k/val.de.gz", "multi30k/val.cs.gz", "enja-small/dev.ja.gz",
        "wikitext-2/valid.txt.gz",
    ):  # fmt: skip
        text = gzip.decompress((data / name).read_bytes()).decode()
        lines += text.split("\n")[:300]
    ours = TextTokenizer.read(tmp_path)
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path, **options)
    assert ours.encode(lines) == theirs(lines)["input_ids"]
    pairs = list(zip(lines[::2], lines[1::2], strict=False))[:200]
    found = [(ids, types) for ids, types, _ in ours.encode_pairs(pairs, 512)]
    expected = theirs([a for a, _ in pairs], [b for _, b in pairs])
    expected = expected["input_ids"], expected["token_type_ids"]
    assert found == list(zip(*expected, strict=True))


def test_a_broken_vocabulary(tmp_path):
    (tmp_path / "vocab.json").write_text("{")
    (tmp_path / "merges.txt").write_text("")
    with pytest.raises(ValueError, match="the vocabulary in .* cannot be read"):
        TextTokenizer.read(tmp_path)


def test_ids_with_large_gaps(tmp_path):
    (tmp_path / "merges.txt").write_text("")
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 2**31}))
    with pytest.raises(
        ValueError, match="ids of the vocabulary in .* below 100,00., got 2147483648"
    ):
        TextTokenizer.read(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 90_000}))
    assert TextTokenizer.read(tmp_path).encode(["ab"], framed=False) == [[0, 90_000]]
