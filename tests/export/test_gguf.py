"""Export of a saved language model to a GGUF file, and back."""

import gguf
import numpy as np
import pytest
from typer.testing import CliRunner

from keras_transformer import CausalLM, export, load_pretrained
from keras_transformer.cli import app
from keras_transformer.models import LLaMA
from keras_transformer.text.chat_template import ChatTemplate
from tests.hub.gguf.files import TOKENS
from tests.hub.gguf.test_writer import IDS, MODELS, logits_of


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "tiny"
    model = LLaMA(MODELS["llama"][1])
    CausalLM(model, TOKENS, ChatTemplate.named("chatml"), {"temperature": 0.5}).save(folder)
    return folder


def test_there_and_back(saved, tmp_path):
    path = export.gguf(saved, tmp_path / "out.gguf", quantization="F32")
    before, again = CausalLM.load(saved), load_pretrained(path)
    np.testing.assert_allclose(logits_of(again.model, IDS), logits_of(before.model, IDS), atol=1e-5)
    assert again.template.source == before.template.source
    assert again.options({}).temperature == 0.5
    texts = ["To be", "犬 12"]
    assert again.tokenizer.encode(texts) == before.tokenizer.encode(texts)


def test_command(saved, tmp_path):
    path = tmp_path / "out.gguf"
    arguments = ["export", str(saved), str(path), "--format", "gguf", "--quantization", "Q8_0"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0 and result.stdout.strip() == str(path)
    assert gguf.GGUFReader(path).fields["general.file_type"].contents() == 7


def test_bad_arguments(saved, tmp_path):
    with pytest.raises(ValueError, match="out must be a file name with .gguf, got"):
        export.gguf(saved, tmp_path / "out")
    with pytest.raises(ValueError, match="quantization must be one of .*, got 'Q4_0'"):
        export.gguf(saved, tmp_path / "out.gguf", quantization="Q4_0")
    (tmp_path / "out.gguf").touch()
    with pytest.raises(FileExistsError, match="out.gguf exists"):
        export.gguf(saved, tmp_path / "out.gguf")
    with pytest.raises(ValueError, match="is not a saved language model"):
        export.gguf(tmp_path, tmp_path / "new.gguf")
