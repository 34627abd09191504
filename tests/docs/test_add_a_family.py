"""The family that a page adds, whole: its code runs, and gives the logits of `transformers`."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from keras_transformer.hub.families import FAMILIES
from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model

DOCS = Path(__file__).parents[2] / "docs"


def code_of(page):
    return "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL))


@pytest.fixture
def opt():
    scope = {"__name__": "docs"}
    exec(compile(code_of("add-a-family.md"), "add-a-family.md", "exec"), scope)
    yield scope
    del FAMILIES["opt"]


def test_the_family_that_is_added(opt, tmp_path):
    torch.manual_seed(0)
    config = transformers.OPTConfig(
        vocab_size=50, hidden_size=16, word_embed_proj_dim=16, ffn_dim=24, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=20, init_std=0.3,
    )  # fmt: skip
    theirs = transformers.OPTForCausalLM(config).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    ours = read_model(tmp_path / "theirs", dtype="float32")
    assert type(ours) is opt["OPT"]
    ids = np.random.default_rng(0).integers(3, 50, (2, 12)).astype("int32")
    with torch.no_grad():
        expected = theirs(torch.from_numpy(ids).long()).logits.numpy()
    np.testing.assert_allclose(ops.convert_to_numpy(ours({"token_ids": ids})), expected, atol=1e-4)
    write_model(tmp_path / "ours", ours)
    again = transformers.OPTForCausalLM.from_pretrained(tmp_path / "ours").state_dict()
    assert all(torch.equal(again[name], x) for name, x in theirs.state_dict().items())
