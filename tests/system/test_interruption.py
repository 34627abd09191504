"""Work that nobody waits for is given up between its steps."""

import threading

import pytest

from keras_transformer.backend import BACKEND
from keras_transformer.system.interruption import GivenUpError, check, given_up_if
from keras_transformer.text.words import WordTokenizer
from keras_transformer.translate.translator import Translator


def test_the_innermost_condition_of_this_thread_counts():
    check()
    others = []
    with given_up_if(lambda: True):
        with pytest.raises(GivenUpError):
            check()
        with given_up_if(lambda: False):
            check()
        thread = threading.Thread(target=lambda: others.append(check()))
        thread.start()
        thread.join()
        with pytest.raises(GivenUpError):
            check()
    check()
    assert others == [None]


@pytest.mark.skipif(BACKEND != "torch", reason="the loops of other backends are compiled")
@pytest.mark.parametrize("options", [{}, {"beam_size": 1}])
def test_a_search_ends_at_its_next_step(tiny_transformer, options):
    texts = ["one two three four five six"]
    tokenizer = WordTokenizer.train(texts, texts)
    sizes = {name: getattr(tokenizer, name) for name in ("source_vocab_size", "target_vocab_size")}
    translator = Translator(tiny_transformer(**sizes, share_embeddings=False), tokenizer)
    asked = []

    def nobody_waits():
        asked.append(1)
        return len(asked) > 3

    whole = translator.translate(texts, min_length=9, **options)
    with given_up_if(nobody_waits), pytest.raises(GivenUpError):
        translator.translate(texts, min_length=9, **options)
    assert len(asked) == 4
    assert translator.translate(texts, min_length=9, **options) == whole
