"""Export of a translator to LiteRT (TensorFlow Lite), for phones and small computers."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from keras_transformer.config import require
from keras_transformer.export.graph_folder import write_folder
from keras_transformer.system.extras import missing
from keras_transformer.translate.engines.carried import LITERT

TYPES = "float32", "float16", "int8", "int8-weights"


def litert(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    *,
    quantization: str = "float32",
    source_language: str | None = None,
    target_language: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a LiteRT file with an encoder and a decoder step, and a small program that runs them.

    ```bash
    pip install numpy ai-edge-litert sentencepiece
    echo "The old man loves the dog." | python served/grammar/translate.py
    ```

    `model.tflite` has two signatures, which share their weights. Rows R are the beams of a text:

    - `encode`: `source_ids` (1, S) int32 -> `source_mask` (1, 1, 1, S), and `cross_key_i`,
      `cross_value_i` (1, N, S, H) for each decoder block i;
    - `decode`: `token_ids` (R, 1) and `position` () int32, the outputs of `encode` with R rows,
      and `past_key_i`, `past_value_i` (R, N, L, H) -> `logits` (R, V) and `present_key_i`,
      `present_value_i` (R, N, L, H). The caches are zeros at first; L is any number of tokens up to
      the model's `max_length`. With `decoder_recurrence`, `past_state_i` and `present_state_i`
      (R, 1, D) take their place.

    `model.json` lists names, dtypes and shapes of these tensors.

    `graph_folder.write_folder` describes the other files. The export runs TensorFlow in a separate
    process; any backend may be active here.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder to write.
        quantization: Type of the weights: "float32"; "float16"; "int8", with products of 8-bit
            numbers; or "int8-weights", with products of floats, which is slower and more exact.
        source_language, target_language: Languages to translate from and into, see
            `Translator.load`.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ImportError: If TensorFlow is missing.
        ValueError, FileExistsError, RuntimeError: If an argument is out of range; see
            `write_folder`.
    """
    require(quantization in TYPES, "quantization", quantization, f"one of {TYPES} for LiteRT")
    if importlib.util.find_spec("tensorflow") is None:
        raise missing("exporting to LiteRT", "tensorflow")
    return write_folder(
        folder,
        out,
        (source_language, target_language),
        LITERT,
        "keras_transformer.export.litert_graph",
        "tensorflow",
        overwrite=overwrite,
        quantization=quantization,
    )
