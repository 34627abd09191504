"""Files that a clone without Git LFS lacks: each reader says what to do."""

import json
import shutil
from pathlib import Path

import pytest

from keras_transformer import CausalLM, Translator
from keras_transformer.hub.tensors import Checkpoint
from keras_transformer.saved.description import describe
from keras_transformer.saved.model_files import count_parameters
from keras_transformer.text.hugging_face_tokenizer import read_tokenizer
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.translate.engines.exported import OnnxEngine
from keras_transformer.weights.weight_files import read_weights

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 298763321\n"
SAVED = Path(__file__).parents[1] / "compatibility/format-2"
FOREIGN = {"model_type": "mbart"}
CASES = [  # a folder, the file that is a pointer, and a reader of the folder
    ("float32", "model.keras", Translator.load),
    ("float32", "model.keras", count_parameters),
    ("float32", "model.keras", describe),
    ("float32", "shared.model", Translator.load),
    ("marian", "source.spm", Translator.load),
    ("marian", "vocab.json", Translator.load),
    ("llama", "tokenizer.json", CausalLM.load),
    (None, "model.safetensors", Checkpoint),
    (None, "pytorch_model.bin", Checkpoint),
    (None, "weights.safetensors", read_weights),
    (None, "shortlist.safetensors", lambda folder: Shortlist.read(folder, None)),
    (None, "sentencepiece.bpe.model", lambda folder: read_tokenizer(folder, FOREIGN)),
    (None, "tokenizer.json", lambda folder: read_tokenizer(folder, FOREIGN)),
    (None, "encoder.onnx", OnnxEngine),
]


@pytest.mark.parametrize(("saved", "name", "read"), CASES)
def test_a_pointer_is_named_with_the_command_that_fetches_the_file(tmp_path, saved, name, read):
    folder = tmp_path / "folder"
    if saved:
        shutil.copytree(SAVED / saved, folder)
    else:
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(FOREIGN))
    (folder / name).write_text(POINTER)
    with pytest.raises(ValueError, match=f"{name} is a Git LFS pointer.*: run `git lfs pull` in"):
        read(folder)
