"""From a checkpoint's folder to translations: what `transformers` says, we say."""

import json
import os
import subprocess
import sys

import keras
import pytest
import torch
import transformers
from typer.testing import CliRunner

from keras_transformer import Translator, cli, export, load_pretrained
from keras_transformer.text import MarianTokenizer

ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"]
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."]
TEXTS = [*ENGLISH, ">>fra<<A dog.", "sleeps 犬", ""]


@pytest.fixture(scope="module")
def folder(marian_files, tmp_path_factory):
    """A random OPUS-MT model, whole, and what `transformers` translates with it."""
    folder = marian_files(tmp_path_factory.mktemp("opus"), ENGLISH * 20, GERMAN * 20)
    tokenizer = MarianTokenizer.read(folder)
    torch.manual_seed(1)
    config = transformers.MarianConfig(
        vocab_size=tokenizer.source_vocab_size, d_model=16, max_position_embeddings=64,
        encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=32, decoder_ffn_dim=32, activation_function="swish", scale_embedding=True,
        pad_token_id=tokenizer.pad_id, decoder_start_token_id=tokenizer.pad_id, init_std=0.5,
        bad_words_ids=[[tokenizer.pad_id]],
    )  # fmt: skip
    transformers.MarianMTModel(config).save_pretrained(folder)
    return folder


def expected(folder, beam_size, length_penalty):
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    found = []
    for text in TEXTS[:-1]:
        inputs = tokenizer([text], return_tensors="pt")
        room = inputs["input_ids"].shape[1] + 10
        ids = model.generate(
            **inputs, num_beams=beam_size, do_sample=False,
            length_penalty=length_penalty, max_length=room + 1,
            bad_words_ids=[[tokenizer.pad_token_id]],
        )  # fmt: skip
        found += tokenizer.batch_decode(ids, skip_special_tokens=True)
    return [*found, ""]


@pytest.mark.parametrize("beam_size,length_penalty", [(1, 0.0), (4, 0.0), (4, 1.5)])
def test_translations(folder, beam_size, length_penalty):
    options = dict(beam_size=beam_size, length_penalty=length_penalty, scoring="transformers")
    translator = load_pretrained(folder)
    found = translator.translate(TEXTS, max_extra_length=10, **options)
    assert found == expected(folder, beam_size, length_penalty)
    assert list(translator.translate_stream(TEXTS, max_extra_length=10, **options)) == found
    best = translator.nbest(TEXTS, max_extra_length=10, **options)
    assert [hypotheses[0].text for hypotheses in best] == found
    assert len(set(found)) > 2
    assert (translator.source_language, translator.target_language) == ("en", "de")


def test_imported_by_the_command_line(folder, tmp_path):
    out = tmp_path / "imported"
    result = CliRunner().invoke(cli.app, ["import", str(folder), str(out)])
    assert result.exit_code == 0, result.output
    assert Translator.load(out).translate(TEXTS) == load_pretrained(folder).translate(TEXTS)


def test_saved_model(folder, tmp_path):
    translator = load_pretrained(folder)
    translator.save(tmp_path / "saved")
    path = export.saved_model(tmp_path / "saved", tmp_path / "served", max_extra_length=10)
    program = (
        "import json, sys, tensorflow as tf, tensorflow_text\n"
        "served = tf.saved_model.load(sys.argv[1])\n"
        "texts = tf.constant(json.loads(sys.argv[2]))\n"
        "print(json.dumps([x.decode() for x in served.translate(texts)['translations'].numpy()]))\n"
        "assert not any(name.startswith('keras_transformer') for name in sys.modules)\n"
    )
    command = [sys.executable, "-c", program, str(path), json.dumps(TEXTS)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    output = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found = json.loads(output.stdout.splitlines()[-1])
    assert found == translator.translate(TEXTS, max_extra_length=10)


def test_training_goes_on_from_it(folder):
    translator = load_pretrained(folder)
    source = translator.tokenizer.encode_source(ENGLISH)
    target = translator.tokenizer.encode_target(GERMAN)
    before = translator.score(ENGLISH, GERMAN)
    rows = max(map(len, source)), max(map(len, target))
    pad = translator.tokenizer.pad_id
    source_ids, labels = (
        keras.utils.pad_sequences(x, n, padding="post", value=pad)
        for x, n in zip((source, target), rows, strict=True)
    )
    target_ids = labels * 0 + translator.tokenizer.bos_id
    target_ids[:, 1:] = labels[:, :-1]
    from keras_transformer import LabelSmoothedCrossentropy, adam

    translator.model.compile(adam(1e-2), LabelSmoothedCrossentropy(pad_id=pad))
    inputs = {"source_ids": source_ids, "target_ids": target_ids}
    translator.model.fit(inputs, labels, epochs=10, verbose=0)
    assert all(a > b for a, b in zip(translator.score(ENGLISH, GERMAN), before, strict=True))


def test_bad_input(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConnectionError, match="there is no folder nobody/nothing; .* not in the"):
        load_pretrained("nobody/nothing")
    with pytest.raises(FileNotFoundError, match="no folder no/such/name and no model of that name"):
        load_pretrained("no/such/name")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r'pip install "keras-transformer\[pretrained\]"'):
        load_pretrained("nobody/nothing")
    with pytest.raises(ValueError, match="scoring must be one of .*, got 'mean'"):
        load_pretrained(folder).translate(["a"], scoring="mean")
    with pytest.raises(ValueError, match="precision must be one of .*, got 'half'"):
        load_pretrained(folder, precision="half")
    config = transformers.T5Config(
        vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"must be one of \['marian'\] for a translator, got 't5'"):
        load_pretrained(tmp_path)


def test_a_vocabulary_of_another_model(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    vocabulary = json.loads((folder / "vocab.json").read_text())
    vocabulary["more"] = len(vocabulary)
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    with pytest.raises(ValueError, match="the tokenizer does not match the model: its source_voc"):
        load_pretrained(tmp_path)
