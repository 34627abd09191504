"""Noun phrases and German word order against examples written by hand."""

import pytest

from keras_transformer.demo import lexicon
from keras_transformer.demo.inflection import DETERMINERS, decline, of_name, possessive
from keras_transformer.demo.phrases import named
from keras_transformer.demo.syntax import (
    Clause,
    Phrase,
    genitive,
    noun_phrase,
    pronoun,
    pronoun_for,
)
from tests.demo.words import DEAR, OLD, VERBS, her, noun

ANNA, PETER, SHE = named("Anna"), named("Peter"), pronoun("she", "she")
YESTERDAY = Phrase("yesterday", "gestern", "time")


def test_adjective_stems_and_genitives():
    assert decline(DETERMINERS["a"], DEAR, noun("coat"), "acc") == "einen teuren Mantel"
    assert decline(of_name("Anna"), OLD, noun("dog"), "dat") == "Annas altem Hund"
    owner = noun_phrase(possessive("I", "I"), None, noun("brother"), "gen")
    phrase = genitive(owner, OLD, noun("car"), "dat")
    assert phrase.english == "my brother's old car"
    assert phrase.german == "dem alten Auto meines Bruders"
    assert noun_phrase("the", None, noun("friend"), "gen").german == "des Freundes"


def test_a_becomes_an_before_a_vowel():
    assert noun_phrase("a", None, noun("egg")).english == "an egg"
    assert noun_phrase("a", OLD, noun("coat")).english == "an old coat"
    assert noun_phrase("a", DEAR._replace(english="blue"), noun("egg")).english == "a blue egg"


def calling(**options):
    return Clause(ANNA, VERBS["anrufen"], [her("brother")], **options)


def test_separable_verb_in_every_position():
    assert calling(tense="past").main() == (
        "Anna called her brother",
        "Anna hat ihren Bruder angerufen",
    )
    assert calling(tense="progressive").main() == (
        "Anna is calling her brother",
        "Anna ruft gerade ihren Bruder an",
    )
    assert calling().subordinate("that", "dass") == (
        "that Anna calls her brother",
        "dass Anna ihren Bruder anruft",
    )
    assert calling(tense="past").subordinate("because", "weil") == (
        "because Anna called her brother",
        "weil Anna ihren Bruder angerufen hat",
    )
    assert calling().infinitive() == ("to call her brother", "ihren Bruder anzurufen")
    assert calling(tense="pluperfect").subordinate("after", "nachdem") == (
        "after Anna had called her brother",
        "nachdem Anna ihren Bruder angerufen hatte",
    )


def test_verb_stays_second_when_something_is_in_front():
    assert calling(tense="past").main(YESTERDAY) == (
        "yesterday Anna called her brother",
        "gestern hat Anna ihren Bruder angerufen",
    )
    assert calling().main(YESTERDAY)[1] == "gestern ruft Anna ihren Bruder an"


def test_questions_are_verb_first():
    assert calling(tense="past").main(question=True) == (
        "did Anna call her brother",
        "hat Anna ihren Bruder angerufen",
    )
    assert calling().main(Phrase("why", "warum"), question=True) == (
        "why does Anna call her brother",
        "warum ruft Anna ihren Bruder an",
    )


@pytest.mark.parametrize(
    ("index", "tense", "english", "german"),
    [
        (0, "present", "Anna can call her brother", "Anna kann ihren Bruder anrufen"),
        (1, "present", "Anna wants to call her brother", "Anna will ihren Bruder anrufen"),
        (2, "present", "Anna has to call her brother", "Anna muss ihren Bruder anrufen"),
        (2, "past", "Anna had to call her brother", "Anna musste ihren Bruder anrufen"),
        (3, "past", "Anna was allowed to call her brother", "Anna durfte ihren Bruder anrufen"),
        (4, "present", "Anna should call her brother", "Anna sollte ihren Bruder anrufen"),
        (5, "present", "Anna would like to call her brother", "Anna möchte ihren Bruder anrufen"),
    ],
)
def test_modal_verbs_send_the_infinitive_to_the_end(index, tense, english, german):
    clause = calling(tense=tense, modal=lexicon.MODAL_LIST[index])
    assert clause.main() == (english, german)
    verb = german.split()[1]
    assert clause.subordinate("", "dass")[1] == f"dass Anna ihren Bruder anrufen {verb}"


def test_future_and_liking():
    assert calling(modal=lexicon.FUTURE).main() == (
        "Anna will call her brother",
        "Anna wird ihren Bruder anrufen",
    )
    assert calling(tense="liking").main() == (
        "Anna likes to call her brother",
        "Anna ruft ihren Bruder gern an",
    )


def test_negation():
    coat = noun_phrase("not_a", None, noun("coat"), "acc")
    buying = Clause(ANNA, VERBS["kaufen"], [coat, YESTERDAY], "past", negated=True)
    assert buying.main() == (
        "Anna did not buy a coat yesterday",
        "Anna hat gestern keinen Mantel gekauft",
    )
    clause = Clause(ANNA, VERBS["anrufen"], [her("brother"), YESTERDAY], "past", negated=True)
    assert clause.main() == (
        "Anna did not call her brother yesterday",
        "Anna hat ihren Bruder gestern nicht angerufen",
    )
    clause.modal, clause.tense = lexicon.MODAL_LIST[0], "present"
    assert clause.main()[0] == "Anna cannot call her brother yesterday"


def test_perfect_with_sein_and_time_before_manner_before_place():
    parts = [
        Phrase("to Berlin", "nach Berlin", "direction"),
        Phrase("by train", "mit dem Zug", "manner"),
        YESTERDAY,
    ]
    assert Clause(PETER, VERBS["fahren"], parts, "past").main() == (
        "Peter travelled to Berlin by train yesterday",
        "Peter ist gestern mit dem Zug nach Berlin gefahren",
    )


def test_definite_objects_before_places_and_indefinite_ones_after():
    garden = Phrase("in the garden", "im Garten", "place")
    reading = Clause(SHE, VERBS["lesen"], [], "past")
    reading.parts = [noun_phrase("the", None, noun("book"), "acc"), garden]
    assert reading.main()[1] == "sie hat das Buch im Garten gelesen"
    reading.parts = [noun_phrase("a", None, noun("book"), "acc"), garden]
    assert reading.main()[1] == "sie hat im Garten ein Buch gelesen"


def test_pronouns_come_early_and_split_english_particles():
    it = pronoun_for(noun_phrase("the", None, noun("lamp")), "acc")
    clause = Clause(ANNA, VERBS["ausschalten"], [it, YESTERDAY], "past")
    assert clause.main() == ("Anna turned it off yesterday", "Anna hat sie gestern ausgeschaltet")
    clause.parts[0] = noun_phrase("the", None, noun("lamp"), "acc")
    assert clause.main() == (
        "Anna turned off the lamp yesterday",
        "Anna hat gestern die Lampe ausgeschaltet",
    )


def test_reflexive_pronoun_follows_pronouns_and_precedes_nouns():
    film = Phrase("the film", "auf den Film", "prepositional")
    verb = VERBS["freuen"]
    assert Clause(ANNA, verb, [film]).main()[1] == "Anna freut sich auf den Film"
    assert Clause(ANNA, verb, [film]).subordinate("", "weil")[1] == (
        "weil sich Anna auf den Film freut"
    )
    assert Clause(SHE, verb, [film]).subordinate("", "weil")[1] == (
        "weil sie sich auf den Film freut"
    )
    assert Clause(pronoun("I", "I"), verb, [film]).main(question=True)[1] == (
        "freue ich mich auf den Film"
    )
    assert Clause(ANNA, VERBS["ausruhen"], []).infinitive()[1] == "sich auszuruhen"


def test_pronouns_follow_the_gender_of_the_german_noun():
    answers = {"hat": "er", "lamp": "sie", "book": "es"}
    for english, german in answers.items():
        it = pronoun_for(noun_phrase("the", None, noun(english)))
        assert (it.english, it.german) == ("it", german)
    them = pronoun_for(noun_phrase("the", None, noun("hat"), plural=True), "acc")
    assert (them.english, them.german) == ("them", "sie")
    girl = noun_phrase("the", None, noun("girl"))
    assert possessive(girl.english_row, girl.german_row)[:3] == ("her", "her", "sein")


def test_preterite_of_be_and_have():
    who = Phrase("we", "wir", "pronoun", "we", "we")
    tired = Phrase("tired", "müde", "predicate")
    assert Clause(who, lexicon.NAMED_VERBS["be sein"], [tired], "past").main() == (
        "we were tired",
        "wir waren müde",
    )
