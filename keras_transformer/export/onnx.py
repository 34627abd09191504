"""Export of a translator to ONNX graphs, for onnxruntime and other ONNX runtimes."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from keras_transformer.config import require
from keras_transformer.export.graph_folder import write_folder
from keras_transformer.export.transformers_js import transformers_js
from keras_transformer.system.extras import missing
from keras_transformer.translate.engines.carried import ONNX

LAYOUT = "transformers-js"


def onnx(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    *,
    layout: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write ONNX graphs of the encoder and of a decoder step, and a small program that runs them.

    ```bash
    pip install numpy onnxruntime sentencepiece
    echo "The old man loves the dog." | python served/grammar/translate.py
    ```

    - `encoder.onnx`: `source_ids` (B, S) int64 -> `source_mask` (B, 1, 1, S), and `cross_key_i`,
      `cross_value_i` (B, N, S, H) for each decoder block i;
    - `decoder.onnx`: `token_ids` (B, 1) int64, the encoder's outputs, and `past_key_i`,
      `past_value_i` (B, N, T, H), T >= 0 -> `logits` (B, V) and `present_key_i`, `present_value_i`
      (B, N, T + 1, H). With `decoder_recurrence`, `past_state_i` and `present_state_i` (B, 1, D)
      take their place, and the token's `position`, an int64 scalar, is an input, too;
    - other files, see `graph_folder.write_folder`.

    The layout "transformers-js" is that of JavaScript's transformers.js, see
    `transformers_js.transformers_js`.

    The export runs PyTorch in a separate process; any backend may be active here.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder to write.
        layout: "transformers-js", or None: as above.
        source_language, target_language: Languages to translate from and into, see
            `Translator.load`.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ImportError: If PyTorch, `onnx` or `onnxscript` is missing; with a layout, `onnxruntime`.
        ValueError, FileExistsError, RuntimeError: If `layout` is unknown; see `write_folder` and
            `transformers_js`.
    """
    require(layout in (None, LAYOUT), "layout", layout, f"{LAYOUT!r} or None")
    for name in ("torch", "onnx", "onnxscript", *(["onnxruntime"] if layout else [])):
        if importlib.util.find_spec(name) is None:
            raise missing("exporting ONNX graphs", "torch", "onnx")
    languages = source_language, target_language
    if layout == LAYOUT:
        return transformers_js(folder, out, languages, overwrite=overwrite)
    module = "keras_transformer.export.onnx_graph"
    return write_folder(folder, out, languages, ONNX, module, "torch", overwrite=overwrite)
