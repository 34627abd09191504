"""Export of a translator to a TensorFlow SavedModel with strings as inputs, from any backend."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.saved.contents import CONFIG, read_config
from keras_transformer.search import TRANSLATE, Search, spelled_out, without_protection
from keras_transformer.system.elsewhere import run_elsewhere
from keras_transformer.system.extras import missing
from keras_transformer.system.files import check_free, replacing
from keras_transformer.text.prompt_tokenizer import EXPORTS


@spelled_out(Search, TRANSLATE)
def saved_model(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    *,
    version: int = 1,
    source_language: str | None = None,
    target_language: str | None = None,
    jit_compile: bool = False,
    overwrite: bool = False,
    **options: Any,
) -> Path:
    """Write the SavedModel `<out>/<version>`, as TensorFlow Serving expects it.

    ```python
    path = export.saved_model("saved_models/grammar", "serving/grammar")
    # in any process with TensorFlow and tensorflow-text, without keras_transformer:
    loaded = tf.saved_model.load(path)  # keep a reference: its functions alone lose the variables
    loaded.translate(tf.constant(["The old man loves the dog."]))["translations"]
    ```

    The signatures take any number B of texts, including 0:

    - `serving_default` and `translate`: `texts` (B,) -> `translations` (B,);
    - `nbest`: `texts` (B,) -> `translations` (B, beam_size) and `scores` (B, beam_size), best
      first; missing translations are "" with the score -1e9;
    - `score`: `sources` (B,), `targets` (B,) -> `scores` (B,), log p(target | source);
    - `translate_between`, for M2M-100, NLLB-200 and mBART-50: `texts`, `source_languages` and
      `target_languages` (B,) -> `translations` (B,).

    The results are those of `Translator.translate`, `nbest` and `score`. A text longer than the
    model's `max_length` is cut without a warning, except in `score`, which raises an error. All
    texts of a call form one batch. The SavedModel includes warmup requests, which TensorFlow
    Serving runs before it answers other requests.

    The export runs TensorFlow in a separate process on the CPU; any backend may be active here.
    The SavedModel runs on any device.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder of the served model; the name of the folder is the model's name.
        version: A whole number, at least 1. TensorFlow Serving loads the highest version.
        source_language, target_language: See `Translator.load`.
        jit_compile: Whether to compile search and score with XLA, for GPUs. Compiling a new shape
            takes seconds, so lengths are padded to multiples of 16, and numbers of texts to powers
            of two.
        overwrite: Whether to replace this version if it exists.
        options: Search options, see `Translator.translate`; options not given are those of the
            folder.

    Returns:
        The path `<out>/<version>`.

    Raises:
        ImportError: If TensorFlow or tensorflow-text is missing.
        ValueError: If an option is out of range, `protect`, `force_terms` or `style` is set,
            `folder` is not a saved translator or holds a language model, its tokenizer has no
            SentencePiece model, a language is unknown or missing, or the pair of languages needs
            two steps.
        FileExistsError: If the version exists and `overwrite` is False, or its folder holds files
            that the export does not write.
        RuntimeError: If the export itself fails.
    """
    whole = isinstance(version, int) and not isinstance(version, bool)
    require(whole and version >= 1, "version", version, "a whole number of at least 1")
    Search.of(options, TRANSLATE)
    for name in ("tensorflow", "tensorflow_text"):
        if importlib.util.find_spec(name) is None:
            raise missing("exporting a SavedModel", "tensorflow")
    config = read_config(folder, "translator")  # a wrong folder fails before TensorFlow starts
    if config.get("prompt"):
        raise ValueError(f"a language model is exported to {EXPORTS}")
    defaults = without_protection(Search.saved(config, Path(folder, CONFIG)))
    search = Search.of(options, TRANSLATE, defaults)
    for name in ("protect", "force_terms", "style"):
        value = getattr(search, name)
        accepted = "left out: a SavedModel only searches"
        require(value == getattr(Search, name), name, value, accepted)
    path = Path(out, str(version))
    check_free(path, overwrite)
    with replacing(path, lose_others=False) as temporary:
        task = dict(
            folder=os.fspath(folder),
            path=os.fspath(temporary),
            model_name=Path(out).resolve().name,
            search=asdict(search),
            languages=dict(source_language=source_language, target_language=target_language),
            jit_compile=bool(jit_compile),
        )
        run_elsewhere("keras_transformer.export.graph", task, "tensorflow")
    return path
