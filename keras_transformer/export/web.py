"""Export of a translator to a web page that translates in the browser, without a server."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.export.graph_folder import write_parts
from keras_transformer.export.web_runtime import BINARY, VERSION, runtime_files
from keras_transformer.system.extras import missing
from keras_transformer.system.files import check_free, replacing, write_json
from keras_transformer.system.named_models import located
from keras_transformer.text.pieces import fields_of
from keras_transformer.translate.engines.carried import WEB
from keras_transformer.translate.translator import Translator

PAGE = Path(__file__).with_name("page")
SERVED = Path(__file__).parents[1] / "serving" / "page"  # the server's page
SHARED = (
    "attention.css", "attention.js", "copy.js", "differences.js", "heatmap.js", "icon.svg",
    "languages.js", "lines.js", "live.js", "page.css", "pieces.js", "scroller.js", "touch.js",
    "words.js",
)  # fmt: skip
WORKER = "service-worker.js"
SPLITS = {1: "unigram", 2: "bpe"}  # types of SentencePiece models that sentencepiece.js reads


def web(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    runtime: str | os.PathLike | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a folder with a web page that translates in the browser, also offline.

    ```bash
    python -m http.server --directory served/page  # or any other host of static files
    ```

    - `index.html`, with its styles and modules, and `service-worker.js`, which keeps all files for
      use without a network. Keeping needs https or localhost;
    - `model/`: the graphs of `export.onnx` with 8-bit weights, the SentencePiece models, and
      `translator.json`;
    - `runtime/`: the npm package onnxruntime-web, with its licences;
    - `files.json`: the sizes of the large files, for the progress bar.

    The page shows the languages, alternatives and the cross-attention. The languages are those of
    the directions that the model was trained in.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder to write.
        source_language, target_language: The only language to translate from, or into; None: all.
        runtime: The npm package, see `web_runtime.runtime_files`; None: npm fetches it.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ImportError: If PyTorch, `onnx`, `onnxruntime` or `onnxscript` is missing.
        ValueError: If `folder` is not a saved translator, its tokenizer has no SentencePiece model
            of type "bpe" or "unigram", the model is too large or does not translate between these
            languages, the folder has a search option that the page does not support, or `runtime`
            is not the package.
        FileExistsError: If `out` exists and `overwrite` is False, or `out` holds files that the
            export does not write.
        RuntimeError: If npm or the export itself fails.
    """
    for name in ("torch", "onnx", "onnxruntime", "onnxscript"):
        if importlib.util.find_spec(name) is None:
            raise missing("exporting a page", "torch", "onnx")
    out = Path(out)
    check_free(out, overwrite)
    translator = Translator.load(folder, "float32")
    chosen = directions(translator, source_language, target_language)
    translator = translator.between(*chosen[0])
    for side in ("source", "target"):
        check_splits(getattr(translator.tokenizer, f"{side}_model"), side)
    files = runtime_files(runtime)
    with replacing(out, lose_others=False) as temporary:
        model = temporary / "model"
        model.mkdir(parents=True)
        module = "keras_transformer.export.web_graph"
        facts = write_parts(translator, folder, model, WEB, module, "torch")
        facts["name"] = located(folder).resolve().name
        facts["directions"] = [_direction(translator, *pair) for pair in chosen]
        (model / "translator.json").write_text(json.dumps(facts, ensure_ascii=False), "utf-8")
        (temporary / "runtime").mkdir()
        for name, content in files.items():
            (temporary / "runtime" / name).write_bytes(content)
        write_page(temporary)
    return out


def directions(
    translator: Translator, source_language: str | None, target_language: str | None
) -> list[tuple[str | None, str | None]]:
    """Return the pairs of languages that a model translates between in one step.

    Args:
        translator: The translator.
        source_language, target_language: Keep only pairs with these languages; None: any.

    Raises:
        ValueError: If no pair is left.
    """
    tokenizer, saved = (
        translator.tokenizer,
        (translator.source_language, translator.target_language),
    )
    sides = [getattr(tokenizer, f"{x}_languages", ()) for x in ("source", "target")]
    pairs: list[tuple[Any, Any]] = [*translator.directions]
    if not pairs and any(sides):
        sources, targets = (side or saved[i : i + 1] for i, side in enumerate(sides))
        pairs = [(x, y) for x in sources for y in targets if x != y]
    pairs = pairs or [saved]
    asked = dict(source_language=source_language, target_language=target_language)
    for i, (name, code) in enumerate(asked.items()):
        known = sorted({str(pair[i]) for pair in pairs})
        pairs = [pair for pair in pairs if code in (None, pair[i])]
        require(pairs, name, code, f"None or one of {', '.join(known)}")
    return pairs


def check_splits(model: bytes, side: str) -> None:
    """Raise ValueError if the page cannot split texts as a SentencePiece model does."""
    trainer = dict(fields_of(next((x for field, x in fields_of(model) if field == 2), b"")))
    if (kind := trainer.get(3, 1)) not in SPLITS:
        raise ValueError(
            f"the {side} model of the tokenizer must be of type bpe or unigram for a page, got "
            f"type {kind}"
        )


def write_page(folder: Path) -> None:
    """Complete a page whose folder has `model/` and `runtime/`: compress them, add the rest."""
    sizes = {}
    model = sorted(path for path in (folder / "model").rglob("*") if path.is_file())
    for path in (*model, folder / "runtime" / BINARY):
        content = path.read_bytes()
        path.unlink()
        packed = path.with_name(f"{path.name}.gz")
        packed.write_bytes(gzip.compress(content, mtime=0))
        name = packed.relative_to(folder).as_posix()
        sizes[name] = dict(bytes=packed.stat().st_size, unpacked=len(content))
    for path in (*(SERVED / name for name in SHARED), *PAGE.iterdir()):
        (folder / path.name).write_bytes(path.read_bytes())
    version = _version(folder)
    write_json(folder / "files.json", dict(version=version, runtime=VERSION, files=sizes))
    names = [x for x in _names(folder) if x not in (WORKER, *sizes)]
    head = f"const VERSION = {json.dumps(version)};\nconst PAGE = {json.dumps(['./', *names])};\n"
    worker = folder / WORKER
    worker.write_text(head + worker.read_text("utf-8"), "utf-8")


def _names(folder: Path) -> Iterator[str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return (path.relative_to(folder).as_posix() for path in files)


def _version(folder):
    """Return a hash of all files: browsers then replace what they keep of an older export."""
    digest = hashlib.sha256()
    for name in _names(folder):
        digest.update(name.encode() + hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()[:16]


def _direction(translator, source, target):
    """Return the languages of a direction and the special ids around its texts."""
    tokenizer, first = (
        translator.between(source, target).tokenizer,
        translator.search.get("forced_first"),
    )
    frame = tokenizer.target_frame
    target_frame = frame if first is None else (first, frame.after)
    return dict(
        source=source,
        target=target,
        source_frame=tokenizer.source_frame,
        target_frame=target_frame,
    )
