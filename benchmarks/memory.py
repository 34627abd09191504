"""Memory of training, against the peers, and of translating a growing number of sentences.

    python -m benchmarks.memory [--size base] [--rows 128] [--length 32] [--precision float32]
        [--only ours-torch marian ...] [--sentences 500 1000 2000 4000] [--part NAME] [--save]
    python -m benchmarks.memory --only ours-torch ours-torch-remat --sentences --part remat
    python -m benchmarks.memory --short

The peers need `pip install -c constraints.txt -e ".[all,bench]"`. Each figure is the resident
memory of one process that runs alone. It is host memory: GPU memory is not measured.

Training: `before` is the memory when the model has its weights but no step has run, most of it for
the libraries. `difference` is the peak less `before`: gradients, moments of Adam, activations and
the compiler's memory. All contestants must give the same loss. Processor time, the kernel's share
of it and page faults are of the steps of the last of three runs.

Translating: `Translator.translate_stream` with an untrained model, whose translations all reach the
length limit. The stream repeats the same sentences, half of the smallest number at a time, so all
batches are alike and only their number grows.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import contest, train, trainers
from benchmarks.contest import Contestant

SENTENCES = "sentences.txt"
STEPS = 3  # of a run
EXTRA = 10  # a translation has at most this many tokens more than its source
NAMES = [*(f"ours-{backend}" for backend in train.BACKENDS), "marian", "torch.nn"]


def training(
    size: str, rows: int, length: int, precision: str, names: Sequence[str]
) -> list[list[str]]:
    """Return the rows of the table, one per contestant."""
    with tempfile.TemporaryDirectory() as room:
        entries = train.contestants(room, names, size, rows, length, precision, STEPS)
        for entry in entries.values():
            contest.alone(entry, runs=3)
    train.check_same_loss(entries, precision)
    before = {name: entry.facts["resident_bytes"] for name, entry in entries.items()}
    peak = {name: entry.results[-1]["peak_bytes"] for name, entry in entries.items()}
    added = {name: peak[name] - before[name] for name in entries}
    return [
        [name, *(f"{of[name] / 2**20:,.0f}" for of in (peak, before, added))]
        + [f"{of[name] / of['marian']:.2f}" if "marian" in of else "" for of in (peak, added)]
        + _work(entries[name].results[-1])
        for name in entries
    ]


def _work(result):
    """Return processor seconds per step, the kernel's share, and page faults per step."""
    kernel = result["kernel_seconds"]
    seconds = result["user_seconds"] + kernel
    return [
        f"{seconds / STEPS:.2f}",
        f"{kernel / seconds:.1%}",
        f"{result['page_faults'] / STEPS:,.0f}",
    ]


def translating(
    sentences: Sequence[int], names: Sequence[str], tokens_per_batch: int
) -> list[list[str]]:
    """Return the rows of the table, one per backend."""
    backends = [backend for backend in train.BACKENDS if f"ours-{backend}" in names]
    rows: list[list[str]] = []
    if not sentences:
        return rows
    chunk_size = max(1, sentences[0] // 2)
    with tempfile.TemporaryDirectory() as folder:
        for backend in backends:
            environment = train.BACKENDS[backend]
            if backend == backends[0]:
                options = dict(folder=folder, sentences=chunk_size)
                setup = "benchmarks.memory:untrained"
                contest.alone(Contestant("translator", setup, options, environment))
            peaks = []
            for count in sentences:
                options = dict(folder=folder, sentences=count, chunk_size=chunk_size)
                options |= dict(tokens_per_batch=tokens_per_batch)
                setup = "benchmarks.memory:stream"
                entry = Contestant(f"{backend}, {count:,}", setup, options, environment)
                contest.alone(entry)
                peaks.append(entry.results[-1]["peak_bytes"])
            growth = f"{peaks[-1] / peaks[0] - 1:+.1%}"
            rows.append([f"ours-{backend}", *(f"{x / 2**20:,.0f}" for x in peaks), growth])
    return rows


def untrained(folder: str, sentences: int) -> tuple[Callable, dict]:
    """A contestant that writes a small translator with random weights, and sentences for it."""
    from benchmarks.data import made_up_pairs
    from keras_transformer import SentencePieceTokenizer, Transformer, TransformerConfig, Translator

    def run():
        pairs = made_up_pairs(2_000)
        tokenizer = SentencePieceTokenizer.train(*zip(*pairs, strict=True), vocab_size=6_000)
        config = TransformerConfig.tiny(tokenizer.target_vocab_size, max_length=256)
        Translator(Transformer(config), tokenizer).save(folder)
        lines = [f"{source}\n" for source, _ in pairs[:sentences]]
        Path(folder, SENTENCES).write_text("".join(lines), "utf-8")

    return run, {}


def stream(
    folder: str, sentences: int, chunk_size: int, tokens_per_batch: int
) -> tuple[Callable, dict]:
    """A contestant that translates the folder's sentences, repeated up to the given number."""
    from keras_transformer import Translator

    translator = Translator.load(folder)

    def run():
        lines = Path(folder, SENTENCES).read_text("utf-8").splitlines()
        texts = itertools.islice(itertools.cycle(lines), sentences)
        options = dict(chunk_size=chunk_size, tokens_per_batch=tokens_per_batch)
        for _ in translator.translate_stream(texts, max_extra_length=EXTRA, **options):
            pass

    return run, {}


def main() -> None:
    """Run one process after another and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=trainers.SIZES, default="base")
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--precision", choices=trainers.KERAS_PRECISION, default="float32")
    parser.add_argument("--only", nargs="+", choices=train.CONTESTANTS, default=NAMES)
    sentences = [500, 1000, 2000, 4000]
    parser.add_argument(
        "--sentences",
        nargs="*",
        type=int,
        default=sentences,
        help="numbers of sentences to translate; none: only train",
    )
    parser.add_argument(
        "--tokens-per-batch", type=int, default=2048, help="token budget of a batch in translating"
    )
    parser.add_argument("--short", action="store_true", help="a toy model, 100 and 200 sentences")
    parser.add_argument("--part", default="", help="suffix of the table's name")
    parser.add_argument("--save", action="store_true", help="write the tables to results/")
    options = parser.parse_args()
    if options.short:
        options.size, options.rows, options.sentences = "toy", 32, [100, 200]
    for name in ("rows", "length", "tokens_per_batch", "sentences"):
        value = getattr(options, name)
        if min(value if isinstance(value, list) else [value], default=1) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    size, rows, length, precision = options.size, options.rows, options.length, options.precision
    steps = training(size, rows, length, precision, options.only)
    header = ["", "peak MiB", "before", "difference", "peak / marian", "difference / marian"]
    header += ["processor s per step", "of it the kernel", "page faults per step"]
    parts = [
        f"## Training, {size}: {rows} pairs of {length} tokens, {precision}",
        contest.table(header, steps),
    ]
    if lines := translating(options.sentences, options.only, options.tokens_per_batch):
        times = options.sentences[-1] / options.sentences[0]
        growth = ", ".join(f"{name} {growth}" for name, *_, growth in lines)
        parts += [
            f"## Translating: beam 4, {options.tokens_per_batch:,} tokens per batch, peak MiB",
            contest.table(["sentences", *(f"{x:,}" for x in options.sentences), "growth"], lines),
            f"Memory for {times:.3g} times as many sentences: {growth}.",
        ]
    name = f"memory-{size}-{rows}x{length}-{precision}"
    name += f"-{options.part}" if options.part else ""
    contest.report(name, "Memory", parts, options.save)


if __name__ == "__main__":
    main()
