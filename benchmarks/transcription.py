"""An imported Whisper beside CTranslate2, which runs the same file: texts and word error rates.

    python -m benchmarks.transcription FOLDER --data DATA [--clips 30] [--save]

FOLDER is a Whisper that CTranslate2 has converted. Clips are spoken digits of DATA's `fsdd`, and,
if `espeak-ng` is installed, English sentences of DATA's `tatoeba-en-de` that it speaks. Both
programs decode greedily, in float32, in English, and take the same features. Word errors are
counted in lower case, without punctuation, with digits as words.
"""

from __future__ import annotations

import argparse
import gzip
import io
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import ctranslate2
import numpy as np

from benchmarks import contest
from keras_transformer import load_pretrained
from keras_transformer.data.audio import log_mel, read_wav, resample
from keras_transformer.speech.transcriber import Transcriber

RATE, SECONDS = 16_000, 30
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
PROMPT = ("<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>")

Clip = tuple[np.ndarray, str]  # samples at `RATE`, and the text


def digits(data: Path, count: int) -> Iterator[Clip]:
    """Yield spoken digits, of all digits and speakers in turn."""
    with tarfile.open(data / "fsdd" / "recordings.tar.gz") as archive:
        for i in range(count):
            name = f"recordings/{i % 10}_{SPEAKERS[i % 6]}_{i // 30}.wav"
            samples, rate = read_wav(io.BytesIO(archive.extractfile(name).read()))
            yield resample(samples, rate, RATE), DIGITS[i % 10]


def sentences(data: Path, count: int) -> Iterator[Clip]:
    """Yield English sentences of 5 to 12 words, spoken by `espeak-ng`."""
    with gzip.open(data / "tatoeba-en-de" / "dev.en.gz", "rt", encoding="utf-8") as file:
        texts = dict.fromkeys(x.strip() for x in file)
    texts = [x for x in texts if 5 <= len(x.split()) <= 12 and re.fullmatch(r"[A-Za-z ,.?']+", x)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spoken.wav")
        for text in texts[:: len(texts) // count][:count]:
            subprocess.run(["espeak-ng", "-v", "en-us", "-s", "140", "-w", path, text], check=True)
            samples, rate = read_wav(path)
            yield resample(samples, rate, RATE), text


def spoken_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation, with digits as words."""
    text = re.sub(r"\d", lambda match: f" {DIGITS[int(match[0])]} ", text.lower())
    return re.sub(r"[^\w' ]", " ", text).split()


def word_errors(actual: str, expected: str) -> int:
    """Return the smallest number of words to insert, delete and replace."""
    first, second = spoken_words(actual), spoken_words(expected)
    row = list(range(len(second) + 1))
    for i, word in enumerate(first, start=1):
        before, row = row, [i]
        for j, other in enumerate(second, start=1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (word != other)))
    return row[-1]


def peer_texts(
    model: ctranslate2.models.Whisper, clips: Sequence[Clip], transcriber: Transcriber
) -> list[str]:
    """Return CTranslate2's texts of clips of at most `SECONDS`."""
    tokenizer, texts = transcriber.tokenizer, []
    prompt = [tokenizer.id_of(token) for token in PROMPT]
    for samples, _ in clips:
        padded = np.pad(samples, (0, SECONDS * RATE - len(samples))).astype("float32")
        features = np.array(log_mel(padded, RATE, transcriber.model.config.num_mels))
        view = ctranslate2.StorageView.from_array(np.ascontiguousarray(features.T[None]))
        result = model.generate(view, [prompt], beam_size=1)
        texts += tokenizer.decode([result[0].sequences_ids[0]])
    return [text.strip() for text in texts]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="a Whisper that CTranslate2 has converted")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--clips", type=int, default=30, help="clips of each kind")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    sets = {"spoken digits (FSDD)": [*digits(options.data, options.clips)]}
    if shutil.which("espeak-ng"):
        sets["sentences spoken by espeak-ng"] = [*sentences(options.data, options.clips)]
    transcriber, rows = load_pretrained(options.folder), []
    peer = ctranslate2.models.Whisper(str(options.folder), compute_type="float32")
    for name, clips in sets.items():
        start = time.perf_counter()
        ours = transcriber.transcribe(
            [samples for samples, _ in clips], sample_rate=RATE, language="en", beam_size=1
        )
        middle = time.perf_counter()
        theirs = peer_texts(peer, clips, transcriber)
        seconds = middle - start, time.perf_counter() - middle
        same = sum(x == y for x, y in zip(ours, theirs, strict=True))
        num_words = sum(len(spoken_words(text)) for _, text in clips)
        for program, texts, spent in zip(
            ("ours", "CTranslate2"), (ours, theirs), seconds, strict=True
        ):
            errors = sum(map(word_errors, texts, (text for _, text in clips)))
            rate = f"{100 * errors / num_words:.1f} %"
            rows.append([name, program, len(clips), num_words, rate, f"{same}", f"{spent:.0f}"])
    header = ["kind", "program", "clips", "words", "word error rate", "equal texts", "seconds"]
    note = "Greedy search in float32, each clip padded to 30 seconds; the same features for both."
    title = "A converted Whisper, here and in CTranslate2"
    contest.report("transcription", title, [contest.table(header, rows), note], options.save)


if __name__ == "__main__":
    main()
