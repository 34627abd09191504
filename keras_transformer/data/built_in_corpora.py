"""Corpora that are loaded by name: those of the built-in grammar, and Multi30k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import keras
import numpy as np

from keras_transformer import demo
from keras_transformer.data.text_files import Pairs, read_pairs
from keras_transformer.demo.discourse import documents

MULTI30K_URL = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/"
)
MULTI30K_SHA256 = {
    "train.cs.gz": "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.cs.gz": "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.cs.gz": "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_flickr.fr.gz": "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
}


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus, or several joined to one, with training, validation and test pairs.

    Args:
        name: Name of the corpus in logs and metrics.
        source_language: Language code of the first text of each pair; None: there are several.
        target_language: Language code of the second text of each pair; None: there are several.
        train: Training pairs.
        validation: Validation pairs, for model selection.
        tests: Test pairs, by the name of the test set.
        visits: Mean number of times that each training pair occurs in an epoch; None: once.
        symbols: Words, such as tags in sources, that must each be one piece of a vocabulary.
        has_documents: Whether the pairs are in the order of documents, and each empty pair ends a
            document.
        directions: Source and target language of each test set, by its name, if there are several
            language pairs. Then the sources of training and validation begin with a tag of the
            target language. Empty: one language pair.
    """

    name: str
    source_language: str | None
    target_language: str | None
    train: Pairs
    validation: Pairs
    tests: dict[str, Pairs]
    visits: Sequence[float] | np.ndarray | None = None
    symbols: tuple[str, ...] = ()
    has_documents: bool = False
    directions: dict[str, tuple[str, str]] = field(default_factory=dict)


def load_corpus(
    name: str,
    folder: str | Path | None = None,
    *,
    source_language: str = "en",
    target_language: str = "de",
    train_size: int | None = None,
) -> Corpus:
    """Load a corpus by name.

    - "grammar": sentences that the built-in English-German grammar (`keras_transformer.demo`)
      generates with a fixed seed; 1,000 pairs for validation, and 1,000 in the test set "test".
      In the training set, some lines hold several sentences, and some sources have changed case or
      punctuation (`demo.varied`); in the test set "varied", each line has one or more sentences of
      "test", and each source has such changes.
    - "documents": documents of two or three sentences of this grammar, in which "it" refers to a
      noun of the first sentence (`demo.discourse`); 500 documents for validation, and 500 in the
      test set "test".
    - "multi30k": image captions (Elliott et al. 2016, "Multi30K: Multilingual English-German
      Image Descriptions"; 2017; Barrault et al. 2018), any two of en, de, fr, cs: 29,000 training
      pairs, 1,014 validation pairs, and 1,000 pairs in each of the test sets "test_2016_flickr"
      and "test_2017_flickr" (the latter without cs). Raw text, downloaded from GitHub into the
      Keras cache and verified by checksum. Derived from Flickr30k: for research, not commercial
      use.

    Args:
        name: "grammar", "documents" or "multi30k".
        folder: For multi30k only: local folder with its files (`train.en.gz` or `train.en`, and
            so on), whose checksums are not verified. None: the files are downloaded.
        source_language: Language to translate from.
        target_language: Language to translate into; must differ from `source_language`.
        train_size: Size of the training set. multi30k: the first pairs (None: all). grammar: the
            number of sentence pairs to generate (None: 100,000); there are fewer lines, since some
            hold several sentences. documents: the number of documents to generate (None: 20,000).

    Raises:
        ValueError: If a name or language is unknown, both languages are the same, `train_size` is
            below 1 or exceeds the corpus, or `folder` is given for another corpus than Multi30k.
        FileNotFoundError: If the folder lacks a file.
        OSError: If the download fails, or the checksum does not match.
    """
    if name not in _CORPORA:
        raise ValueError(f"name must be one of {sorted(_CORPORA)}, got {name!r}")
    languages, load = _CORPORA[name]
    chosen = {"source_language": source_language, "target_language": target_language}
    for argument, language in chosen.items():
        if language not in languages:
            raise ValueError(f"{argument} of {name} must be one of {languages}, got {language!r}")
    if source_language == target_language:
        raise ValueError(f"source_language and target_language must differ, got {chosen}")
    if train_size is not None and train_size < 1:
        raise ValueError(f"train_size must be at least 1, got {train_size}")
    parts = load(folder, source_language, target_language, train_size)
    documents = name == "documents"
    return Corpus(name, source_language, target_language, *parts, has_documents=documents)


_Parts = tuple[Pairs, Pairs, dict[str, Pairs]]


def _load_grammar(
    folder: str | Path | None, source_language: str, target_language: str, train_size: int | None
) -> _Parts:
    """Return training pairs, validation pairs and test sets of the grammar's sentences."""
    if folder is not None:
        raise ValueError(f"folder must be None for the embedded corpus, got {str(folder)!r}")
    splits = demo.splits(train=train_size or 100_000, validation=1_000, test=1_000, seed=1)
    if source_language == "de":
        splits = {part: [(de, en) for en, de in pairs] for part, pairs in splits.items()}
    train, test = splits["train"], splits["test"]
    varied = list(demo.varied(test, share=1, joined=0.2))
    return list(demo.varied(train)), splits["validation"], {"test": test, "varied": varied}


def _load_documents(
    folder: str | Path | None, source_language: str, target_language: str, train_size: int | None
) -> _Parts:
    """Return training pairs, validation pairs and test sets of the grammar's documents."""
    if folder is not None:
        raise ValueError(f"folder must be None for the embedded corpus, got {str(folder)!r}")
    stories = documents(1_000 + (train_size or 20_000), seed=1)
    if source_language != "en":
        stories = [[(de, en) for en, de in story] for story in stories]
    flat = [
        [x for story in part for x in (*story, ("", ""))]
        for part in (stories[1_000:], stories[500:1_000], stories[:500])
    ]
    return flat[0], flat[1], {"test": flat[2]}


def _load_multi30k(
    folder: str | Path | None, source_language: str, target_language: str, train_size: int | None
) -> _Parts:
    """Return training pairs, validation pairs and test sets of Multi30k."""

    def read(part: str) -> Pairs:
        files = [f"{part}.{language}.gz" for language in (source_language, target_language)]
        return read_pairs(*(_multi30k_file(file, folder) for file in files))

    tests = ["test_2016_flickr", "test_2017_flickr"]
    if "cs" in (source_language, target_language):
        tests.remove("test_2017_flickr")
    train = read("train")
    if train_size is not None and train_size > len(train):
        raise ValueError(f"train_size of multi30k must be at most {len(train)}, got {train_size}")
    return train[:train_size], read("val"), {test: read(test) for test in tests}


def _multi30k_file(file: str, folder: str | Path | None) -> str | Path:
    """Return the path of a file of Multi30k: in a folder, or downloaded into the cache."""
    if folder is not None:
        unpacked = file.removesuffix(".gz")
        for path in (Path(folder) / file, Path(folder) / unpacked):
            if path.exists():
                return path
        raise FileNotFoundError(f"folder {str(folder)!r} has neither {file} nor {unpacked}")
    try:
        return keras.utils.get_file(
            file,
            MULTI30K_URL + file,
            cache_subdir="datasets/multi30k",
            file_hash=MULTI30K_SHA256[file],
            hash_algorithm="sha256",
        )
    except Exception as error:  # `get_file` raises plain Exception
        raise OSError(
            f"multi30k: could not get {MULTI30K_URL + file} ({error}). Fetch the files by hand "
            "and pass their folder (--data-folder)"
        ) from error


_CORPORA = {
    "grammar": (("en", "de"), _load_grammar),
    "documents": (("en", "de"), _load_documents),
    "multi30k": (("en", "de", "fr", "cs"), _load_multi30k),
}
