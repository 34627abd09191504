"""Folders of exported graphs: facts, SentencePiece models and a program that searches with them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from keras_transformer.search import without_protection
from keras_transformer.system.elsewhere import run_elsewhere
from keras_transformer.system.files import check_free, replacing, write_json
from keras_transformer.translate import engines
from keras_transformer.translate.engines.carried import Carried
from keras_transformer.translate.translator import Translator

RUNNER = Path(engines.__file__).with_name("graph_runner.py")  # does not import this package


def write_folder(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    languages: tuple[str | None, str | None],
    carried: Carried,
    module: str,
    backend: str,
    *,
    overwrite: bool = False,
    **task: Any,
) -> Path:
    """Write the graphs of a saved translator and what a program needs to search with them.

    - `translator.json`: special ids, vocabularies, the special tokens around a text, the maximum
      length, and the search options of the folder;
    - `source.spm` and `target.spm`: the SentencePiece models;
    - `translate.py`: a beam search in NumPy, to run or to copy from;
    - the graphs, written by `module` in a process of its own.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder to write.
        languages: Languages to translate from and into, see `Translator.load`.
        carried: The search options that the program accepts.
        module: The module that writes the graphs, see `run_elsewhere`.
        backend: The Keras backend of its process.
        overwrite: Whether to replace `out` if it exists.
        task: Further arguments of the module.

    Returns:
        The path `out`.

    Raises:
        ValueError: If `folder` is not a saved translator, its tokenizer has no SentencePiece model,
            a language is unknown or missing, the pair of languages needs two steps, or the folder
            has a search option that the program does not support.
        FileExistsError: If `out` exists and `overwrite` is False, or `out` holds files that the
            export does not write.
        RuntimeError: If the export itself fails.
    """
    out = Path(out)
    check_free(out, overwrite)
    translator = Translator.load(folder, "float32", *languages)
    with replacing(out, lose_others=False) as temporary:
        temporary.mkdir()
        write_parts(translator, folder, temporary, carried, module, backend, **task)
        shutil.copy(RUNNER, temporary / "translate.py")
    return out


def write_parts(
    translator: Translator,
    folder: str | os.PathLike,
    out: Path,
    carried: Carried,
    module: str,
    backend: str,
    **task: Any,
) -> dict[str, Any]:
    """Write the graphs, `translator.json` and the SentencePiece models into a folder.

    Args:
        translator: The translator in `folder`, for one pair of languages.
        out: The folder to write to, which exists.
        folder, carried, module, backend, task: See `write_folder`.

    Returns:
        The content of `translator.json`.

    Raises:
        ValueError, RuntimeError: See `write_folder`.
    """
    translator.require_direct()
    facts = _facts(translator, carried)
    tokenizer = translator.tokenizer
    models = {"source.spm": tokenizer.source_model, "target.spm": tokenizer.target_model}
    languages = translator.source_language, translator.target_language
    task |= dict(folder=os.fspath(folder), path=os.fspath(out), languages=languages)
    run_elsewhere(module, task, backend)
    for name, content in models.items():
        (out / name).write_bytes(content)
    write_json(out / "translator.json", facts)
    return facts


def _facts(translator, carried):
    """Return the content of `translator.json`."""
    tokenizer, config = translator.tokenizer, translator.model.config
    search = without_protection(translator.search)
    search.pop("forced_first", None)
    suppressed = {*search.pop("suppress_tokens", ())}
    carried.check(search)
    frame = tokenizer.target_frame
    if (first := translator.search.get("forced_first")) is not None:
        frame = first, frame.after
    return dict(
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
