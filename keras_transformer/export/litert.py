"""Export of models to LiteRT (TensorFlow Lite), for phones and small computers."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.export.graph_folder import write_folder
from keras_transformer.saved.contents import read_config
from keras_transformer.saved.kinds import kinds_of
from keras_transformer.system.elsewhere import run_elsewhere
from keras_transformer.system.extras import missing
from keras_transformer.system.files import check_free, replacing
from keras_transformer.system.named_models import located
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.translate.engines.carried import LITERT

PROGRAM = "keras_transformer.export.litert_graph"
REFUSED = ("Synthesizer", "Rewarder", "LearnedMetric", "Parser")
TYPES = "float32", "float16", "int8", "int8-weights"


def litert(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    *,
    quantization: str = "float32",
    calibration: str | os.PathLike | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a model as a LiteRT file, with its tokenizer and a description beside it.

    ```bash
    pip install numpy ai-edge-litert sentencepiece
    echo "The old man loves the dog." | python served/grammar/translate.py
    ```

    The functions of `model.tflite` are its signatures, which share their weights. Rows R are the
    beams of a text, L is any number of tokens up to the model's `max_length`, and caches exist for
    each decoder block i:

    - translators and transcribers have `encode`, from `source_ids` (1, S) int32 or `features`
      (1, frames, mels) to `source_mask` (1, 1, 1, S), if any, and `cross_key_i`, `cross_value_i`
      (1, N, S, H); and `decode`, from `token_ids` (R, 1), `position` () int32, the outputs of
      `encode` with R rows, and `past_key_i`, `past_value_i` (R, N, L, H) to `logits` (R, V) and
      `present_key_i`, `present_value_i` (R, N, L, H);
    - language models have `decode` without the outputs of `encode`; and `prefill`, from `token_ids`
      (1, P) of a prompt to `logits` (1, V) and `present_key_i`, `present_value_i` (1, N, P, H).
      With a window, L is the window's size, and P at most that;
    - classifiers, taggers, embedders and other encoders have `predict`, from `token_ids` (B, T)
      int32, padded with the model's `pad_id`, and `type_ids` if the model has types; or from
      `images` (B, height, width, channels). `outputs` are probabilities, values or vectors;
      `start` and `end` logits of answers.

    All places of a cache that no token has filled are zeros. With `decoder_recurrence`,
    `past_state_i` and `present_state_i` (R, 1, D) take the place of keys and values.

    `model.json` lists the names, dtypes and shapes of these tensors, and has the model's config.
    For a translator, `graph_folder.write_folder` describes the other files; for others, the
    tokenizer is `tokenizer.json`. The export runs TensorFlow in a separate process; any backend may
    be active here.

    Args:
        folder: A saved translator, language model, transcriber, encoder or image model.
        out: The folder to write.
        quantization: Type of the weights: "float32"; "float16"; "int8", with products of 8-bit
            numbers; or "int8-weights", with products of floats, which is slower and more exact.
            Both have matrices of 8 bits and token tables of 16. With "int8", a table that is also
            the output's matrix is stored twice.
        calibration: Text file of some hundred examples, one a line, in the source language of a
            translator: "int8-weights" are rounded so that results on them change least. None:
            each weight is rounded by itself.
        source_language, target_language: Languages of a translator, see `Translator.load`.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ImportError: If TensorFlow is missing.
        ValueError: If an argument is out of range, the folder holds a model of another kind, or
            LiteRT cannot represent the model; see also `write_folder`.
        FileExistsError, RuntimeError: See `write_folder`.
    """
    require(quantization in TYPES, "quantization", quantization, f"one of {TYPES} for LiteRT")
    folder = located(folder)
    config = read_config(folder, "model")
    kind = _kind_of(folder, config)
    if calibration is not None:
        _check_calibration(calibration, quantization, kind)
    if importlib.util.find_spec("tensorflow") is None:
        raise missing("exporting to LiteRT", "tensorflow")
    task: dict[str, Any] = dict(quantization=quantization, loader=kind.loader)
    task["calibration"] = None if calibration is None else os.path.abspath(calibration)
    languages = source_language, target_language
    if kind.loader == "Translator":
        return write_folder(
            folder, out, languages, LITERT, PROGRAM, "tensorflow", overwrite=overwrite, **task
        )
    for name, language in zip(("source_language", "target_language"), languages, strict=True):
        require(language is None, name, language, f"None for this {kind.what}")
    check_free(out, overwrite)
    with replacing(Path(out), lose_others=False) as temporary:
        temporary.mkdir()
        task |= dict(folder=os.fspath(folder), path=os.fspath(temporary), languages=())
        run_elsewhere(PROGRAM, task, "tensorflow")
        if config.get("tokenizer"):
            TextTokenizer.read(folder).save(temporary)
    return Path(out)


def _kind_of(folder, config):
    """Return the kind of a saved model; ValueError if it is not one of those exported."""
    kinds = kinds_of(config)
    if config.get("prompt"):  # a translator that is a language model
        kinds = kinds[1:]
    if not kinds or kinds[0].loader in REFUSED:
        what = f"a {kinds[0].what}" if kinds else f"a model of task {config.get('task')!r}"
        raise ValueError(
            f"{folder} must be a translator, language model, transcriber, encoder or image model "
            f"to be exported to LiteRT, got {what}"
        )
    return kinds[0]


def _check_calibration(path, quantization, kind):
    """Raise ValueError if examples cannot be used, or there are none."""
    only = 'None without quantization="int8-weights"'
    require(quantization == "int8-weights", "calibration", os.fspath(path), only)
    has_text = kind.loader not in ("Transcriber", "ImageClassifier", "ImageEmbedder")
    require(has_text, "calibration", os.fspath(path), f"None for this {kind.what}")
    require(bool(examples(path)), "calibration", os.fspath(path), "a file of texts, one a line")


def examples(path: str | os.PathLike) -> list[str]:
    """Return the lines of a text file that are not empty."""
    return [x for x in Path(path).read_text("utf-8").splitlines() if x.strip()]
