"""Texts that spell special tokens: spelled out, or the tokens, as `transformers` does either."""

import json

import pytest
import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from keras_transformer.text.pieces import FastPieces
from keras_transformer.text.special_tokens import Quotation, renamed, replaced
from keras_transformer.text.text_tokenizer import TextTokenizer

LETTERS = [*"abdeghilmnorstw", "the", "▁", "▁the", "▁do"]
SPECIAL = ["<unk>", "<s>", "</s>", "<pad>"]
MASK = tokenizers.AddedToken("<mask>", lstrip=True, special=True)


def _llama(normalized):
    """A tokenizer like LLaMA's, whose first word alone, or each text, begins with a space."""
    vocabulary = {x: i for i, x in enumerate([*SPECIAL, *LETTERS, "th", *"</>", "▁d"])}
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "d"), ("▁d", "o")]
    made = tokenizers.Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True))
    if normalized:
        steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        made.normalizer = normalizers.Sequence(steps)
    else:
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    made.decoder = decoders.Metaspace()
    made.add_special_tokens(SPECIAL)
    return _framed(made, "<s>", None)


def _unigram():
    pieces = [(x, 0.0) for x in SPECIAL] + [(x, -5.0 - i) for i, x in enumerate(LETTERS)]
    made = tokenizers.Tokenizer(models.Unigram(pieces, 0))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    made.decoder = decoders.Metaspace()
    made.add_special_tokens(SPECIAL)
    made.add_special_tokens([MASK])
    return _framed(made, "<s>", "</s>")


def _framed(made, begin, end):
    ends = [(x, made.token_to_id(x)) for x in (begin, end) if x]
    single = " ".join(x for x in (begin, "$A", end) if x)
    made.post_processor = processors.TemplateProcessing(single=single, special_tokens=ends)
    return TextTokenizer(made.to_str().encode(), True)


def _bytes():
    """Byte pairs that would merge to a special token, as where the training text had it."""
    trained = TextTokenizer.train(["sees"] * 9, "bytes", 290)
    assert "sees" in trained.pieces()
    return trained.with_special_tokens(["sees", "<|end|>"])


TOKENIZERS = {
    "wordpiece": lambda: TextTokenizer.train(["the old man [SEP], the dog"], "wordpiece", 60),
    "bytes": _bytes,
    "characters": lambda: TextTokenizer.train(["the old<|endoftext|> dog"], "characters"),
    "llama": lambda: _llama(normalized=False),
    "llama 1": lambda: _llama(normalized=True),
    "unigram": _unigram,
}


def theirs(tokenizer):
    made = tokenizers.Tokenizer.from_str(tokenizer.content.decode())
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_text_that_spells_special_tokens(kind):
    ours = TOKENIZERS[kind]()
    other = theirs(ours)
    plain = ["the dog", " the  old dog ", "", "\n"] if kind != "characters" else ["the old dog", ""]
    assert ours.encode(plain) == other(plain)["input_ids"]
    special = sorted(ours.special_names, key=ours.pieces().get)
    hostile = [f"the{x} dog {y}{x} the {x}" for x in special for y in special]
    hostile += ["".join(special)]
    asked = ours.encode(hostile, special=ours.special_names)
    assert asked == other(hostile)["input_ids"]
    found = ours.encode(hostile, framed=False)
    tokens = {ours.id_of(x) for x in special} - {ours.id_of("[UNK]"), ours.id_of("<unk>")}
    tokens -= {0} if kind == "characters" else set()  # its unknown characters
    assert not tokens & {i for row in found for i in row}
    if kind not in ("unigram", "bytes"):  # whose models find the pieces of the tokens there
        options = dict(split_special_tokens=True, add_special_tokens=False)
        other._tokenizer.encode_special_tokens = True
        assert found == other(hostile, **options)["input_ids"]
    (one,) = ours.encode([f"the {special[0]} {special[1 % len(special)]}"], special=special[:1])
    (both,) = ours.encode([f"the {special[0]} {special[1 % len(special)]}"], special=special)
    assert one.count(ours.id_of(special[0])) >= 1 and (len(special) < 2 or one != both)


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_words_and_pairs(kind):
    ours = TOKENIZERS[kind]()
    end = ours.id_of("[SEP]" if kind == "wordpiece" else "</s>")
    ((ids, _),) = ours.encode_words([["the", "[SEP]", "</s>", "dog"]])
    assert ids.count(end) == 1
    if kind == "wordpiece":
        ((ids, _, places),) = ours.encode_pairs([("the [SEP]", "dog [SEP] the")], 40)
        assert ids.count(end) == 2 and places[-2] == (10, 13)


def test_pieces_of_a_vocabulary():
    ours = FastPieces(_unigram().content)
    assert not {1, 2, 3} & set(ours.encode("the</s> <s> <pad>"))
    assert ours.decode([1, *ours.encode("the dog"), 2]) == "the do g".replace(" g", "g")


def test_names():
    content, names = renamed(_unigram().content)
    assert [*names] == [*SPECIAL, "<mask>"]
    assert not any(token in content.decode() for token in names.values() if token in SPECIAL)
    assert replaced("a<s></s>", names) == f"a{names['<s>']}{names['</s>']}"
    longest = replaced("<|a|>", {"<|": "1", "<|a|>": "2"})
    assert longest == "2"


def test_quotations():
    quotation = Quotation({"<s>": "NAME"})
    value = {"content": "a<s>b", "calls": [{"<s>": ("<s>", 3, None)}]}
    quoted = json.dumps(quotation.quoted(value), ensure_ascii=False)
    assert "<s>" not in quoted
    assert quotation.unquoted(f"<s>{quoted}<s>") == f"NAME{json.dumps(value)}NAME"
