"""The tables of the embedded corpus are consistent: what verbs ask for exists, translations are
one to one, and the forms that rules derive agree with forms written by hand."""

import pytest

from keras_transformer.demo import lexicon

NOUNS = lexicon.NOUNS.values()
VERBS = [*lexicon.VERB_LIST, *lexicon.NAMED_VERBS.values()]


def test_no_row_hides_another():
    assert len(lexicon.NOUNS) == len(lexicon.NOUN_LIST)
    names = {(verb.english[0], verb.prefix, verb.infinitive) for verb in lexicon.VERB_LIST}
    assert len(lexicon.NAMED_VERBS) == len(names) + len(lexicon.WORDS["pattern_verbs"])


def test_every_role_is_asked_for():
    asked = {role for verb in lexicon.VERB_LIST for role in (*verb.roles, *verb.places)}
    patterns = {"count", "kin", "folks", "person", "lay", "stand", "hang", "repair", "goods"}
    assert lexicon.NOUNS_BY_ROLE.keys() <= asked | patterns | {"beast", "pet", "give", "borrow"}


def test_nouns_translate_one_to_one():
    english = [noun.english or noun.english_plural for noun in NOUNS]
    german = [noun.german or noun.german_plural for noun in NOUNS]
    assert len(set(english)) == len(set(german)) == len(english)


def test_nouns_are_capitalised_in_german_only():
    for noun in NOUNS:
        assert (noun.german or noun.german_plural)[0].isupper()
        assert noun.gender in ("m", "f", "n")
        assert (noun.english + noun.english_plural).islower()
        assert bool(noun.english_plural) == bool(noun.german_plural)


def test_weak_nouns_are_masculine_with_a_plural_in_n():
    weak = [noun for noun in NOUNS if noun.weak]
    assert {"Junge", "Nachbar", "Student", "Löwe"} <= {noun.german for noun in weak}
    assert all(noun.gender == "m" and noun.german_plural.endswith("n") for noun in weak)


def test_every_noun_that_is_described_has_adjectives():
    assert {noun.kind for noun in NOUNS} - {"person"} <= set(lexicon.ADJECTIVES_BY_KIND)
    assert len(lexicon.ADJECTIVES_BY_KIND["person"]) > 5


def test_adjectives_translate_one_to_one():
    adjectives = lexicon.ADJECTIVE_LIST
    names = {a.english for a in adjectives}
    assert len(names) == len({a.german for a in adjectives}) == len(adjectives)


@pytest.mark.parametrize("verb", lexicon.VERB_LIST, ids=lambda verb: verb.english[0])
def test_verbs_ask_for_nouns_and_places_that_exist(verb):
    for role in verb.roles:
        assert role in ("PERSON", "TOWN") or lexicon.NOUNS_BY_ROLE[role]
    for role in verb.places:
        assert role == "TOWN" or all(len(noun.at) == 3 for noun in lexicon.NOUNS_BY_ROLE[role])
    if verb.governs and verb.governs[0] not in ("to", "in"):
        assert verb.governs[-1] in ("acc", "dat")
        assert verb.roles


def test_verbs_translate_one_to_one_given_what_they_govern():
    def english(verb):
        return verb.english[0], verb.particle, verb.preposition, bool(verb.governs)

    verbs = lexicon.VERB_LIST
    assert len({english(verb) for verb in verbs}) == len(verbs)
    german = {(verb.prefix + verb.infinitive, *verb.governs) for verb in verbs}
    assert len(german) == len(verbs)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.prefix + verb.infinitive)
def test_participles_carry_their_prefix(verb):
    assert verb.participle.startswith(verb.prefix)
    assert verb.participle.endswith(("t", "n"))
    assert len(verb.present) == 5
    assert verb.present[3] == verb.present[4]


def test_modal_verbs_by_hand():
    forms = {" ".join(modal.present[:4]) for modal in lexicon.MODAL_LIST}
    assert "kann kannst kann können" in forms
    assert "muss musst muss müssen" in forms
    assert "möchte möchtest möchte möchten" in forms
    past = {" ".join(modal.preterite) for modal in lexicon.MODAL_LIST}
    assert "durfte durftest durfte durften durften" in past


def test_names_take_a_plain_genitive_s():
    names = lexicon.WORDS["women"] + lexicon.WORDS["men"]
    assert len(set(names)) == len(names)
    assert not [name for name in names if name.endswith(("s", "ß", "x", "z"))]


def test_spots_are_nouns():
    assert all(noun in lexicon.NOUNS for _, _, noun in lexicon.WORDS["spots"])
