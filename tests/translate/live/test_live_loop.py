"""Live translation: what is written stays, and the whole is a translation of the whole."""

from types import SimpleNamespace

import pytest

from keras_transformer import ensemble
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.live import (
    AlignAtt,
    LocalAgreement,
    WaitK,
    continue_translation,
    policy_named,
    translate_live,
)
from keras_transformer.translate.translator import Translator
from tests.small_translator import SHORT, TEXTS, make


class Scripted:
    """A translator that gives prepared drafts, and records what it is asked."""

    def __init__(self, translator, drafts):
        self.tokenizer, self.config, self.options = (
            translator.tokenizer,
            translator.config,
            translator.options,
        )
        self.drafts, self.asked = iter(drafts), []

    def hypotheses(self, request, search):
        self.asked.append((request.texts[0], request.prefixes[0]))
        return [[Hypothesis(next(self.drafts), 0.0)]]


def texts_of(commits):
    return [(x.text, x.words, x.num_read, x.ends_sentence) for x in commits]


@pytest.mark.once("text: no tensor is read")
def test_local_agreement_by_hand(translator):
    drafts = ["Das.", "Der alte Mann", "Der alte Hund schläft.", "Der alte Hund, der schläft."]
    scripted = Scripted(translator, drafts)
    commits = translate_live(scripted, ["one", "two", "six", "ten."], LocalAgreement(2))
    assert texts_of(commits) == [
        ("Der alte", ["Der", "alte"], 3, False),
        (" Hund, der schläft.", ["Hund,", "der", "schläft."], 4, True),
    ]
    sources = ["one", "one two", "one two six", "one two six ten."]
    assert scripted.asked == list(zip(sources, ["", "", "", "Der alte"], strict=True))


@pytest.mark.once("text: no tensor is read")
def test_wait_k_by_hand(translator):
    """Marks at the end of a draft wait; what is written gets no other letters, but marks."""
    drafts = ["Ich.", "Ich denke ja.", "Ich denken, ja?", "Ja.", "Ja."]
    scripted = Scripted(translator, drafts)
    commits = translate_live(scripted, ["one", "two", "six?", "ten", ""], WaitK(1))
    assert texts_of(commits) == [
        ("Ich", ["Ich"], 1, False),
        (" denke", ["denke"], 2, False),
        (" ja?", ["ja?"], 3, True),
        ("Ja", ["Ja"], 4, False),
        (".", [], 4, True),
    ]
    assert [x[1] for x in scripted.asked] == ["", "Ich", "Ich denke", "", "Ja"]


@pytest.mark.parametrize("name", ["wait-k", "align-att", "local-agreement"])
def test_what_is_written_stays(translator, name):
    """The parts make one text, in order; without a pause, it is the usual translation."""
    policy = policy_named(name)
    for text in TEXTS[2:4]:
        commits = list(translate_live(translator, text.split(), policy, **SHORT))
        words = [word for commit in commits for word in commit.words]
        assert [x.ends_sentence for x in commits] == [False] * (len(commits) - 1) + [True]
        assert "".join(x.text for x in commits).split() == words
        reads = [x.num_read for x in commits]
        assert reads == sorted(reads) and reads[-1] == len(text.split())
        if name == "wait-k":
            for i, commit in enumerate(commits[:-1]):
                assert sum(len(x.words) for x in commits[: i + 1]) <= commit.num_read - policy.k + 1
        (whole,) = translate_live(translator, [f"{text}\n"], policy, **SHORT)
        assert whole.text == translator.translate([text], beam_size=1, **SHORT)[0]


@pytest.mark.once("text: no tensor is read")
def test_sentences_are_translated_one_by_one(translator):
    scripted = Scripted(translator, ["A B.", "C D", "E"])
    commits = translate_live(scripted, ["one two. six", "\n\n", "ten"], WaitK(5))
    assert texts_of(commits) == [
        ("A B.", ["A", "B."], 2, True),
        ("C D", ["C", "D"], 3, True),
        ("E", ["E"], 4, True),
    ]
    assert scripted.asked == [("one two.", ""), ("six", ""), ("ten", "")]
    assert list(translate_live(scripted, ["", "\n"])) == []


@pytest.mark.once("text: no tensor is read")
def test_a_sentence_without_an_end_is_ended(translator):
    half = translator.config.max_length // 2
    scripted = Scripted(translator, ["A"] * 9)
    commits = list(translate_live(scripted, ["one"] * 3 * half, WaitK(4 * half)))
    assert len(commits) >= 3 and all(x.ends_sentence for x in commits)


@pytest.mark.once("CTranslate2 and PyTorch: the engine's own tests compare more")
def test_ctranslate2_writes_the_same(translator, tmp_path):
    pytest.importorskip("ctranslate2")
    folder = tmp_path / "saved"
    translator.save(folder)
    other = Translator.load(folder, engine="ctranslate2")
    for policy in (WaitK(1), AlignAtt(1), LocalAgreement()):
        expected = texts_of(translate_live(translator, TEXTS[2].split(), policy, **SHORT))
        assert texts_of(translate_live(other, TEXTS[2].split(), policy, **SHORT)) == expected


@pytest.mark.once("text: no tensor is read")
def test_a_step_for_callers_with_their_own_state(translator):
    scripted = Scripted(translator, ["Ich denke.", "Ich denke, ja", "Ich denke, ja."])
    policy = WaitK(1)
    assert continue_translation(scripted, "one", "", policy) == "Ich"
    assert continue_translation(scripted, "one", "Ich", policy) == ""
    assert continue_translation(scripted, "one two six", "Ich denke", policy) == ", ja"
    assert continue_translation(scripted, "one two", "Ich denke, ja", policy, True) == "."
    assert continue_translation(scripted, " ", "", policy, True) == ""
    with pytest.raises(ValueError, match="policy must be WaitK or AlignAtt, got LocalAgreement"):
        continue_translation(scripted, "one", "", LocalAgreement())


@pytest.mark.once("errors before any computation")
def test_bad_input(translator, tokenizer):
    for chunks in ("one", None):
        with pytest.raises(ValueError, match=f"chunks must be an iterable .*, got {chunks!r}"):
            translate_live(translator, chunks)
    with pytest.raises(ValueError, match="chunks must hold strings, got int"):
        list(translate_live(translator, [1]))
    with pytest.raises(ValueError, match="policy must be a Policy, such as .*, got 'wait-k'"):
        translate_live(translator, ["one"], "wait-k")
    with pytest.raises(TypeError, match="protect is not an option here"):
        translate_live(translator, ["one"], protect=True)
    both = ensemble([make(tokenizer), make(tokenizer, 6)])
    with pytest.raises(ValueError, match="policy must be another for .*, got 'AlignAtt'"):
        translate_live(both, ["one"], AlignAtt())
    exported = SimpleNamespace(model=None, require_direct=lambda: None)
    with pytest.raises(ValueError, match="policy must be another for .*, got 'AlignAtt'"):
        translate_live(exported, ["one"], AlignAtt())
