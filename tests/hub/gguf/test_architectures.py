"""The tables of architectures, beside those of the package `gguf`."""

import gguf
import numpy as np
import pytest

from keras_transformer.hub.families import FAMILIES
from keras_transformer.hub.gguf.architectures import ARCHITECTURES

OUTPUTS = [x for x, y in gguf.MODEL_TENSORS.items() if gguf.MODEL_TENSOR.OUTPUT in y]
HEADS = dict(attn_q=4, attn_k=2)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_names_are_those_of_the_package(name):
    architecture = ARCHITECTURES[name]
    assert architecture.kind in FAMILIES
    arch = next(x for x, y in gguf.MODEL_ARCH_NAMES.items() if y == name)
    names = gguf.get_tensor_name_map(arch, 3)
    stored = [f"{x}.weight" for x in architecture.ends if arch in OUTPUTS or x != "output"]
    stored += [f"blk.2.{x}.{part}" for x in architecture.block for part in ("weight", "bias")]
    for x in stored:
        theirs = architecture.their_name(x)
        assert architecture.stored_name(theirs) == x
        assert names.get_name(theirs, (".weight", ".bias")) == x


def test_other_names_stay():
    assert ARCHITECTURES["llama"].their_name("blk.0.ffn_gate_exps.weight").startswith("blk.0")
    assert ARCHITECTURES["llama"].their_name("v.patch") == "v.patch"


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_values_there_and_back(name, rng):
    architecture = ARCHITECTURES[name]
    for layer in architecture.block:
        for shape in ((16, 5), (16,)):
            part = "weight" if len(shape) == 2 or layer.endswith("norm") else "bias"
            stored, value = f"blk.0.{layer}.{part}", rng.normal(size=shape).astype("float32")
            theirs = architecture.their_value(stored, value, HEADS)
            again = architecture.stored_value(stored, theirs, HEADS)
            np.testing.assert_allclose(again, value, atol=1e-6)


def test_pairs_become_halves():
    """Pairs (x_0, x_1), (x_2, x_3) of a head in the file become (x_0, x_2), (x_1, x_3)."""
    value = np.arange(8, dtype="float32")
    theirs = ARCHITECTURES["llama"].their_value("blk.0.attn_k.bias", value, dict(attn_k=2))
    assert theirs.tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    theirs = ARCHITECTURES["qwen2"].their_value("blk.0.attn_k.bias", value, dict(attn_k=2))
    assert theirs.tolist() == value.tolist()
