"""Back-translations and translations of a teacher as training text."""

import pytest

from keras_transformer.training.augmentation import back_translated, distilled
from tests.small_translator import SHORT, TEXTS, made_tokenizer, make


@pytest.fixture(scope="module")
def translator():
    return make(made_tokenizer())


@pytest.mark.once("the search is compiled under each in tests/decoding and tests/running")
def test_sampled_sources_have_the_tag(translator):
    texts = [*TEXTS, " "]
    found = back_translated(translator, texts, seed=3, top_k=5, **SHORT)
    sampled = translator.sample(TEXTS, seed=3, top_k=5, **SHORT)
    expected = [(f"<BT> {x}", y) for x, y in zip(sampled, TEXTS, strict=True) if x.strip()]
    assert found == expected and found
    plain = back_translated(translator, texts, seed=3, top_k=5, tag="", **SHORT)
    assert plain == [(x.removeprefix("<BT> "), y) for x, y in expected]
    assert back_translated(translator, texts, seed=4, top_k=5, **SHORT) != found


@pytest.mark.once("texts: a translator's searches have their own tests")
def test_a_teacher_writes_the_best_or_several(translator):
    texts = [*TEXTS, ""]
    best = translator.translate(TEXTS, **SHORT)
    found = distilled(translator, texts, **SHORT)
    assert found == [(x, y) for x, y in zip(TEXTS, best, strict=True) if y.strip()]
    several = distilled(translator, texts, num_hypotheses=3, beam_size=2, **SHORT)
    nbest = translator.nbest(TEXTS, beam_size=3, num_hypotheses=3, **SHORT)
    assert set(several) == {(x, h.text) for x, row in zip(TEXTS, nbest, strict=True) for h in row
                            if h.text.strip()}  # fmt: skip


@pytest.mark.once("the search is compiled under each in tests/decoding and tests/running")
def test_the_hypothesis_closest_to_the_reference_is_taken(translator):
    options = dict(num_hypotheses=4, beam_size=4, **SHORT)
    nbest = translator.nbest(TEXTS, **options)
    wanted = [row[-1].text for row in nbest]
    found = dict(distilled(translator, TEXTS, wanted, **options))
    assert found == {x: y for x, y in zip(TEXTS, wanted, strict=True) if y.strip()}
    with pytest.raises(ValueError, match="references must be 8 texts, one per source, got '1 t"):
        distilled(translator, TEXTS, ["one"])
