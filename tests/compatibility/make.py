"""Write one tiny saved object of each kind, with what it computes, into a folder.

    KERAS_BACKEND=torch python tests/compatibility/make.py tests/compatibility/format-2

The folder is committed once, from the version that wrote it, and never made again: later versions
must read it. A new version of a saved format gets a folder of its own.
"""

from __future__ import annotations

import json
import random
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np

import keras_transformer as kt
from keras_transformer import layers
from keras_transformer.callbacks import Checkpoints
from keras_transformer.checkpoints import save_weights, weights_of
from keras_transformer.inference.folder import save_folder
from keras_transformer.models import (
    BERT,
    ESM,
    GPT,
    BERTConfig,
    ESMConfig,
    GPTConfig,
    LLaMA,
    LLaMAConfig,
    ViT,
    ViTConfig,
    enable_lora,
)
from keras_transformer.text.text_tokenizer import TextTokenizer

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


def arrays(model, inputs):
    """The outputs of a model as NumPy arrays by name."""
    flat = keras.tree.flatten(model(inputs))
    return {f"output_{i}": keras.ops.convert_to_numpy(x) for i, x in enumerate(flat)}


def transformer_config(tokenizer, **changes):
    sizes = dict(d_model=16, d_ff=24, num_heads=2, num_encoder_layers=1, num_decoder_layers=2)
    sizes |= dict(source_vocab_size=tokenizer.source_vocab_size, max_length=40)
    sizes |= dict(target_vocab_size=tokenizer.target_vocab_size)
    ids = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
    return kt.TransformerConfig(**sizes | ids | changes)


def translations(translator):
    return [translator.translate(TEXTS, max_extra_length=8, **search) for search in SEARCHES]


def make_translators(out, expected):
    texts = random_texts()
    tokenizer = kt.SentencePieceTokenizer.train(texts, texts, vocab_size=56, byte_fallback=False)
    changes = dict(norm_first=True, activation="gelu", tie_output=False, positions="learned")
    for name, config in {
        "post-norm": transformer_config(tokenizer, tie_output=False),
        "pre-norm": transformer_config(tokenizer, **changes),
    }.items():
        translator = kt.Translator(randomized(kt.Transformer(config)), tokenizer, "en", "xx")
        translator.save(out / name)
        expected[name] = {"translations": translations(translator)}
        expected[name]["scores"] = translator.score(TEXTS, TEXTS[::-1])
    quantized = kt.Translator.load(out / "post-norm", precision="int8")
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


def make_layers(out):
    """A user's functional model of our layers."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    memory_ids = keras.Input((None,), dtype="int32", name="memory_ids")
    embedding = layers.PositionalEmbedding(13, 8, max_length=16)
    memory = layers.EncoderBlock(2, 12)(embedding(memory_ids))
    memory = layers.Encoder(1, 2, 12, norm_first=True)(memory)
    x, _ = layers.Decoder(1, 2, 12)(embedding(ids), memory=memory)
    x, _ = layers.MultiHeadAttention(2)(x)
    x = layers.FeedForward(12, activation="silu", gated=True)(x)
    model = randomized(
        keras.Model({"ids": ids, "memory_ids": memory_ids}, embedding(x, reverse=True))
    )
    model.save(out / "functional.keras")
    model.save_weights(out / "functional.weights.h5")
    rng = np.random.default_rng(0)
    inputs = {name: rng.integers(0, 13, (3, 6)).astype("int32") for name in ("ids", "memory_ids")}
    np.savez(out / "functional.npz", **inputs, **arrays(model, inputs))


def make_language_models(out, expected):
    tokenizer = TextTokenizer.train(random_texts(), kind="bytes", vocab_size=280)
    special = dict(pad_id=0, bos_id=0, eos_id=5)
    sizes = dict(vocab_size=tokenizer.vocab_size, d_model=16, d_ff=24, num_layers=2, num_heads=4)
    models = {
        "gpt": GPT(GPTConfig(**sizes, **special, max_length=64)),
        "llama": LLaMA(LLaMAConfig(**sizes, **special, max_length=64, num_kv_heads=2)),
    }
    for name, model in models.items():
        writer = kt.CausalLM(randomized(model), tokenizer)
        writer.save(out / name)
        found = [writer.generate(PROMPTS, max_new_tokens=12, beam_size=k) for k in (1, 3)]
        expected[name] = {"generated": found}


def make_encoders(out):
    tokenizer = TextTokenizer.train(random_texts(), kind="bytes", vocab_size=280)
    sizes = dict(vocab_size=tokenizer.vocab_size, d_model=8, d_ff=12, num_layers=1, num_heads=2)
    sizes |= dict(max_length=16, pad_id=0, labels=("x", "y", "z"))
    ids = np.array([[5, 6, 7, 8, 9, 10], [9, 4, 12, 0, 0, 0]], "int32")
    image = dict(image_size=8, patch_size=4, d_model=8, d_ff=12, num_layers=1, num_heads=2)
    pixels = np.random.default_rng(0).random((2, 8, 8, 3)).astype("float32")
    models = {
        "bert": (BERT(BERTConfig(**sizes, head="sequence_classification")), {"token_ids": ids}),
        "esm": (
            ESM(ESMConfig(**sizes, mask_id=3, head="token_classification")),
            {"token_ids": ids},
        ),
        "vit": (ViT(ViTConfig(**image, num_classes=3)), pixels),
    }
    for name, (model, inputs) in models.items():
        found = arrays(randomized(model), inputs)
        text = None if name == "vit" else tokenizer
        save_folder(out / name, model, text, {"task": name})
        named = inputs if isinstance(inputs, dict) else {"input": inputs}
        np.savez(out / name / "expected.npz", **named, **found)


def make_pretrained(out, expected):
    """Imported models: Marian, T5 and Whisper."""
    tools = runpy.run_path(str(Path(__file__).parents[1] / "pretrained_files.py"))
    for kind in ("marian", "t5"):
        with tempfile.TemporaryDirectory() as folder:
            tools["pretrained_folder"](kind, Path(folder), random_texts(), random_texts())
            options = () if kind == "marian" else ("en", "de")
            translator = kt.load_pretrained(folder, *options)
        translator.save(out / kind)
        expected[kind] = {"translations": translations(translator)}
    with tempfile.TemporaryDirectory() as folder:
        transcriber = kt.load_pretrained(tools["whisper_folder"](Path(folder)))
    transcriber.save(out / "whisper")
    rng = np.random.default_rng(0)
    clips = [(0.1 * rng.standard_normal(n)).astype("float32") for n in (3840, 900)]
    found = transcriber.transcribe(clips, language="en", max_new_tokens=9)
    expected["whisper"] = {"transcribed": found, "lengths": [len(clip) for clip in clips]}


def main(out):
    out.mkdir(parents=True)
    expected = {"texts": TEXTS, "prompts": PROMPTS, "searches": SEARCHES}
    make_translators(out, expected)
    make_layers(out)
    make_language_models(out, expected)
    make_encoders(out)
    make_pretrained(out, expected)
    text = json.dumps(expected, indent=1, ensure_ascii=False, default=float)
    (out / "expected.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
