"""Places of weights in Marian's files: each weight has one, and each name is used once."""

import pytest

from keras_transformer.hub.marian.layout import LEGACY, NEW, layout, stream_factor, token_factor
from tests.hub.marian.test_outgoing import CONFIGS, config_of, random_weights


@pytest.mark.once("reads a config")
@pytest.mark.parametrize("kind", [LEGACY, NEW])
@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS)
def test_all_weights(changes, kind):
    config = config_of(**changes)
    rules = [place.rule for place in layout(config, kind)]
    paths = {x for x in random_weights(config) if not x.endswith("positions/embeddings")}
    assert sorted(x.ours for x in rules) == sorted(paths)
    names = [name for x in rules for name in x.names]
    assert len({*names}) == len(names)


@pytest.mark.once("arithmetic")
def test_factors():
    assert stream_factor(config_of(), LEGACY) == token_factor(config_of(), LEGACY) == 1
    assert [stream_factor(config_of(epsilon=x), NEW) for x in (1e-5, 1e-6, 1e-12)] == [1, 4, 4096]
    assert token_factor(config_of(d_model=16), NEW) == 16
    assert token_factor(config_of(scale_embeddings=False), NEW) == 4


@pytest.mark.once("arithmetic")
def test_names():
    places = {x.rule.ours: x for x in layout(config_of(), NEW)}
    block = "TransformerBatchDecoder->decoder->layers->at(1)"
    block += "->as<marian::nn::TransformerDecoderLayerWithCrossAttention>()"
    place = places["decoder/block_1/feed_forward/hidden/kernel"]
    assert place.rule.theirs == (
        f"{block}->filterBlock->layers->at(0)->as<marian::nn::LinearReluDropout>()->weight",
    )
    # A post-norm layer reads a residual stream that is 4 times ours.
    assert (place.factor, place.rule.layout) == (0.25, "same")
    place = places["decoder/block_1/cross_attention/key_value/bias"]
    inner = f"{block}->crossAttentionBlock->crossAttention"
    assert place.rule.theirs == tuple(f"{inner}->{x}Proj->bias" for x in "kv")
    assert (place.factor, place.rule.layout) == (1, "same")
