"""A reply in a slot: when it ends, and which options a step needs."""

import numpy as np
import pytest

from keras_transformer.language.reply import Reply, choices, common
from keras_transformer.search import Generation

pytestmark = pytest.mark.once("knows no tensors of a backend")


def reply(most=3, ends=(5,), **options):
    return Reply(0, [7, 8], Generation(**options), most, frozenset(ends), 0)


def test_tokens_until_an_end():
    one = reply()
    assert one.next_token == 8
    assert one.take(6) is None and one.next_token == 6
    assert one.take(5) == "stop"
    one = reply(most=2)
    assert [one.take(6), one.take(6)] == [None, "length"]


def test_only_the_options_that_are_needed():
    plain, drawn, penal = reply(), reply(temperature=0.5, top_k=3), reply(repetition_penalty=2.0)
    drawn.uniforms = np.array([0.25, 0.5], "float32")
    penal.seen = np.zeros(9, bool)
    penal.take(4)
    assert choices([plain], 9) == {}
    found = choices([plain, drawn, penal], 9)
    assert found["temperature"].tolist() == [0.0, 0.5, 0.0]
    assert found["uniform"].tolist() == [0.0, 0.25, 0.0]
    assert found["top_k"].tolist() == [0, 3, 0] and found["top_p"].tolist() == [1, 1, 1]
    assert found["repetition_penalty"].tolist() == [1.0, 1.0, 2.0]
    assert found["seen"].sum() == 1 and found["seen"][2, 4]
    early = reply(min_new_tokens=1)
    assert choices([plain, early], 9)["too_early"].tolist() == [False, True]
    never = reply(suppress_tokens=(3,), begin_suppress_tokens=(4,))
    assert choices([plain, never], 9)["forbidden"].nonzero()[1].tolist() == [3, 4]
    never.take(6)
    assert choices([plain, never], 9)["forbidden"].nonzero()[1].tolist() == [3]
    early.take(6)
    assert choices([plain, early], 9) == {}


def test_common_prefixes():
    assert common([1, 2, 3], [1, 2, 4, 5]) == 2
    assert common([1, 2], [1, 2, 3]) == common([1, 2, 3], [1, 2]) == 2
    assert common([], [1]) == common([2], [1]) == 0
