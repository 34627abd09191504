"""Models as signatures of a LiteRT file; `export.litert` runs this as a program."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_transformer.backend import fixed_caches
from keras_transformer.config import require
from keras_transformer.export.litert import examples
from keras_transformer.export.litert_file import described, write
from keras_transformer.export.litert_rounding import calibrate
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import DecoderOnly, EncoderDecoder
from keras_transformer.speech.transcriber import Transcriber
from keras_transformer.system.elsewhere import INVALID
from keras_transformer.system.files import write_json
from keras_transformer.tasks.image_classifier import ImageClassifier
from keras_transformer.tasks.image_embedder import ImageEmbedder
from keras_transformer.tasks.image_task import ImageTask
from keras_transformer.tasks.mask_filler import MaskFiller
from keras_transformer.tasks.question_answerer import QuestionAnswerer
from keras_transformer.tasks.text_classifier import TextClassifier
from keras_transformer.tasks.text_embedder import TextEmbedder
from keras_transformer.tasks.text_scorer import TextScorer
from keras_transformer.tasks.token_regressor import TokenRegressor
from keras_transformer.tasks.token_tagger import TokenTagger
from keras_transformer.translate.translator import Translator

FACTS = "model.json"  # describes the model and its signatures
KEYS = "key", "value"  # names of the tensors in an attention's cache

_function = functools.partial(tf.function, autograph=False)
_ID_ROWS = tf.TensorSpec([None, 1], tf.int32)
_POSITION = tf.TensorSpec([], tf.int32)


def _named(kind: str, caches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tensors of all blocks' caches by names such as `<kind>_key_i`."""
    return {f"{kind}_{x}_{i}": y for i, cache in enumerate(caches) for x, y in cache.items()}


def _grouped(kind: str, tensors: dict[str, Any], count: int, parts: Sequence[str]) -> list[Any]:
    """Return the caches of `count` blocks from tensors with names such as `<kind>_key_i`."""
    return [{x: tensors[f"{kind}_{x}_{i}"] for x in parts} for i in range(count)]


def _spec(tensor, *free):
    """Return the type of a tensor; the sizes of its axes `free` are any."""
    shape = [None if axis in free else size for axis, size in enumerate(tensor.shape)]
    return tf.TensorSpec(shape, tensor.dtype)


def _past_specs(caches, windows):
    """Return the types of caches, with any number of rows and, without a window, of places."""
    specs = {}
    for i, (cache, window) in enumerate(zip(caches, windows, strict=True)):
        for name, x in cache.items():
            shape = [None, *x.shape[1:]]
            if name in KEYS:
                shape[2] = window
            specs[f"past_{name}_{i}"] = tf.TensorSpec(shape, x.dtype)
    return specs


def encoder_decoder(model: EncoderDecoder) -> dict[str, Any]:
    """Return the functions `encode` and `decode` of a model, traced; see `export.litert`.

    Args:
        model: The model, on the TensorFlow backend.

    Raises:
        ValueError: If a decoder block has a window.
    """
    model.require_whole_caches()
    config, source_name = model.config, model.source_name
    layers, first_ids = config.num_decoder_layers, tf.fill([1, 1], config.bos_id)
    if source_name == "features":
        source = tf.zeros([1, 2, config.num_mels])
    else:
        source = tf.fill([1, 2], config.bos_id)

    @_function
    def encode(**inputs):
        _, state, _ = model.prefill(inputs[source_name], first_ids, 1)
        return _memory(state)

    _, state, _ = model.prefill(source, first_ids, 1)
    past = [cache["self"] for cache in state["caches"]]
    parts = list(past[0])

    @_function
    def decode(token_ids, position, **tensors):
        pairs = zip(
            _grouped("cross", tensors, layers, KEYS),
            _grouped("past", tensors, layers, parts),
            strict=True,
        )
        state = {"caches": [{"cross": cross, "self": own} for cross, own in pairs]}
        if "source_mask" in tensors:
            state["source_mask"] = tensors["source_mask"]
        logits, new = model.step(token_ids, state, position)
        present = _named("present", [cache["self"] for cache in new["caches"]])
        return {"logits": logits[:, 0], **present}

    memory = {x: _spec(y, 0, 3 if x == "source_mask" else 2) for x, y in _memory(state).items()}
    with fixed_caches():
        traced = decode.get_concrete_function(
            token_ids=_ID_ROWS,
            position=_POSITION,
            **memory,
            **_past_specs(past, [None] * layers),
        )
    inputs = {source_name: _spec(source, 1)}
    return {"encode": encode.get_concrete_function(**inputs), "decode": traced}


def _memory(state):
    """Return what steps need of a source, by name."""
    mask = {"source_mask": state["source_mask"]} if "source_mask" in state else {}
    return mask | _named("cross", [cache["cross"] for cache in state["caches"]])


def decoder_only(model: DecoderOnly) -> dict[str, Any]:
    """Return the functions `prefill` and `decode` of a model, traced; see `export.litert`.

    Args:
        model: The model, on the TensorFlow backend.

    Raises:
        ValueError: If the model is bidirectional, or its rotary rates depend on the length.
    """
    model.require_causal()
    scaling = model.decoder.length_scaling if model.decoder.length_limit is not None else None
    require(scaling is None, "the scaling of rotary rates by length", scaling, "None for LiteRT")

    @_function
    def prefill(token_ids):
        logits, state, _ = model.prefill(token_ids, tf.shape(token_ids)[1])
        return {"logits": logits, **_named("present", _own(state))}

    _, state, _ = model.prefill(tf.zeros([1, 2], tf.int32), 2)
    caches = _own(state)
    parts = list(caches[0])

    @_function
    def decode(token_ids, position, **tensors):
        past = _grouped("past", tensors, len(caches), parts)
        state = {"caches": [{"self": cache} for cache in past]}
        logits, new = model.step(token_ids, state, position)
        return {"logits": logits[:, 0], **_named("present", _own(new))}

    windows = [block.options.window for block in model.decoder.blocks]
    with fixed_caches():
        traced = decode.get_concrete_function(
            token_ids=_ID_ROWS, position=_POSITION, **_past_specs(caches, windows)
        )
    prompt = tf.TensorSpec([1, None], tf.int32)
    return {"prefill": prefill.get_concrete_function(token_ids=prompt), "decode": traced}


def _own(state):
    return [cache["self"] for cache in state["caches"]]


def predictor(task: Any) -> dict[str, Any]:
    """Return the function `predict` of a task, traced; see `export.litert`.

    Args:
        task: An `EncoderTask` or an `ImageTask`, whose `function` it is.
    """
    config, function = task.model.config, task.function()
    is_image = isinstance(task, ImageTask)

    @_function
    def predict(**inputs):
        outputs = function(inputs["images"] if is_image else inputs)
        return outputs if isinstance(outputs, dict) else {"outputs": outputs}

    ids = tf.TensorSpec([None, None], tf.int32)
    specs = {"token_ids": ids}
    if is_image:
        specs = {"images": tf.TensorSpec([None, *config.image_size, config.num_channels])}
    elif getattr(config, "num_types", 1) > 1:
        specs["type_ids"] = ids
    return {"predict": predict.get_concrete_function(**specs)}


TASKS: tuple[Any, ...] = (
    *(ImageClassifier, ImageEmbedder, MaskFiller, QuestionAnswerer, TextClassifier),
    *(TextEmbedder, TextScorer, TokenRegressor, TokenTagger),
)
# Other classes that load a model, with the functions of that model.
OF_MODELS: dict[str, tuple[Any, Callable[[Any], dict[str, Any]]]] = {
    "Translator": (Translator, encoder_decoder),
    "Transcriber": (Transcriber, encoder_decoder),
    "CausalLM": (CausalLM, decoder_only),
}


def _task(name):
    return next(kind for kind in TASKS if kind.__name__ == name)


def main() -> None:
    """Write the LiteRT file that the first command-line argument describes in JSON."""
    task = json.loads(sys.argv[1])
    folder, quantization, loader = Path(task["path"]), task["quantization"], task["loader"]
    try:
        kind, trace = OF_MODELS.get(loader) or (_task(loader), None)
        loaded = kind.load(task["folder"], "float32", *task["languages"])
        model = loaded.model
        if path := task["calibration"]:
            calibrate(loaded, examples(path))
        signatures = trace(model) if trace else predictor(loaded)
        write(model, folder / "model.tflite", signatures, quantization)
    except ValueError as error:
        print(error)
        sys.exit(INVALID)
    facts = {"loader": loader, "model": type(model).__name__, "quantization": quantization}
    facts |= {"config": model.config.to_dict(), "signatures": described(signatures)}
    write_json(folder / FACTS, facts)


if __name__ == "__main__":
    main()
