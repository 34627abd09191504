"""Export of a translator to ONNX graphs, for onnxruntime and other ONNX runtimes."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from keras_transformer.export.saved_model import run_elsewhere
from keras_transformer.search import without_protection
from keras_transformer.system.extras import missing
from keras_transformer.system.files import check_free, replacing, write_json
from keras_transformer.translate import engines
from keras_transformer.translate.engines.carried import ONNX
from keras_transformer.translate.translator import Translator

RUNNER = Path(engines.__file__).with_name("onnx_runner.py")  # does not import this package


def onnx(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    *,
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
    - `translator.json`: special ids, vocabularies, the special tokens around a text, the maximum
      length, and the search options of the folder;
    - `source.spm` and `target.spm`: the SentencePiece models;
    - `translate.py`: a beam search in NumPy, to run or to copy from.

    The export runs PyTorch in a separate process; any backend may be active here.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder to write.
        source_language, target_language: Languages to translate from and into, see
            `Translator.load`.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ImportError: If PyTorch, `onnx` or `onnxscript` is missing.
        ValueError: If `folder` is not a saved translator, its tokenizer has no SentencePiece model,
            a language is unknown or missing, the pair of languages needs two steps, or the folder
            has a search option that the program does not support.
        FileExistsError: If `out` exists and `overwrite` is False, or `out` holds files that the
            export does not write.
        RuntimeError: If the export itself fails.
    """
    for name in ("torch", "onnx", "onnxscript"):
        if importlib.util.find_spec(name) is None:
            raise missing("exporting ONNX graphs", "torch", "onnx")
    out = Path(out)
    check_free(out, overwrite)
    translator = Translator.load(folder, "float32", source_language, target_language)
    translator.require_direct()
    tokenizer, config = translator.tokenizer, translator.model.config
    search = without_protection(translator.search)
    search.pop("forced_first", None)
    suppressed = {*search.pop("suppress_tokens", ())}
    ONNX.check(search)
    frame = tokenizer.target_frame
    if (first := translator.search.get("forced_first")) is not None:
        frame = first, frame.after
    facts = dict(
        pad_id=config.pad_id,
        bos_id=config.bos_id,
        eos_id=config.eos_id,
        unk_id=tokenizer.unk_id,
        never_ids=sorted({config.pad_id, config.bos_id, *suppressed} - {*config.eos_ids}),
        skipped_ids=sorted(tokenizer.skipped_ids()),
        max_length=config.max_length,
        symbols=getattr(tokenizer, "symbols", ""),
        source_frame=tokenizer.source_frame,
        target_frame=frame,
        search=search,
        source_pieces=tokenizer.pieces_of("source"),
        target_pieces=tokenizer.pieces_of("target"),
    )
    models = {"source.spm": tokenizer.source_model, "target.spm": tokenizer.target_model}
    with replacing(out, lose_others=False) as temporary:
        temporary.mkdir()
        task = dict(folder=os.fspath(folder), path=os.fspath(temporary))
        run_elsewhere("keras_transformer.export.onnx_graph", task, "torch")
        for name, content in models.items():
            (temporary / name).write_bytes(content)
        write_json(temporary / "translator.json", facts)
        shutil.copy(RUNNER, temporary / "translate.py")
    return out
