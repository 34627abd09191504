"""Words of the embedded corpus, for tests of its forms and of its word order."""

from keras_transformer.demo import lexicon
from keras_transformer.demo.inflection import possessive
from keras_transformer.demo.syntax import noun_phrase

VERBS = {verb.prefix + verb.infinitive: verb for verb in lexicon.VERB_LIST}
OLD = next(a for a in lexicon.ADJECTIVES_BY_KIND["person"] if a.english == "old")
DEAR = next(a for a in lexicon.ADJECTIVES_BY_KIND["wear"] if a.german == "teuer")


def noun(english):
    return lexicon.NOUNS[english]


def her(english):
    return noun_phrase(possessive("she", "she"), None, noun(english), "acc")
