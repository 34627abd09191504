"""Cut texts, words and their first ids, as the tokenizers of `transformers` have them."""

import json

import pytest
import transformers
from tokenizers import SentencePieceUnigramTokenizer, processors

from keras_transformer.text.text_tokenizer import TextTokenizer

TEXTS = ["Ann Smith lives in Rome, near Rome.", "Rome is old; in Rome lives Ann.", "日本 is far"]
WORDS = [["Ann", "lives", "in", "Rome", "."], ["Rome", "日本", "Ann", "Smith"], ["old"]]
KINDS = ["bert", "roberta", "roberta_spaced", "xlm_roberta", "albert"]


def folder_of(kind, folder):
    """Write the `tokenizer.json` of a family; return the tokenizer of `transformers`."""
    folder.mkdir()
    if kind == "bert":
        TextTokenizer.train(TEXTS * 4, "wordpiece", 90, lowercase=False).save(folder)
        names = dict(cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]")
    elif kind.startswith("roberta"):
        spec = json.loads(TextTokenizer.train(TEXTS * 4, "bytes", 320).content)
        spec["pre_tokenizer"]["add_prefix_space"] = spaced = kind == "roberta_spaced"
        size = len(spec["model"]["vocab"])
        ids = {"<s>": size, "</s>": size + 1}
        spec["model"]["vocab"] |= ids
        spec["added_tokens"] += [
            spec["added_tokens"][0] | {"id": i, "content": name} for name, i in ids.items()
        ]
        ends = dict(cls=["<s>", ids["<s>"]], sep=["</s>", ids["</s>"]])
        more = dict(type="RobertaProcessing", trim_offsets=True, add_prefix_space=spaced)
        spec["post_processor"] = ends | more
        (folder / "tokenizer.json").write_text(json.dumps(spec))
        names = dict(cls_token="<s>", sep_token="</s>", pad_token="<s>")
    else:
        special = ["<pad>", "<unk>", "[CLS]", "[SEP]"]
        one = SentencePieceUnigramTokenizer()
        options = dict(vocab_size=100, unk_token="<unk>", show_progress=False)
        one.train_from_iterator(TEXTS * 4, special_tokens=special, **options)
        ids = {name: one.token_to_id(name) for name in ("[CLS]", "[SEP]")}
        second = "[SEP] $B [SEP]" if kind == "xlm_roberta" else "$B:1 [SEP]:1"
        one._tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair=f"[CLS] $A [SEP] {second}", special_tokens=[*ids.items()]
        )
        (folder / "tokenizer.json").write_text(one.to_str())
        names = dict(cls_token="[CLS]", sep_token="[SEP]", pad_token="<pad>")
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), **names
    )


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers") / request.param
    return folder_of(request.param, folder), TextTokenizer.read(folder)


def spaced(theirs):
    """The tokenizer of `transformers` with `add_prefix_space=True`."""
    backend = theirs.backend_tokenizer
    state = json.loads(backend.to_str())
    if state["pre_tokenizer"]["type"] == "ByteLevel":
        state["pre_tokenizer"]["add_prefix_space"] = True
    names = dict(cls_token=theirs.cls_token, sep_token=theirs.sep_token, pad_token=theirs.pad_token)
    make = transformers.PreTrainedTokenizerFast
    return make(tokenizer_object=type(backend).from_str(json.dumps(state)), **names)


def firsts(encoding, row, count):
    owners = encoding.word_ids(row)
    return [owners.index(i) for i in range(count)]


@pytest.mark.parametrize("limit", [3, 5, 8, 11, 60])
def test_a_text_is_cut_before_its_last_special_token(both, limit):
    theirs, ours = both
    expected = theirs(TEXTS[:3], truncation=True, max_length=limit)["input_ids"]
    assert ours.encode(TEXTS[:3], max_length=limit) == expected
    (ids, _), *_ = ours.encode_words(WORDS, limit)
    assert (
        ids
        == spaced(theirs)(WORDS[:1], is_split_into_words=True, truncation=True, max_length=limit)[
            "input_ids"
        ][0]
    )


@pytest.mark.parametrize("limit", [6, 9, 14, 60])
def test_of_a_pair_the_longer_text_is_cut(both, limit):
    theirs, ours = both
    pairs = [(TEXTS[0], "Ann"), ("Rome", TEXTS[1]), (TEXTS[0], TEXTS[1])]
    expected = theirs(pairs, truncation=True, max_length=limit, return_token_type_ids=True)
    found = ours.encode_pairs(pairs, limit, "longest_first")
    assert [x[0] for x in found] == expected["input_ids"]
    assert [x[1] for x in found] == expected["token_type_ids"]


def test_words_are_encoded_with_the_space_before_them(both):
    theirs, ours = both
    expected = spaced(theirs)(WORDS, is_split_into_words=True)
    found = ours.encode_words(WORDS)
    assert [ids for ids, _ in found] == expected["input_ids"]
    assert [x for _, x in found] == [firsts(expected, i, len(x)) for i, x in enumerate(WORDS)]
    plain = theirs.backend_tokenizer.encode_batch(WORDS, is_pretokenized=True)
    assert [ids for ids, _ in ours.encode_words(WORDS, spaced=False)] == [x.ids for x in plain]


def test_words_of_a_text_are_encoded_as_the_text_is(both):
    theirs, ours = both
    texts = [" ".join(words) for words in WORDS]
    places = []
    for text, words in zip(texts, WORDS, strict=True):
        starts = [text.index(word) for word in words]
        places.append([(x, x + len(word)) for x, word in zip(starts, words, strict=True)])
    expected = theirs(texts)
    found = ours.encode_places(texts, places)
    assert [ids for ids, _ in found] == expected["input_ids"]
    # RoBERTa's has no space before the first word, which may be of more pieces than with one.
    for (ids, starts), (spaced_ids, others) in zip(found, ours.encode_words(WORDS), strict=True):
        assert starts == [1, *(x + len(ids) - len(spaced_ids) for x in others[1:])]


def test_words_that_are_cut_off(both):
    _, ours = both
    (ids, starts), *_ = ours.encode_words(WORDS)
    limit = starts[3] + 1
    ((cut_ids, cut_starts),) = ours.encode_words(WORDS[:1], limit)
    assert cut_ids == ids[: limit - 1] + ids[-1:]
    assert cut_starts == [*starts[:3], limit, limit]
    with pytest.raises(ValueError, match="max_length must be .* at least 2, got 1"):
        ours.encode(TEXTS, max_length=1)
