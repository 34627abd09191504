"""Speed of a real epoch of Multi30k: our model and MarianMT in turn, in target tokens per second.

    python -m benchmarks.epoch --data-folder FOLDER [--size tiny] [--precision bfloat16]
        [--tokens-per-batch 2048] [--only ours-torch marian ...] [--pieces 8] [--save]
    python -m benchmarks.epoch --short

`benchmarks.train` compares steps on batches without padding. Here each side reads the corpus as its
users do: ours in buckets of a token budget, or packed; MarianMT in shuffled batches padded to their
longest sentence, with as many sentences per batch as give the same number of updates per epoch. The
epoch is cut into pieces that run in turn. Only tokens that are not padding count.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks import contest, train, trainers
from benchmarks.contest import Contestant
from benchmarks.data import made_up_pairs
from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.data.text_files import read_pairs
from keras_transformer.text import SentencePieceTokenizer, load_tokenizer

MAX_LENGTH = 128


def corpus(data_folder: str | None) -> list[tuple[str, str]]:
    """Return the training pairs of Multi30k, or 2,000 made-up ones without a folder."""
    if data_folder is None:
        return made_up_pairs(2_000)
    return read_pairs(Path(data_folder, "train.en.gz"), Path(data_folder, "train.de.gz"))


def token_batches(
    data_folder: str | None, tokenizer: str, tokens_per_batch: int, packed_length: int | None = None
) -> TokenBatches:
    """Return our batches of the corpus; `tokenizer` is the folder of a saved tokenizer."""
    return TokenBatches(
        corpus(data_folder), load_tokenizer(tokenizer), tokens_per_batch=tokens_per_batch,
        packed_length=packed_length, max_length=packed_length or MAX_LENGTH,
    )  # fmt: skip


def ours(
    size: str,
    weights: str,
    precision: str,
    data_folder: str | None,
    tokenizer: str,
    tokens_per_batch: int,
    pieces: int,
    packed_length: int | None = None,
) -> tuple[Callable, dict]:
    """A contestant: our model, trained by `fit` on our batches."""
    from keras_transformer.backend import keep_compilations

    keep_compilations()
    model = trainers.our_model(size, weights, precision)
    batches = token_batches(data_folder, tokenizer, tokens_per_batch, packed_length)
    tokens, first = [], {}  # target tokens of each step; first step of each shape
    for step in range(len(batches)):
        inputs, labels = batches.batch(step)
        tokens.append(np.count_nonzero(labels != batches.tokenizer.pad_id))
        first.setdefault((inputs["source_ids"].shape, labels.shape), step)

    def fit(start, steps):
        model.fit(batches.dataset(start, steps), steps_per_epoch=steps, verbose=0)

    for step in first.values():  # compile every shape before the clock runs
        fit(step, 1)
    return _in_pieces(fit, tokens, pieces), {"padding": batches.padding, "batches": len(batches)}


def marian(
    size: str,
    weights: str,
    precision: str,
    data_folder: str | None,
    tokenizer: str,
    tokens_per_batch: int,
    pieces: int,
    attention: str = "sdpa",
) -> tuple[Callable, dict]:
    """A contestant: MarianMT, trained by a plain PyTorch loop on shuffled batches."""
    forward, model = trainers.marian_logits(size, weights, attention)
    step = trainers.TorchStep(model, forward, precision)
    batches = token_batches(data_folder, tokenizer, tokens_per_batch)
    tokenizer = batches.tokenizer
    sources, targets = zip(*corpus(data_folder), strict=True)
    sides = tokenizer.encode_source(sources), tokenizer.encode_target(targets)
    order = np.random.default_rng(0).permutation(len(sources))
    data, tokens, cells = [], [], 0
    for part in np.array_split(order, len(batches)):
        source_ids, labels = (_padded([side[i] for i in part], tokenizer.pad_id) for side in sides)
        begin = np.full((len(part), 1), tokenizer.bos_id)
        target_ids = np.concatenate([begin, labels[:, :-1]], axis=1)
        data.append((source_ids, target_ids, source_ids != tokenizer.pad_id, labels))
        tokens.append(np.count_nonzero(labels != tokenizer.pad_id))
        cells += source_ids.size + labels.size

    def fit(start, steps):
        for *inputs, labels in data[start : start + steps]:
            step(step.tensors(*inputs), step.tensors(labels)[0], tokenizer.pad_id)
        step.wait()

    fit(0, 1)
    padding = 1 - sum(len(ids) for side in sides for ids in side) / cells
    return _in_pieces(fit, tokens, pieces), {"padding": padding, "batches": len(data)}


def _padded(rows, pad_id):
    cells = np.full((len(rows), max(map(len, rows))), pad_id)
    for row, ids in zip(cells, rows, strict=True):
        row[: len(ids)] = ids
    return cells


def _in_pieces(fit, tokens, pieces):
    """Return a `run` that trains the next piece of the epoch and returns its tokens and seconds."""
    edges = np.linspace(0, len(tokens), pieces + 1).astype(int)
    number = pieces - 1  # the warmup round runs the last piece

    def run():
        nonlocal number
        start, stop = int(edges[number]), int(edges[number + 1])
        number = (number + 1) % pieces
        begin = time.perf_counter()
        fit(start, stop - start)
        return {
            "seconds": time.perf_counter() - begin,
            "tokens": int(sum(tokens[start:stop])),
        }

    return run


PACKED = {"packed_length": 128}
CONTESTANTS = {
    **{f"ours-{b}": ("ours", {}, environment) for b, environment in train.BACKENDS.items()},
    **{f"ours-{b}-packed": ("ours", PACKED, env) for b, env in train.BACKENDS.items()},
    "marian": ("marian", {}, train.BACKENDS["torch"]),
    "marian-eager-attention": ("marian", {"attention": "eager"}, train.BACKENDS["torch"]),
}


def compete(
    data_folder: str | None,
    size: str,
    precision: str,
    tokens_per_batch: int,
    names: Sequence[str],
    pieces: int,
) -> list[list]:
    """Return the rows of the table, one per contestant."""
    with tempfile.TemporaryDirectory() as room:
        weights, tokenizer = str(Path(room, "weights.safetensors")), str(Path(room, "tokenizer"))
        train.write_weights(size, weights)
        vocabulary = 1_000 if data_folder is None else trainers.VOCABULARY
        pairs = corpus(data_folder)
        Path(tokenizer).mkdir()
        SentencePieceTokenizer.train(*zip(*pairs, strict=True), vocab_size=vocabulary).save(
            tokenizer
        )
        options = dict(
            size=size, weights=weights, precision=precision, data_folder=data_folder,
            tokenizer=tokenizer, tokens_per_batch=tokens_per_batch, pieces=pieces,
        )  # fmt: skip
        entries = {
            name: Contestant(name, f"benchmarks.epoch:{function}", options | more, environment)
            for name, (function, more, environment) in CONTESTANTS.items()
            if name in names
        }
        contest.contest(list(entries.values()), pieces, lambda: None)
    ours = [entry for name, entry in entries.items() if name.startswith("ours")]
    rows = []
    for name, entry in entries.items():
        tokens, seconds = (sum(r[key] for r in entry.results) for key in ("tokens", "seconds"))
        row = [name, entry.facts["batches"], f"{entry.facts['padding']:.1%}", f"{seconds:.1f}"]
        row += [
            f"{tokens / seconds:,.0f}",
            *(f"{contest.ratio(entry, our_entry):.2f}" for our_entry in ours),
        ]
        rows.append(row)
    return rows


def main() -> None:
    """Run the contest and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(os.environ["KT_DATA"]) / "multi30k" if "KT_DATA" in os.environ else None
    parser.add_argument(
        "--data-folder",
        type=Path,
        default=default,
        help="folder of Multi30k (default: $KT_DATA/multi30k)",
    )
    parser.add_argument("--size", choices=trainers.SIZES, default="tiny")
    parser.add_argument("--precision", choices=trainers.KERAS_PRECISION, default="bfloat16")
    parser.add_argument("--tokens-per-batch", type=int, default=2048)
    parser.add_argument("--pieces", type=int, default=8, help="pieces to cut the epoch into")
    default = ["ours-torch", "ours-torch-packed", "marian", "marian-eager-attention"]
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=default)
    parser.add_argument("--short", action="store_true", help="train a toy model on made-up text")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    if (options.data_folder is None) and not options.short:
        parser.error("give --data-folder, set KT_DATA or use --short")
    if options.tokens_per_batch < MAX_LENGTH or options.pieces < 1:
        parser.error(f"--tokens-per-batch must be at least {MAX_LENGTH}, --pieces at least 1")
    folder = None if options.short else str(options.data_folder)
    size = "toy" if options.short else options.size
    rows = compete(
        folder, size, options.precision, options.tokens_per_batch, options.only, options.pieces
    )
    ours = [name for name in CONTESTANTS if name in options.only and name.startswith("ours")]
    header = ["", "updates", "padding", "seconds", "target tokens/s"]
    header += [f"{name} is faster by" for name in ours]
    contest.report(
        f"epoch-{size}-{options.precision}",
        f"An epoch of {'made-up text' if options.short else 'Multi30k'}, {size}, "
        f"{options.precision}",
        [contest.table(header, rows)],
        options.save,
    )


if __name__ == "__main__":
    main()
