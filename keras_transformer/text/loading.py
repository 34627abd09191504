"""Loading of a saved tokenizer of any class."""

from __future__ import annotations

import os
from pathlib import Path

from keras_transformer.system.failures import readable
from keras_transformer.system.files import complete, read_json
from keras_transformer.text.hugging_face_tokenizer import read_tokenizer
from keras_transformer.text.keras_hub_tokenizer import KerasHubTokenizer
from keras_transformer.text.marian_tokenizer import MarianTokenizer
from keras_transformer.text.multilingual import ORIGINALS, MultilingualTokenizer
from keras_transformer.text.sentence_piece import SentencePieceTokenizer
from keras_transformer.text.tokenizer import MANIFEST, Tokenizer
from keras_transformer.text.words import WordTokenizer


def load_tokenizer(folder: str | os.PathLike) -> Tokenizer:
    """Load the tokenizer that `Tokenizer.save` wrote.

    Args:
        folder: Folder of a saved tokenizer.

    Raises:
        FileNotFoundError: If tokenizer.json or a file that it needs is missing.
        ValueError: If tokenizer.json is broken, or a file is not the one that was saved.
    """
    folder = Path(folder)
    complete(folder)
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no tokenizer: {MANIFEST} is missing")
    manifest = read_json(path)
    kinds = (SentencePieceTokenizer, KerasHubTokenizer, MarianTokenizer, WordTokenizer)
    loaders = {kind.__name__: kind._load for kind in kinds}
    loaders[MultilingualTokenizer.__name__] = _load_originals
    name = manifest.get("class") if isinstance(manifest, dict) else None
    if not isinstance(name, str) or name not in loaders:
        raise ValueError(f'{path} must name its "class", one of {sorted(loaders)}')
    with readable(f"the tokenizer in {folder}"):
        try:
            tokenizer = loaders[name](folder, manifest)
            expected = manifest["fingerprint"]
        except KeyError as error:
            raise ValueError(f"{path} lacks {error}: save the tokenizer again") from error
        except ValueError as error:
            raise ValueError(f"the tokenizer in {folder} cannot be read: {error}") from error
    if tokenizer.fingerprint() != expected:
        raise ValueError(
            f"the files in {folder} are not those that were saved with {MANIFEST}: "
            f"fingerprint {tokenizer.fingerprint()}, expected {expected}"
        )
    return tokenizer


def _load_originals(folder, manifest):
    return read_tokenizer(folder / ORIGINALS, manifest["model"])
