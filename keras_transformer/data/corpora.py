"""Parallel text from where people keep it: line files, TSV, TMX, JSON lines, Hugging Face datasets.

`read_pairs` turns any of these into a list of (source, target) pairs, `read_lines`,
`iterate_lines` and `read_texts` read one-sided text, and `load_corpus` knows two whole corpora by
name: the embedded synchronous grammar and Multi30k. Text is handed over as it stands in the file;
see `keras_transformer.data.cleaning` for what to throw away.
"""

import gzip
import json
import reprlib
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

import keras

from keras_transformer.data import grammar

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

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus in its three parts; every pair is (source, target).

    Args:
        name: What the corpus is called in logs and metrics.
        source_language: Language code of the first text of each pair.
        target_language: Language code of the second.
        train: Pairs to learn from.
        validation: Pairs to choose the model by.
        tests: Name of each test set and its pairs.
    """

    name: str
    source_language: str
    target_language: str
    train: Pairs
    validation: Pairs
    tests: dict[str, Pairs]


@contextmanager
def opened(path: str | Path):
    """The file in binary mode, unpacked if its name ends in `.gz`.

    Raises:
        ValueError: if what is read of a `.gz` is broken.
    """
    try:
        with gzip.open(path) if str(path).lower().endswith(".gz") else open(path, "rb") as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: truncated or corrupt gzip file ({error})") from error


def iterate_lines(path: str | Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 text file one by one, for files too large for memory.

    Only a newline ends a line (so that a no-break or line-separator character inside a sentence
    cannot shift the alignment of two files). The carriage returns of a Windows file and a byte
    order mark at its beginning are dropped.

    Args:
        path: The file; unpacked on the way if its name ends in `.gz`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: Invalid UTF-8 (naming file and line), or a broken gzip file.
    """
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: invalid UTF-8 ({error})") from error
            yield text.removesuffix("\n").removesuffix("\r")


def read_lines(path: str | Path) -> list[str]:
    """All lines of a text file, blank ones included; arguments and errors of `iterate_lines`."""
    return list(iterate_lines(path))


def read_texts(path: str | Path) -> list[str]:
    """The lines of a text file that are not blank; of a `.tsv` the first column, without its head.

    Args:
        path: may be a `.gz`.

    Raises:
        FileNotFoundError, ValueError: as of `iterate_lines`; also if no line is left.
    """
    lines = read_lines(path)
    if ".tsv" in Path(path).suffixes:
        lines = [line.split("\t")[0] for line in lines[1:]]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise ValueError(f"{path} must have a line of text, got none")
    return lines


def read_pairs(
    source: Any,
    target: str | Path | None = None,
    *,
    source_language: str = "en",
    target_language: str = "de",
) -> Pairs:
    """Reads parallel text; what is given decides the format.

    - two paths: two text files, line i of one the translation of line i of the other;
    - one path ending in `.tsv` or `.txt`: source, a tab, target; further columns are ignored,
      nothing is quoted, there is no header;
    - one path ending in `.tmx`: the translation units that have both languages, inline mark-up
      left out;
    - one path ending in `.jsonl` or `.json`: one JSON object a line, `{"en": ..., "de": ...}`,
      `{"source": ..., "target": ...}` or `{"translation": {"en": ..., "de": ...}}`;
    - a Hugging Face `datasets.Dataset` (also a streamed one) with columns of these names.

    Any file may end in `.gz` on top. Blank lines of TSV and JSON-lines files are skipped.

    Args:
        source: A path, or a data set.
        target: The path of the target side, for two line files only.
        source_language: Which key or TMX language is the source. In TMX, "en" stands for "EN" and
            "en-US" alike (RFC 4647, basic filtering), the first of them in each unit.
        target_language: Which one is the target.

    Returns:
        A list of (source, target), as they stand in the file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: Files of different lengths, no text at all, or a line or record that is not
            of the format, naming file and line.
    """
    if target is not None:
        if hasattr(source, "column_names"):
            raise ValueError(f"target must be left out when source is a data set, got {target!r}")
        pairs = _read_two_files(source, target)
    elif hasattr(source, "column_names"):
        pairs = list(_pairs_of_dataset(source, source_language, target_language))
    else:
        suffix = Path(str(source).lower().removesuffix(".gz")).suffix
        if suffix not in _FORMATS:
            raise ValueError(
                f"source must end in one of {', '.join(_FORMATS)} (or these and .gz) unless "
                f"target names the file of the other language; got {str(source)!r}"
            )
        pairs = list(_FORMATS[suffix](source, source_language, target_language))
    if not any(one.strip() and other.strip() for one, other in pairs):
        names = "the data set" if hasattr(source, "column_names") else source
        names = names if target is None else f"{source} and {target}"
        raise ValueError(f"empty corpus: no pair with text on both sides in {names}")
    return pairs


def _read_two_files(source: str | Path, target: str | Path) -> Pairs:
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        shorter, longer = sorted([(len(sources), source), (len(targets), target)])
        raise ValueError(
            f"parallel files must have as many lines as each other: {source} has {len(sources)}, "
            f"{target} has {len(targets)}. {shorter[1]} is the shorter one: line {shorter[0] + 1} "
            f"of {longer[1]} is the first without a partner"
        )
    return list(zip(sources, targets, strict=True))


def _pairs_of_tsv(path: str | Path, *_) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(iterate_lines(path), 1):
        if not line:
            continue
        columns = line.split("\t", 2)
        if len(columns) < 2:
            raise ValueError(
                f"{path}, line {number}: expected source and target with a tab between them, "
                f"got {reprlib.repr(line)}"
            )
        yield columns[0], columns[1]


def _pairs_of_json_lines(path: str | Path, *languages: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(iterate_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{path}, line {number}: malformed JSON, expected one object a line ({error})"
            ) from error
        yield _pair_of_record(record, *languages, where=f"{path}, line {number}")


def _pairs_of_dataset(dataset: Any, *languages: str) -> Iterator[tuple[str, str]]:
    if isinstance(dataset.column_names, Mapping):
        splits = list(dataset.column_names)
        raise ValueError(f"source must be one split of the data set, source[...] of {splits}")
    for number, record in enumerate(dataset):
        yield _pair_of_record(record, *languages, where=f"data set, row {number}")


def _pair_of_record(
    record: Any, source_language: str, target_language: str, where: str
) -> tuple[str, str]:
    fields = record.get("translation", record) if isinstance(record, Mapping) else None
    if isinstance(fields, Mapping):
        for keys in ((source_language, target_language), ("source", "target")):
            source, target = (fields.get(key) for key in keys)
            if isinstance(source, str) and isinstance(target, str):
                return source, target
    raise ValueError(
        f"{where}: expected text under the keys {source_language!r} and {target_language!r}, or "
        f"'source' and 'target', or 'translation' that holds these; got {reprlib.repr(record)}"
    )


class _TmxHandlers:
    """Collects pairs from the events of an XML parser (TMX 1.4b: body, tu, tuv, seg)."""

    def __init__(self, source_language: str, target_language: str):
        self.wanted = (source_language, target_language)
        self.languages: set[str] = set()  # all that were met
        self.pairs: Pairs = []
        self.unit: dict[str, str] = {}  # language -> text
        self.language = ""
        self.text: list[str] | None = None  # None outside of <seg>
        self.codes = 0  # depth inside of native mark-up, which is not text

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "tu":
            self.unit = {}
        elif tag == "tuv":
            self.language = attributes.get("xml:lang", attributes.get("lang", ""))
            self.languages.add(self.language)
        elif tag == "seg":
            self.text, self.codes = [], 0
        elif self.text is not None and tag != "hi":
            self.codes += 1

    def data(self, text: str) -> None:
        if self.text is not None and not self.codes:
            self.text.append(text)

    def end(self, tag: str) -> None:
        if tag == "tu":
            source, target = (self.find(language) for language in self.wanted)
            if source is not None and target is not None:
                self.pairs.append((source, target))
        elif tag == "seg" and self.text is not None:
            self.unit.setdefault(self.language, "".join(self.text))
            self.text = None
        elif self.text is not None and tag != "hi":
            self.codes -= 1

    def find(self, wanted: str) -> str | None:
        for language, text in self.unit.items():
            if f"{language}-".lower().replace("_", "-").startswith(f"{wanted}-".lower()):
                return text
        return None

    def refuse_entity(self, name: str, *_) -> None:
        # Declared entities can blow a small file up to gigabytes, or name other files.
        raise ValueError(f"entity {name!r}: only the five entities of XML itself are read")


def _read_tmx(path: str | Path, source_language: str, target_language: str) -> Pairs:
    handlers = _TmxHandlers(source_language, target_language)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = handlers.start
    parser.EndElementHandler = handlers.end
    parser.CharacterDataHandler = handlers.data
    parser.EntityDeclHandler = handlers.refuse_entity
    parser.SkippedEntityHandler = handlers.refuse_entity
    with opened(path) as file:
        try:
            parser.ParseFile(file)
        except (expat.ExpatError, ValueError, LookupError) as error:
            line = parser.CurrentLineNumber
            raise ValueError(f"{path}, line {line}: malformed TMX ({error})") from error
    if not handlers.pairs:
        raise ValueError(
            f"{path}: no translation unit has both {source_language!r} and {target_language!r}; "
            f"languages in the file: {sorted(handlers.languages) or 'none'}"
        )
    return handlers.pairs


_FORMATS = {
    ".tsv": _pairs_of_tsv,
    ".txt": _pairs_of_tsv,
    ".tmx": _read_tmx,
    ".jsonl": _pairs_of_json_lines,
    ".json": _pairs_of_json_lines,
}


def load_corpus(
    name: str,
    folder: str | Path | None = None,
    *,
    source_language: str = "en",
    target_language: str = "de",
    train_size: int | None = None,
) -> Corpus:
    """Loads a corpus known by name.

    - "grammar": sentences of the embedded English-German grammar (`data.grammar`), made on the
      spot, always the same; 1,000 pairs each for validation and for the test set "test". In
      training some share a line and some sources are lower-cased or lack punctuation
      (`grammar.varied`); the test set "varied" has the sentences of "test" in such lines only.
    - "multi30k": image captions (Elliott et al. 2016, "Multi30K: Multilingual English-German
      Image Descriptions"; 2017; Barrault et al. 2018), any two of en, de, fr, cs: 29,000 pairs,
      1,014 for validation, test sets "test_2016_flickr" and (not in cs) "test_2017_flickr" of
      1,000 each. Raw text, from its home on GitHub with a checksum into the cache of Keras.
      Derived from Flickr30k: for research, not commercial use.

    Args:
        name: "grammar" or "multi30k".
        folder: Of multi30k only: a local folder with its files (`train.en.gz` or `train.en`, and
            so on) to read in place of the download, whatever they hold.
        source_language: Language to translate from.
        target_language: Language to translate into, another one.
        train_size: Number of training pairs: the first ones of multi30k (default all), as many
            as asked of grammar (default 100,000), in fewer lines.

    Raises:
        ValueError: An unknown name or language, or a `train_size` the corpus cannot give.
        FileNotFoundError: The folder lacks a file.
        OSError: The download failed, or came with another checksum.
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
    return Corpus(name, source_language, target_language, *parts)


_Parts = tuple[Pairs, Pairs, dict[str, Pairs]]


def _load_grammar(
    folder: str | Path | None, source_language: str, target_language: str, train_size: int | None
) -> _Parts:
    if folder is not None:
        raise ValueError(f"folder must be None for the embedded corpus, got {str(folder)!r}")
    splits = grammar.splits(train=train_size or 100_000, validation=1_000, test=1_000, seed=1)
    if source_language == "de":
        splits = {part: [(de, en) for en, de in pairs] for part, pairs in splits.items()}
    train, test = splits["train"], splits["test"]
    varied = list(grammar.varied(test, share=1, joined=0.2))
    return list(grammar.varied(train)), splits["validation"], {"test": test, "varied": varied}


def _load_multi30k(
    folder: str | Path | None, source_language: str, target_language: str, train_size: int | None
) -> _Parts:
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
    except Exception as error:  # get_file raises nothing narrower
        raise OSError(
            f"multi30k: could not get {MULTI30K_URL + file} ({error}). Fetch the files by hand "
            "and give their folder (--data-folder)"
        ) from error


_CORPORA = {
    "grammar": (("en", "de"), _load_grammar),
    "multi30k": (("en", "de", "fr", "cs"), _load_multi30k),
}
