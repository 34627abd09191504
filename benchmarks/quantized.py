"""Language models whose weights stay in 4 or 8 bits: memory, speed and perplexity.

    python -m benchmarks.quantized FILE.gguf [--only torch] [--precisions q4 bfloat16] [--save]
    python -m benchmarks.quantized --random [--save]

FILE.gguf is imported in each precision; `--random` writes a LLaMA with 1.1 billion random weights
in place of it. Each backend loads each precision in a process of its own, with one thread, and
writes 64 tokens after a short prompt, greedily. "memory" is the resident memory after the first
text less that of the same process with a tiny model, the tokenizer included; "tokens/s" are of
processor time, the best of three texts. Perplexity is that of the first 512 tokens of wikitext-2
(KT_DATA), with float32 arithmetic unless the precision is a 16-bit type.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import contest
from benchmarks.contest import Contestant
from benchmarks.train import BACKENDS

PRECISIONS = ("q4", "q8", "bfloat16", "float32")
PROMPT, NEW_TOKENS, SCORED, SEED = "Once upon a time", 64, 512, 0
RANDOM = dict(
    vocab_size=32_000, d_model=2048, d_ff=8192, num_layers=16, num_heads=32, num_kv_heads=8,
    max_length=2048, tie_output=False,
)  # fmt: skip
SINGLE = dict(
    OMP_NUM_THREADS="1", TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="1",
    XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    TF_CPP_MIN_LOG_LEVEL="2",
)  # fmt: skip


def imported(source: str, folder: str, precision: str) -> tuple[Callable, dict]:
    """A contestant that imports a GGUF file, or makes a random model if `source` is empty."""

    def run():
        if source:
            from keras_transformer import load_pretrained

            load_pretrained(source, precision=precision).save(folder)
        else:
            random_model(precision).save(folder)

    return run, {}


def random_model(precision: str) -> Any:
    """Return a language model with random weights, which never has them all in floats at once."""
    import numpy as np

    from keras_transformer import CausalLM
    from keras_transformer.layers.blocks import BLOCKS, in_blocks
    from keras_transformer.layers.layer import skip_init
    from keras_transformer.models import LLaMA, LLaMAConfig
    from keras_transformer.models.quantized import assign_matrices

    generator, tokenizer = np.random.default_rng(SEED), byte_tokenizer()
    blocks = precision if precision in BLOCKS else None
    with skip_init(), in_blocks(blocks):
        model = LLaMA(LLaMAConfig(**RANDOM), dtype=None if blocks else precision)
    model.quantization = blocks

    def value(path, shape):
        values = generator.standard_normal(shape, "float32")
        return np.ones(shape, "float32") if len(shape) == 1 else values * shape[0] ** -0.5

    assign_matrices(model, value)
    return CausalLM(model, tokenizer)


def byte_tokenizer() -> Any:
    """Return a tokenizer of a few hundred pieces."""
    from benchmarks.data import made_up_pairs
    from keras_transformer.text.text_tokenizer import TextTokenizer

    texts = [source for source, _ in made_up_pairs(500)]
    return TextTokenizer.train(texts, vocab_size=500)


def measured(folder: str, tokens: int) -> tuple[Callable, dict]:
    """A contestant that loads a folder, writes texts and measures."""
    import numpy as np

    from keras_transformer import CausalLM
    from keras_transformer.models import LLaMA, LLaMAConfig

    sizes = dict(vocab_size=100, d_model=64, d_ff=64, num_layers=1, num_heads=2)
    tiny = LLaMA(LLaMAConfig(**sizes))
    tiny({"token_ids": np.ones((1, 4), "int32")})
    before = contest.resident_bytes()
    begin = time.perf_counter()
    writer = CausalLM.load(folder)
    loading = time.perf_counter() - begin
    (prompt,) = writer.tokenizer.encode([PROMPT])
    search = writer.options(dict(max_new_tokens=tokens))

    def write():
        begin = time.process_time()
        (ids,) = writer.generate_ids([prompt], search, ends=[writer.model.config.vocab_size - 1])
        return len(ids) / (time.process_time() - begin), writer.tokenizer.decode([ids])[0]

    write()
    memory = contest.resident_bytes() - before
    speed, text = max(write() for _ in range(3))
    facts = dict(loading=loading, memory=memory, speed=speed, text=text)
    return (lambda: None), facts | dict(perplexity=perplexity(writer))


def perplexity(writer: Any) -> float | None:
    """Return the perplexity of a piece of wikitext-2; None without its text."""
    import numpy as np
    from keras import ops

    path = Path(os.environ.get("KT_DATA", "/nowhere"), "wikitext-2", "valid.txt.gz")
    if not path.exists():
        return None
    with gzip.open(path, "rt", encoding="utf-8") as file:
        ids = np.array(writer.tokenizer.encode([file.read(3000)]))[:, :SCORED].astype("int32")
    logits = writer.model({"token_ids": ids})[0, :-1]
    logits = np.float64(ops.convert_to_numpy(ops.stop_gradient(ops.cast(logits, "float32"))))
    logits -= logits.max(-1, keepdims=True)
    likelihood = logits[np.arange(len(logits)), ids[0, 1:]] - np.log(np.exp(logits).sum(-1))
    return float(np.exp(-likelihood.mean()))


def main() -> None:
    """Import the model in each precision, measure each backend and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", default="", help="a GGUF file")
    parser.add_argument("--random", action="store_true", help="a model with random weights")
    parser.add_argument("--only", nargs="+", choices=BACKENDS, default=[*BACKENDS])
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--tokens", type=int, default=NEW_TOKENS, help="new tokens of a text")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    if bool(options.file) == options.random:
        parser.error("give either a GGUF file or --random")
    rows = []
    with tempfile.TemporaryDirectory() as room:
        for precision in options.precisions:
            folder = str(Path(room, precision))
            task = dict(source=options.file, folder=folder, precision=precision)
            environment = BACKENDS["torch"] | SINGLE
            contest.alone(Contestant("import", "benchmarks.quantized:imported", task, environment))
            size = Path(options.file or Path(folder, "model.keras")).stat().st_size
            for backend in options.only:
                task = dict(folder=folder, tokens=options.tokens)
                environment = BACKENDS[backend] | SINGLE
                entry = Contestant(backend, "benchmarks.quantized:measured", task, environment)
                contest.alone(entry)
                rows.append([backend, precision, *_cells(entry.facts, size)])
                print(*rows[-1], repr(entry.facts["text"][:60]), sep="  ", flush=True)
    file = Path(options.file).name or "its folder"
    header = ["", "precision", "s to load", "memory, MB", f"memory / {file}", "tokens/s"]
    parts = [contest.table([*header, "perplexity"], rows)]
    name = "quantized-random" if options.random else "quantized"
    contest.report(name, "Weights in 4 and 8 bits", parts, options.save)


def _cells(facts, size):
    """Return the cells of a row, given the size of the file in bytes."""
    value = facts["perplexity"]
    return [
        f"{facts['loading']:.1f}",
        f"{facts['memory'] / 1e6:,.0f}",
        f"{facts['memory'] / size:.2f}",
        f"{facts['speed']:.1f}",
        "" if value is None else f"{value:.3f}",
    ]


if __name__ == "__main__":
    main()
