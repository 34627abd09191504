"""The files of models: which folders have one, where an adapter finds its base, sizes."""

import numpy as np
import pytest

from keras_transformer import CausalLM
from keras_transformer.hub.hugging_face_checkpoint import write_model
from keras_transformer.models import enable_lora
from keras_transformer.saved.contents import (
    ADAPTER,
    CONFIG,
    is_saved,
)
from keras_transformer.saved.folder import save_folder
from keras_transformer.saved.model_files import count_parameters, facts_of
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.weights.adapters import Adapter
from tests.saved.test_adapter_sets import fill_lora
from tests.tiny import tiny


@pytest.mark.once("files and paths")
def test_an_adapter_beside_its_base(tmp_path):
    model = tiny("bert")
    assert not is_saved(tmp_path / "base")
    save_folder(tmp_path / "base", model, None, {"task": "x"})
    enable_lora(model, 2)
    here = tmp_path / "run" / "adapter"
    save_folder(here, model, None, {"task": "x"}, base=tmp_path / "base")
    assert is_saved(tmp_path / "base") and is_saved(here)
    assert {path.name for path in here.iterdir()} == {CONFIG, ADAPTER, "README.md"}
    facts = facts_of(Adapter.of(model), tmp_path / "base", here)
    assert facts == {"base": "../../base", "rank": 2, "alpha": 2}
    whole = tiny("bert").count_params()
    assert count_parameters(here) < count_parameters(tmp_path / "base") == whole
    # A whole model in the place of an adapter removes it.
    save_folder(here, tiny("bert"), None, {"task": "x"})
    assert is_saved(here) and not (here / ADAPTER).exists()
    (here / CONFIG).unlink()
    assert not is_saved(here)


@pytest.mark.once("files: no backend changes them")
def test_a_base_in_hugging_faces_layout_and_an_adapter_as_base(tmp_path):
    tokenizer = TextTokenizer.train(["abcdefghijklmnopqrs"], "characters")
    write_model(tmp_path / "hf", tiny("llama"))
    for step, base in enumerate(("hf", "adapter-0")):
        if step:
            writer = CausalLM.load(tmp_path / base)
        else:
            tokenizer.save(tmp_path / "hf")
            writer = CausalLM.from_pretrained(tmp_path / base)
        enable_lora(writer.model, 2)
        fill_lora(writer.model, step)
        writer.save(tmp_path / f"adapter-{step}", base=tmp_path / base)
        found = CausalLM.load(tmp_path / f"adapter-{step}")
        np.testing.assert_allclose(found.score(["abc"]), writer.score(["abc"]), rtol=1e-5)
