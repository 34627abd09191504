"""Training pairs with terms: what they carry is in the target, and a translator learns to copy."""

import random

import pytest

from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.glossary import TERM_TAGS, Glossary, is_kept, reads_terms
from keras_transformer.training import terms
from keras_transformer.training.terms import with_terms
from keras_transformer.translate.translator import Translator
from tests.training.made_up import WORDS, train_here

BEGIN, MIDDLE, END = TERM_TAGS


def corpus(count=400):
    """Sentences of sixty frequent words and rarer ones, each translated into upper case."""
    generator = random.Random(0)
    frequent = [f"f{a}{b}" for a in "abcdefghij" for b in "abcdef"]
    rare = [f"r{a}{b}" for a in "abcdefghij" for b in "abcdefghijkl"]
    sentences = []
    for _ in range(count):
        words = generator.choices(frequent, k=6) + generator.choices(rare, k=4)
        generator.shuffle(words)
        sentences.append(words)
    return [(" ".join(x), " ".join(x).upper()) for x in sentences]


def without(source):
    """The source without its terms' translations, and these as pairs."""
    found, words, rest = [], [], source.split()
    while rest:
        word = rest.pop(0)
        if word == BEGIN:
            term, middle, form, end, *rest = rest
            assert (middle, end) == (MIDDLE, END)
            found.append((term, form))
            word = term
        words.append(word)
    return " ".join(words), found


def test_terms_are_words_of_the_target():
    pairs = corpus()
    found = with_terms(pairs, 1.0)
    numbers = []
    for (source, target), (plain, same) in zip(found, pairs, strict=True):
        text, found_terms = without(source)
        assert text == plain and target == same
        assert all(form in target.split() for _, form in found_terms)
        numbers.append(len(found_terms))
    assert max(numbers) == 3 and numbers.count(0) < 60
    every = [term for source, _ in found for term in without(source)[1]]
    assert all(term.startswith("r") for term, _ in every)
    assert sum(form == term.upper() for term, form in every) > 0.9 * len(every)


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_share_of_the_pairs_carry_terms():
    pairs = corpus()
    found = with_terms(pairs, 0.25, seed=1)
    changed = sum(a != b for a, b in zip(found, pairs, strict=True))
    assert 60 < changed < 140
    assert with_terms(pairs, 0.25, seed=1) == found != with_terms(pairs, 0.25, seed=2)
    assert with_terms(pairs, 0.0) == pairs and with_terms([], 0.5) == []


def test_a_glossary_writes_its_terms_in_the_same_way():
    glossary = Glossary({"old dog": ["Köter"], "lamp": ["Leuchte", "Leuchten"]})
    found = glossary.inlined("The Old  dog, a lamp; lamps.")
    assert found == (
        "The <term> Old  dog <is> Köter </term> , a <term> lamp <is> Leuchte </term> ; lamps."
    )
    assert glossary.inlined("A (lamp)") == "A ( <term> lamp <is> Leuchte </term> )"
    with pytest.raises(ValueError, match="source must be text without <is>, got "):
        glossary.inlined("a <is> b")


def test_tags_are_pieces_wherever_a_term_stands():
    glossary = Glossary({"狗": ["Hund"], "dog": ["Hund"]})
    tokenizer = SentencePieceTokenizer.train(
        ["我爱狗。 a dog ."], ["ein Hund"], vocab_size=300, symbols=TERM_TAGS
    )
    tags = [tokenizer.pieces_of("source").index("\u2581" + tag) for tag in TERM_TAGS]
    for text in ("我爱狗。", "(dog).", "guard-dog"):
        for sampling in (0.0, 0.5):
            (ids,) = tokenizer.encode_source([glossary.inlined(text)], sampling=sampling, seed=0)
            assert [x for x in ids if x in tags] == tags


def test_no_term_ends_inside_a_word():
    marked = "नमस्ते"
    pairs = [(f"{marked} {a}", f"hello {b}") for a, b in zip("abcdefgh", "ABCDEFGH", strict=True)]
    others = [(f"x{i} y{i}", f"X{i} Y{i}") for i in range(200)]
    for source, _ in with_terms(pairs + others, 1.0):
        assert marked in source or "x" in source


@pytest.mark.parametrize(
    "pairs,share,message",
    [
        ([("a", "b")], 1.1, r"share must be in \[0, 1\], got 1.1"),
        ([("a", "b")], -0.1, "share must be in"),
        ([("a <term> b", "b")], 0.5, "pairs must be text without <term>"),
        ([("a", "b </term>")], 0.0, "pairs must be text without </term>"),
        ([("a", "b")], "half", "share must be in"),
        ([("a",)], 0.5, "pairs must be pairs of a source and a target"),
    ],
)
def test_bad_input(pairs, share, message):
    with pytest.raises(ValueError, match=message):
        with_terms(pairs, share)


def test_texts_without_words_and_no_texts():
    assert with_terms([("", ""), ("a", " ")], 1.0) == [("", ""), ("a", " ")]
    with pytest.raises(ValueError, match="pairs"):
        with_terms([("a", 3)], 0.5)
    with pytest.raises(ValueError, match="source"):
        Glossary({"a": ["b"]}).inlined(3)


@pytest.mark.once("options of the run: text and files")
def test_a_translator_learns_to_copy_terms(tmp_path, monkeypatch):
    monkeypatch.setattr(terms, "FREQUENT", 1.0)  # the corpus has twenty words
    generator = random.Random(0)
    for name, count in (("train", 1500), ("validation", 20), ("test", 20)):
        lines = []
        for _ in range(count):
            words = generator.choices(WORDS, k=generator.randint(2, 5))
            # Each word has two translations, of which nothing but a term can tell.
            forms = [generator.choice([word.upper(), word.title()]) for word in words]
            lines.append(f"{' '.join(words)}\t{' '.join(forms)}\n")
        (tmp_path / f"{name}.tsv").write_text("".join(lines), "utf-8")
    settings = ["inline_terms=0.8", "subword_sampling=0.0", "epochs=8", "average_last=1"]
    train_here(tmp_path, tmp_path / "run", *settings, "bleu_every=0")
    translator = Translator.load(tmp_path / "run")
    assert reads_terms(translator.tokenizer)
    kept = []
    for word in WORDS:
        for form in (word.upper(), word.title()):
            source = Glossary({word: [form]}).inlined(f"{word} {WORDS[0]}")
            kept.append(is_kept([form], translator.translate([source])[0]))
    assert sum(kept) >= 0.8 * len(kept)  # half of them without the terms
