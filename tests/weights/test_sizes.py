"""Sizes of configs against those of the weights beside them."""

import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.models import GPTConfig, LLaMAConfig
from keras_transformer.models.reward import RewardConfig
from keras_transformer.weights.sizes import check_sizes

pytestmark = pytest.mark.once("numbers")
NAMES = "d_model", "d_ff", "num_encoder_layers", "source_vocab_size", "max_length"


@pytest.mark.parametrize("name", NAMES)
def test_a_size_that_the_weights_cannot_have_is_named(name):
    sizes = dict(share_embeddings=False, d_model=4, d_ff=4, num_heads=2, num_encoder_layers=1)
    check_sizes(TransformerConfig(8, 8, **sizes), 40, 10_000)
    config = TransformerConfig(**{"source_vocab_size": 8, "target_vocab_size": 8, **sizes,
                                  name: 2**40})  # fmt: skip
    with pytest.raises(ValueError, match=rf"{name} must be at most \d+.*, got 1099511627776"):
        check_sizes(config, 40, 10_000)


def test_numbers_that_are_whole_by_chance_size_nothing():
    config = LLaMAConfig(
        8, d_model=4, d_ff=4, num_heads=2, num_layers=1, theta=10**12, max_length=8
    )
    check_sizes(config, 20, 10_000)


def test_of_a_reward_model_the_model_below_counts():
    base = GPTConfig(8, d_model=4, d_ff=4, num_heads=2, num_layers=1).to_dict()
    check_sizes(RewardConfig("GPT", base), 20, 10_000)
    with pytest.raises(ValueError, match="d_ff must be at most"):
        check_sizes(RewardConfig("GPT", base | {"d_ff": 2**40}), 20, 10_000)
