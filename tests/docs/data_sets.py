"""Tiny stand-ins for the data sets that benchmarks read."""

from __future__ import annotations

import gzip
import json
import tarfile

import numpy as np

from keras_transformer.data.audio import write_wav


def write_digits(folder):
    """Writes a few recordings of spoken digits, all of them noise."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    with tarfile.open(folder / "recordings.tar.gz", "w:gz") as archive:
        for speaker in ("ann", "theo"):
            for take in (0, 5, 6):
                path = folder / f"7_{speaker}_{take}.wav"
                write_wav(path, rng.uniform(-0.5, 0.5, 900), 8000)
                archive.add(path, path.name)


def write(folder, pairs):
    """Writes them to a folder, from pairs of English and German sentences."""
    english, german = zip(*pairs, strict=True)

    def keep(name, lines):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in lines)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())

    for part in ("train", "val", "test_2016_flickr", "test_2017_flickr"):
        few = slice(None) if part == "train" else slice(2)
        keep(f"multi30k/{part}.en.gz", english[few])
        keep(f"multi30k/{part}.de.gz", german[few])
    keep("tinyshakespeare/input.txt.gz", english)
    for novel in ("war_and_peace", "moby_dick"):
        keep(f"gutenberg/{novel}.first90.gz", english * 20)
    rows = [f"{text}\t{number % 2}" for number, text in enumerate(english)]
    for part, few in {"train": slice(None), "dev": slice(4), "test": slice(4)}.items():
        keep(f"sst2/{part}.tsv.gz", ["sentence\tlabel", *rows[few]])
    keep("squad/suggested_article_split.tsv", ["Dogs\ttrain", "Cats\teval"])
    answers = [{"text": "dog", "answer_start": 8}]
    question = {"id": "{}", "question": "Who?", "answers": answers}
    data = []
    for number, title in enumerate(("Dogs", "Cats")):
        asked = [question | {"id": f"{number}-{i}"} for i in range(8)]
        paragraphs = [{"context": "The old dog sleeps.", "qas": asked}]
        data.append({"title": title, "shown_title": title, "paragraphs": paragraphs})
    keep("squad/dev-v1.1.reconstructed.json.gz", [json.dumps({"version": "1.1", "data": data})])
