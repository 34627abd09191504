"""Write one tiny saved object of each kind, with what it computes, into a folder.

    KERAS_BACKEND=torch python -m tests.compatibility.make tests/compatibility/format-2

From the first release on, a folder is never made again: later versions must read it, and a new
version of a saved format gets a folder of its own. SentencePiece's models have no table of
normalized characters, which would be most of their bytes.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import keras
import numpy as np
from sentencepiece import sentencepiece_model_pb2

import keras_transformer as kt
from keras_transformer.callbacks import Checkpoints
from keras_transformer.models import (
    BERT,
    BERTConfig,
    LLaMA,
    LLaMAConfig,
    enable_lora,
)
from keras_transformer.saved.folder import save_folder
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.weights import save_weights, weights_of
from tests import pretrained_files

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TEXTS = ["one two", "three", "eight nine six one", "four five six seven", "ten one ten"]
PROMPTS = ["one two", "nine", "four five six"]
SEARCHES = [dict(beam_size=1), dict(beam_size=4), dict(beam_size=3, length_penalty=1.0)]


def randomized(model, seed=5):
    """Random weights, so large that the choices of a search are clear."""
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        if "seed_generator" in weight.path:
            continue
        value = rng.standard_normal(weight.shape)
        if len(weight.shape) < 2:
            value = 0.2 * value + (weight.name == "gamma")
        else:
            value = 1.5 * value / weight.shape[-2 if "kernel" in weight.name else -1] ** 0.5
        weight.assign(value.astype("float32"))
    return model


def random_texts():
    choose = random.Random(0).choices
    return [" ".join(choose(WORDS, k=1 + i % 6)) for i in range(200)]


def plain(model):
    """A SentencePiece model without its table of normalized characters."""
    found = sentencepiece_model_pb2.ModelProto.FromString(model)
    found.normalizer_spec.precompiled_charsmap = b""
    return found.SerializeToString()


def arrays(model, inputs):
    """The outputs of a model as NumPy arrays by name."""
    flat = keras.tree.flatten(model(inputs))
    return {f"output_{i}": keras.ops.convert_to_numpy(x) for i, x in enumerate(flat)}


def transformer_config(tokenizer, **changes):
    sizes = dict(d_model=16, d_ff=24, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    sizes |= dict(source_vocab_size=tokenizer.source_vocab_size, max_length=40)
    sizes |= dict(target_vocab_size=tokenizer.target_vocab_size)
    ids = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
    return kt.TransformerConfig(**sizes | ids | changes)


def translations(translator):
    return [translator.translate(TEXTS, max_extra_length=8, **search) for search in SEARCHES]


def make_translators(out, expected):
    texts = random_texts()
    tokenizer = kt.SentencePieceTokenizer.train(texts, texts, vocab_size=56, byte_fallback=False)
    tokenizer.save(out / "tokenizer")
    (model,) = (out / "tokenizer").glob("*.model")
    tokenizer = kt.SentencePieceTokenizer(plain(model.read_bytes()))
    shutil.rmtree(out / "tokenizer")
    changes = dict(norm_first=True, activation="gelu", tie_output=False, positions="learned")
    config = transformer_config(tokenizer, **changes)
    translator = kt.Translator(randomized(kt.Transformer(config)), tokenizer, "en", "xx")
    translator.save(out / "float32")
    expected["float32"] = {"translations": translations(translator)}
    expected["float32"]["scores"] = translator.score(TEXTS, TEXTS[::-1])
    quantized = kt.Translator.load(out / "float32", precision="int8")
    quantized.save(out / "int8")
    expected["int8"] = {"translations": translations(quantized)}

    # A whole compiled model, and weights with LoRA's products beside them.
    model = randomized(kt.Transformer(transformer_config(tokenizer)))
    model.compile(kt.adam(kt.WarmupSchedule(1e-2, 5)), kt.LabelSmoothedCrossentropy(0.1))
    rng = np.random.default_rng(0)
    ids = rng.integers(4, tokenizer.target_vocab_size, (12, 5)).astype("int32")
    inputs = {"source_ids": ids, "target_ids": np.roll(ids, 1, axis=1)}
    checkpoints = Checkpoints(out / "checkpoints", run={"name": "toy"})
    model.fit(inputs, ids, batch_size=4, epochs=2, shuffle=False, verbose=0,
              callbacks=[checkpoints])  # fmt: skip
    shutil.rmtree(checkpoints.paths()[0])
    np.savez(out / "checkpoints.npz", **inputs, labels=ids, **arrays(model, inputs))
    model.save(out / "compiled.keras")
    np.savez(out / "compiled.npz", **inputs, labels=ids, **arrays(model, inputs))
    gradients = [keras.ops.ones(weight.shape) for weight in model.trainable_variables]
    model.optimizer.apply(gradients, model.trainable_variables)
    np.savez(out / "updated.npz", **inputs, **arrays(model, inputs))
    model = randomized(kt.Transformer(transformer_config(tokenizer)))
    enable_lora(model, 2)
    randomized(model)
    save_weights(out / "lora.safetensors", weights_of(model))
    np.savez(out / "lora.npz", **inputs, **arrays(model, inputs))


def make_language_model(out, expected):
    tokenizer = TextTokenizer.train(random_texts(), kind="bytes", vocab_size=280)
    special = dict(pad_id=0, bos_id=0, eos_id=5, max_length=64)
    sizes = dict(d_model=16, d_ff=24, num_layers=1, num_heads=4, num_kv_heads=2)
    model = randomized(LLaMA(LLaMAConfig(tokenizer.vocab_size, **sizes, **special)))
    writer = kt.CausalLM(model, tokenizer)
    writer.save(out / "llama")
    found = [writer.generate(PROMPTS, max_new_tokens=12, beam_size=k) for k in (1, 3)]
    expected["llama"] = {"generated": found}


def make_encoder(out):
    tokenizer = TextTokenizer.train(random_texts(), kind="bytes", vocab_size=280)
    sizes = dict(vocab_size=tokenizer.vocab_size, d_model=8, d_ff=12, num_layers=1, num_heads=2)
    sizes |= dict(max_length=16, pad_id=0, labels=("x", "y", "z"))
    ids = np.array([[5, 6, 7, 8, 9, 10], [9, 4, 12, 0, 0, 0]], "int32")
    model = randomized(BERT(BERTConfig(**sizes, head="sequence_classification")))
    save_folder(out / "bert", model, tokenizer, {"task": "text_classification"})
    np.savez(out / "bert" / "expected.npz", token_ids=ids, **arrays(model, {"token_ids": ids}))


def make_pretrained(out, expected):
    """Imported models: Marian and Whisper."""
    with tempfile.TemporaryDirectory() as folder:
        texts = random_texts()
        pretrained_files.pretrained_folder("marian", Path(folder), texts, texts, layers=1)
        for path in Path(folder).glob("*.spm"):
            path.write_bytes(plain(path.read_bytes()))
        translator = kt.load_pretrained(folder)
    translator.save(out / "marian")
    expected["marian"] = {"translations": translations(translator)}
    with tempfile.TemporaryDirectory() as folder:
        transcriber = kt.load_pretrained(pretrained_files.whisper_folder(Path(folder)))
    transcriber.save(out / "whisper")
    rng = np.random.default_rng(0)
    clips = [(0.1 * rng.standard_normal(n)).astype("float32") for n in (3840, 900)]
    found = transcriber.transcribe(clips, language="en", max_new_tokens=9)
    expected["whisper"] = {"transcribed": found, "lengths": [len(clip) for clip in clips]}


def compress(path):
    """Compress the entries of a Keras file: most bytes of a tiny one are HDF5's empty places."""
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)


def main(out):
    out.mkdir(parents=True)
    expected = {"texts": TEXTS, "prompts": PROMPTS, "searches": SEARCHES}
    make_translators(out, expected)
    make_language_model(out, expected)
    make_encoder(out)
    make_pretrained(out, expected)
    compress(out / "compiled.keras")
    text = json.dumps(expected, indent=1, ensure_ascii=False, default=float)
    (out / "expected.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
