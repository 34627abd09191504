"""Tokenizers of GGUF files: the ids of SentencePiece, of `transformers`, of published rules."""

import io
import json
import random
import types

import gguf
import pytest
import sentencepiece
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.hub.gguf import tokens
from keras_transformer.hub.gguf.tokens import RULES, TABLE, tokenizer_of
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.hub.gguf.files import BOS, EOS, byte_facts

TEXTS = [
    "To be, or not to be: that is the question.", "Die Größe der Häuser  in 1969, 12½ m.",
    "def f(x):\n    return  x + 1\n\n\n", "犬と猫 の話。 Ελλάδα, привет!", "'Tis I'll WE'RE don't",
]  # fmt: skip
SPECIAL = ["<start>", "<end>"]


def file_of(facts, architecture="llama"):
    facts = {"general.architecture": architecture} | facts
    return types.SimpleNamespace(facts=facts, path="x.gguf")


def tokenizer(facts, architecture="llama"):
    content, _ = tokenizer_of(file_of(facts, architecture))
    return TextTokenizer(json.dumps(content).encode(), content["post_processor"] is not None)


def odd_texts(count=700):
    rng = random.Random(0)
    alphabets = [
        "abc XYZ", "  \t\n\u00a0", "0123456789 .,", "½²Ⅷ٣५", "'s't're'VE I'll ", "äöüß ",
        "漢字かな交じり", "🐕🏽👩‍👧🇩🇪", "العربية ", "\u0301e\u200b", "{}()<>|_#@=\\", "▁ ▁",
    ]  # fmt: skip
    texts = []
    for _ in range(count):
        letters = "".join(rng.sample(alphabets, rng.randint(1, 3)))
        texts.append("".join(rng.choice(letters) for _ in range(rng.randint(1, 30))))
    return texts + TEXTS + [f" {text}  " for text in TEXTS] + [""]


@pytest.fixture(scope="module", params=[True, False], ids=["spaced", "plain"])
def pieces(request):
    """A SentencePiece model like LLaMA's, or like Gemma's, and the metadata of its file."""
    model = io.BytesIO()
    spaces = [] if request.param else ["▁" * i for i in range(2, 6)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 3),
        model_writer=model,
        vocab_size=480,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        add_dummy_prefix=request.param,
        remove_extra_whitespaces=False,
        control_symbols=SPECIAL,
        user_defined_symbols=spaces,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = range(len(theirs))
    kinds = {2: theirs.is_unknown, 3: theirs.is_control, 5: theirs.is_unused, 6: theirs.is_byte}
    kind_of = {i: next((x for x, fits in kinds.items() if fits(i)), 1) for i in ids}
    facts = {
        "tokenizer.ggml.model": "llama",
        # As llama.cpp's converter does, with real spaces and a low score.
        "tokenizer.ggml.tokens": [
            theirs.id_to_piece(i).replace("▁", " ")
            if theirs.id_to_piece(i) in spaces
            else theirs.id_to_piece(i)
            for i in ids
        ],
        "tokenizer.ggml.scores": [
            -1000.0 if theirs.id_to_piece(i) in spaces else theirs.get_score(i) for i in ids
        ],
        "tokenizer.ggml.token_type": [
            4 if theirs.id_to_piece(i) in spaces else kind_of[i] for i in ids
        ],
        "tokenizer.ggml.add_space_prefix": request.param,
        "tokenizer.ggml.bos_token_id": theirs.bos_id(),
        "tokenizer.ggml.eos_token_id": theirs.eos_id(),
        "tokenizer.ggml.unknown_token_id": theirs.unk_id(),
    }
    return theirs, facts


def test_the_ids_of_sentencepiece(pieces):
    theirs, facts = pieces
    ours = tokenizer(facts, "llama" if facts["tokenizer.ggml.add_space_prefix"] else "gemma2")
    texts = odd_texts()
    if not facts["tokenizer.ggml.add_space_prefix"]:
        # Its pieces of several spaces are real spaces in the file, so this sign stays single.
        texts = [text for text in texts if "▁" not in text]
    expected = [[theirs.bos_id(), *theirs.encode(text)] for text in texts]
    assert ours.encode(texts) == expected
    decoded = [text.replace("▁", " ") for text in texts]
    assert ours.decode(ours.encode(texts)) == decoded


def test_text_that_spells_a_special_token(pieces):
    """It is plain text, unless it is allowed; then a part of the text begins after it."""
    theirs, facts = pieces
    ours = tokenizer(facts)
    (ids,) = ours.encode(["be<end>or"], framed=False)
    assert ids == theirs.encode("be<end>or")
    (ids,) = ours.encode(["be<end>or"], framed=False, special=SPECIAL)
    assert ids == [*theirs.encode("be"), theirs.piece_to_id("<end>"), *theirs.encode("or")]
    assert ours.decode([ids])[0].replace(" ", "") == "beor"


def test_special_tokens_of_a_phi3_swallow_spaces(pieces):
    theirs, facts = pieces
    (ids,) = tokenizer(facts, "phi3").encode(["<start>\nbe"], framed=False, special=SPECIAL)
    assert ids == [theirs.piece_to_id("<start>"), *theirs.encode("be")]


PUBLISHED = {  # the `pre_tokenizer` of published files, made with the library
    "gpt-2": [tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "smollm": [
        tokenizers.pre_tokenizers.Digits(individual_digits=True),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
    ],
}
PUBLISHED["refact"] = PUBLISHED["smollm"]  # of Granite


@pytest.mark.parametrize("name", RULES)
def test_the_splitting_of_transformers_or_published_rules(name):
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    library = tokenizers.pre_tokenizers
    steps = PUBLISHED.get(name) or [
        library.Split(tokenizers.Regex(GGUF_PRE_TOKENIZER_SPLITS[name]), "isolated"),
        library.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    content, _ = tokenizer_of(file_of(byte_facts(name)))
    ours = tokenizers.Tokenizer.from_str(json.dumps(content)).pre_tokenizer
    for text in odd_texts():
        assert ours.pre_tokenize_str(text) == library.Sequence(steps).pre_tokenize_str(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_there_and_back(text):
    assert LLAMA3.decode(LLAMA3.encode([text])) == [text]
    assert DIGITS.decode(DIGITS.encode([text])) == [text]


LLAMA3, DIGITS = tokenizer(byte_facts("llama-bpe")), tokenizer(byte_facts("smollm"))


def test_bos_and_eos():
    """The file's setting comes first; without one, llama.cpp's for the rule."""
    facts = byte_facts("smollm")
    plain = tokenizer(facts).encode(["be"])[0]
    assert LLAMA3.encode(["be"])[0] == [BOS, *plain]
    no_bos = byte_facts("llama-bpe") | {"tokenizer.ggml.add_bos_token": False}
    assert tokenizer(no_bos).encode(["be"])[0] == plain
    both = dict.fromkeys(("tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token"), True)
    assert tokenizer(facts | both).encode(["be"])[0] == [BOS, *plain, EOS]
    (ids, kinds, _) = tokenizer(facts | both).encode_pairs([("be", "be")], 99)[0]
    assert ids == [BOS, *plain, EOS, BOS, *plain, EOS] and {*kinds} == {0}


def test_an_ordinary_piece_as_pad_token():
    """Some files name "!" for padding, which is text nevertheless."""
    facts = byte_facts("smollm")
    i = facts["tokenizer.ggml.tokens"].index("!")
    ours = tokenizer(facts | {"tokenizer.ggml.padding_token_id": i})
    assert ours.decode(ours.encode(["be!"])) == ["be!"]
    _, options = tokenizer_of(file_of(facts | {"tokenizer.ggml.padding_token_id": i}))
    assert "pad_token" not in options and options["bos_token"] == "<s>"


def test_tokens_that_users_defined_are_text():
    facts = byte_facts("qwen2")
    facts["tokenizer.ggml.token_type"][297] = 4
    ours = tokenizer(facts)
    assert ours.encode(["be[PAD297]"])[0][-1] == 297
    assert ours.decode([[297]]) == ["[PAD297]"]
    assert ours.encode(["e\u0301"]) == ours.encode(["é"])  # Qwen's normalizer


def test_each_known_key_is_in_one_column():
    keys = {x for x in vars(gguf.Keys.Tokenizer).values() if isinstance(x, str)} - {"{name}"}
    keys = {x for x in keys if x.startswith("tokenizer.") and "{name}" not in x}
    columns = [{*TABLE.read}, {*TABLE.harmless}, {*TABLE.refused}]
    assert keys <= set().union(*columns)
    assert sum(map(len, columns)) == len(set().union(*columns))


def facts_with(**changes):
    return byte_facts() | {f"tokenizer.ggml.{x}": y for x, y in changes.items()}


@pytest.mark.parametrize(
    "facts,message",
    [
        (facts_with(model="bert"), "tokenizer.ggml.model in x.gguf must be one of .*'bert'"),
        (facts_with(pre="falcon"), "tokenizer.ggml.pre in x.gguf must be one of .*'falcon'"),
        (facts_with(pre="default"), "tokenizer.ggml.pre in x.gguf must be one of .*'default'"),
        (facts_with(tokens=[]), "tokenizer.ggml.tokens in x.gguf must be a list of texts"),
        (facts_with(tokens=["a", "b", "a"]), "tokens in x.gguf has 'a' twice"),
        (facts_with(token_type=[1]), "token_type in x.gguf must be one a token, got 1"),
        (facts_with(bos_token_id=300), "bos_token_id in x.gguf must be an id below 300, got 300"),
        (facts_with(merges=["a"]), r"merges in x.gguf must be pairs of pieces, got \['a'\]"),
        (facts_with(model="llama"), "scores in x.gguf must be one number a token, got 0"),
        (facts_with(model="llama", scores=[0.0] * 300), "scores in x.gguf are all equal"),
        (facts_with(remove_extra_whitespaces=True), "remove_extra_whitespaces in x.gguf is True"),
        (facts_with(precompiled_charsmap=[1]), "precompiled_charsmap in x.gguf is"),
        (
            facts_with(add_bos_token=True, bos_token_id=None),
            "bos_token_id in x.gguf must be a token id, got None",
        ),
    ],
)
def test_what_is_refused(facts, message):
    with pytest.raises(ValueError, match=message):
        tokenizer_of(file_of(facts))


def test_the_default_rule_of_a_gpt2():
    facts = byte_facts()
    named = tokenizer_of(file_of(facts, "gpt2"))
    assert tokenizer_of(file_of(facts | {"tokenizer.ggml.pre": "default"}, "gpt2")) == named
    facts.pop("tokenizer.ggml.pre")
    assert tokenizer_of(file_of(facts, "gpt2")) == named
    assert tokens.PREFIX == "tokenizer.ggml."
