"""Export of a language model to a GGUF file, which llama.cpp runs."""

from __future__ import annotations

import os
from pathlib import Path

from keras_transformer.config import require
from keras_transformer.hub.gguf.container import SUFFIX
from keras_transformer.hub.gguf.writer import QUANTIZATIONS, write_gguf
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.saved.contents import read_config
from keras_transformer.system.files import check_free, replacing
from keras_transformer.weights import weights_of


def gguf(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    *,
    quantization: str = "F16",
    overwrite: bool = False,
) -> Path:
    """Write a GGUF file with a language model, its tokenizer and its chat template.

    ```python
    export.gguf("saved_models/assistant", "served/assistant.gguf", quantization="Q8_0")
    # llama-cli -m served/assistant.gguf
    ```

    The model is a LLaMA (also SmolLM2, or a Mistral without a window), SmolLM3, Qwen2, Qwen3 or
    GPT-2 with a byte-level tokenizer. Of its search, temperature, `top_k`, `top_p`, `min_p` and the
    repetition penalty are written; without a temperature, only the penalty.

    Args:
        folder: A folder written by `CausalLM.save`.
        out: The file to write; its name ends with ".gguf".
        quantization: Type of the matrices: "F16", "Q8_0" (8 bits; a matrix whose row length is no
            multiple of 32 is F16) or "F32". Vectors and learned positions are always F32.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ImportError: If the package `gguf` is missing.
        ValueError: If `folder` is not a saved language model, `out` does not end with ".gguf", the
            quantization is unknown, or a GGUF file cannot hold the model or its tokenizer; the
            message gives the reason.
        FileExistsError: If `out` exists and `overwrite` is False.
    """
    out = Path(out)
    require(quantization in QUANTIZATIONS, "quantization", quantization, f"one of {QUANTIZATIONS}")
    require(
        out.suffix == SUFFIX and not out.is_dir(), "out", str(out), f"a file name with {SUFFIX}"
    )
    check_free(out, overwrite)
    read_config(folder, "language model")
    writer = CausalLM.load(folder, precision="float32")
    template = writer.template.source if writer.template else None
    with replacing(out) as temporary:
        write_gguf(
            temporary,
            writer.model.config,
            weights_of(writer.model),
            writer.tokenizer,
            template,
            writer.options({}),
            out.stem,
            quantization,
        )
    return out
