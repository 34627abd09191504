"""Speed of the input pipeline in batches per second, to compare with training steps per second.

    python -m benchmarks.data [--data-folder FOLDER] [--tokens-per-batch 4096]
        [--packed-length 128] [--batches 300]

Measures the time to read the corpus (tokenize it and plan the batches), then batches and target
tokens per second with 0, 1 and 2 worker processes, with and without packing and subword sampling.
The table also has the number of batch shapes (compilation time grows with it) and the share of
padding. The text is Multi30k, English to German, from the given folder or $KT_DATA/multi30k;
without either it is made up.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from pathlib import Path
from random import Random

import numpy as np

from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.data.text_files import read_pairs
from keras_transformer.text import SentencePieceTokenizer


def made_up_pairs(count: int = 29_000) -> list[tuple[str, str]]:
    """Return pairs of sentences of random words, about as long as image captions."""
    random = Random(0)
    letters = "etaoinshrdlucmfwygpbvk"
    words = ["".join(random.choices(letters, k=random.randint(2, 10))) for _ in range(5_000)]

    def sentence() -> str:
        return " ".join(random.choices(words, k=max(3, round(random.gauss(12, 4)))))

    return [(sentence(), sentence()) for _ in range(count)]


def cells_and_tokens(batches: TokenBatches, count: int) -> tuple[int, int]:
    """Return the cells of both sides of the first `count` batches, and how many are not padding."""
    cells = tokens = 0
    for step in range(count):
        inputs, labels = batches.batch(step)
        for ids in (inputs["source_ids"], labels):
            cells += ids.size
            tokens += np.count_nonzero(ids != batches.tokenizer.pad_id)
    return cells, tokens


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    default = Path(os.environ["KT_DATA"]) / "multi30k" if "KT_DATA" in os.environ else None
    parser.add_argument(
        "--data-folder",
        type=Path,
        default=default,
        help="folder of Multi30k (default: $KT_DATA/multi30k; without it, made-up text)",
    )
    parser.add_argument("--tokens-per-batch", type=int, default=4096)
    parser.add_argument("--packed-length", type=int, default=128, help="tokens of a packed row")
    parser.add_argument("--batches", type=int, default=300, help="batches per row of the table")
    arguments = parser.parse_args()
    folder = arguments.data_folder
    pairs = made_up_pairs()
    if folder is not None:
        pairs = read_pairs(folder / "train.en.gz", folder / "train.de.gz")
    tokenizer = SentencePieceTokenizer.train(*zip(*pairs, strict=True), vocab_size=8000)
    print(f"{'made-up text' if folder is None else folder.name}: {len(pairs):,} pairs")
    print(
        "sampling  packed  reading  shapes  padding  workers  first batches  batches/s"
        "  target tokens/s"
    )
    layouts = {
        "no": {},
        "yes": dict.fromkeys(("packed_length", "max_length"), arguments.packed_length),
    }
    for sampling, packed in itertools.product((0.0, 0.1), layouts):
        start = time.perf_counter()
        batches = TokenBatches(
            pairs,
            tokenizer,
            tokens_per_batch=arguments.tokens_per_batch,
            sampling=sampling,
            **layouts[packed],
        )
        reading = time.perf_counter() - start
        cells, tokens = cells_and_tokens(batches, min(len(batches), 100))
        for num_workers in (0, 1, 2):
            iterator = iter(batches.stream(num_workers=num_workers))
            start = time.perf_counter()
            # The third batch is the first one made in advance: all workers have started by then.
            for _ in range(3):
                next(iterator)
            ready = time.perf_counter()
            target_tokens = 0
            for _ in range(arguments.batches):
                _, labels = next(iterator)
                target_tokens += np.count_nonzero(labels != tokenizer.pad_id)
            seconds = time.perf_counter() - ready
            iterator.close()
            padding = 1 - tokens / cells
            print(
                f"{sampling:8}  {packed:6}  {reading:5.2f} s  {len(batches.shapes):6}"
                f"  {padding:7.1%}  {num_workers:7}  {ready - start:11.2f} s"
                f"  {arguments.batches / seconds:9,.0f}  {target_tokens / seconds:15,.0f}"
            )


if __name__ == "__main__":
    main()
