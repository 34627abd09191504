"""Weight files of format 1 and 2: read, average, refuse a mix."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_transformer.checkpoints import (
    assign_weights,
    average_weights,
    load_weights,
    read_weights,
    save_weights,
    weights_of,
)
from keras_transformer.layers.head_groups import fuse
from keras_transformer.models import LLaMA, LLaMAConfig

FUSED = "decoder/block_0/self_attention/query_key_value/kernel"
OLD = np.random.default_rng(0).standard_normal((4, 16)).astype("float32")
NEW = fuse(np.split(OLD, [8, 12], axis=1), 2)


def small():
    sizes = dict(d_model=4, d_ff=8, num_layers=1, num_heads=4, num_kv_heads=2, head_dim=2)
    return LLaMA(LLaMAConfig(16, **sizes))


@pytest.fixture
def old(tmp_path):
    """A file of the first format, which has no number."""
    path = tmp_path / "old.safetensors"
    save_file(weights_of(small()) | {FUSED: OLD}, path, metadata={"format": "pt"})
    return path


def test_a_file_of_format_1(old, tmp_path):
    model = small()
    load_weights(old, model)
    np.testing.assert_array_equal(weights_of(model)[FUSED], NEW)
    save_weights(tmp_path / "new.safetensors", weights_of(model))
    other = small()
    load_weights(tmp_path / "new.safetensors", other)
    np.testing.assert_array_equal(weights_of(other)[FUSED], NEW)


def test_means_keep_their_format(old, tmp_path):
    mean = average_weights([old, old])
    assert FUSED not in mean  # it has a name that no model has
    save_weights(tmp_path / "mean.safetensors", mean)
    for weights in (mean, read_weights(tmp_path / "mean.safetensors")):
        model = small()
        assign_weights(weights, model)
        np.testing.assert_allclose(weights_of(model)[FUSED], NEW, rtol=1e-6)


def test_formats_do_not_mix(old, tmp_path):
    save_weights(tmp_path / "new.safetensors", weights_of(small()))
    with pytest.raises(ValueError, match=f"missing: {FUSED} in format 1; unexpected: {FUSED}"):
        average_weights([old, tmp_path / "new.safetensors"])


def test_a_newer_format(old):
    save_file(load_file(old), old, metadata={"keras_transformer_format": "3"})
    with pytest.raises(ValueError, match="old.safetensors cannot be read: .*_format must be at mo"):
        read_weights(old)
