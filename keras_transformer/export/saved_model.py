"""A saved translator as a TensorFlow SavedModel, strings in and strings out, from any backend."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.search import TRANSLATE, Search, spelled_out
from keras_transformer.system.extras import missing
from keras_transformer.system.files import check_free, replacing

BAD_INPUT = 65  # the exporting process's exit status when what it was given is wrong


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
    """Writes the SavedModel `<out>/<version>`, as TensorFlow Serving looks for it.

    ```python
    path = export.saved_model("saved_models/grammar", "serving/grammar")
    # any process with TensorFlow and tensorflow-text, without keras_transformer:
    loaded = tf.saved_model.load(path)  # keep it: a function alone loses its variables
    loaded.translate(tf.constant(["The old man loves the dog."]))["translations"]
    ```

    The signatures, for any number B of texts, none included:

    - `serving_default` and `translate`: `texts` (B,) -> `translations` (B,);
    - `nbest`: `texts` (B,) -> `translations` (B, beam_size) and their `scores`, best first;
      where there are fewer, "" with the score -1e9;
    - `score`: `sources` (B,), `targets` (B,) -> `scores` (B,), log p(target | source);
    - `translate_between`, of M2M-100, NLLB-200 and mBART-50: `texts`, `source_languages` and
      `target_languages` (B,) -> `translations` (B,).

    They give what `Translator.translate`, `nbest` and `score` give; a text longer than the model's
    `max_length` is cut without a warning, in `score` it is an error. All texts of a call are one
    batch. Beside them lies a file of warm-up requests, which TensorFlow Serving runs before it
    answers others.

    The export runs TensorFlow in a process of its own, on the CPU, whatever backend runs here;
    the SavedModel is bound to no device.

    Args:
        folder: what `Translator.save` wrote.
        out: the served model's folder, named as the model.
        version: a whole number of at least 1; TensorFlow Serving takes the highest.
        source_language, target_language: as of `Translator.load`.
        jit_compile: compiles search and score by XLA, for GPUs. Each new shape costs seconds, so
            lengths are padded to multiples of 16 and batches to powers of two.
        overwrite: whether to replace this version if it exists.
        options: of the search, as of `Translator.translate`.

    Returns:
        The path `<out>/<version>`.

    Raises:
        ImportError: without TensorFlow or tensorflow-text.
        ValueError: on an option out of range, or if `folder` is no saved translator, its
            tokenizer has no SentencePiece model, or a language is unknown or not chosen.
        FileExistsError: if the version exists, or holds files of another origin.
        RuntimeError: if the export itself fails.
    """
    whole = isinstance(version, int) and not isinstance(version, bool)
    require(whole and version >= 1, "version", version, "a whole number of at least 1")
    search = Search.of(options, TRANSLATE)
    for name in ("tensorflow", "tensorflow_text"):
        if importlib.util.find_spec(name) is None:
            raise missing("exporting a SavedModel", "tensorflow")
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


def run_elsewhere(module: str, task: dict, backend: str) -> None:
    """Has a module of this package do a task in a process where Keras runs on this backend."""
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": os.pathsep.join(sys.path),
        # Tracing needs no GPU, whose memory the process here may hold.
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    process = subprocess.run(
        [sys.executable, "-m", module, json.dumps(task)],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if process.returncode == BAD_INPUT:
        raise ValueError(f"cannot export {task['folder']}: {process.stdout.strip()}")
    if process.returncode:
        raise RuntimeError(
            f"the export of {task['folder']} failed with status {process.returncode}:\n"
            f"{process.stderr[-2000:].strip()}"
        )
