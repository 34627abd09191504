"""Speed of translating a test set: our translator and its peers in turn, with the same weights.

    python -m benchmarks.decode saved_models/multi30k [--data-folder multi30k] [--sentences 1000]
        [--beam-size 4] [--one-by-one] [--only ours-torch-float32 ctranslate2-int8 ...] [--save]
        [--processor "avx2 fma"] [--shortlist]
    python -m benchmarks.decode --short

The peers need `pip install -c constraints.txt -e ".[all,bench]"`. Each contestant translates
strings to strings with the same SentencePiece model. It gets the whole test set at once and forms
batches of the size that suits it, or one sentence at a time with --one-by-one. The length penalty
is 0, the only value that all of them define alike; contestants whose names end in -penalty are ours
with our default length penalty. The table also has the share of translations equal to ours in
float32, the BLEU score, and the seconds of the first sentence and of the first pass, in which JAX
compiles. "strict" contestants multiply in the precision that they are named after; our other
contestants use float32 where it is faster. --processor gives the instructions from which they
decide that, in place of this machine's. With --shortlist, the contestants ours-torch,
ours-tensorflow, ours-jax, ours-saved-model, ctranslate2 and pymarian use the shortlist of the
folder: ours allows the candidates of a row, the peers those of a batch. --short translates 32
made-up sentences with an untrained toy model, for which equality and BLEU say nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import contest
from benchmarks.contest import Contestant
from benchmarks.train import BACKENDS


def _all(precisions_of):
    return {
        f"{name}-{precision}": (setup, {"precision": precision}, environment)
        for name, (setup, precisions, environment) in precisions_of.items()
        for precision in precisions
    }


# Compute products in the named precision, even if they are slower or less exact than in float32.
STRICT = {"KERAS_TRANSFORMER_PRECISION": "strict"}
PENALTY = {"precision": "float32", "length_penalty": 0.6}
GRAPHS = {"onnx": ("float32",), "litert": ("float32", "float16", "int8", "int8-weights")}
CONTESTANTS = {
    **_all(
        {
            "ours-torch": ("ours", ("float32", "bfloat16", "float16", "int8"), BACKENDS["torch"]),
            "ours-torch-strict": ("ours", ("bfloat16", "int8"), BACKENDS["torch"] | STRICT),
            "ours-tensorflow": ("ours", ("float32", "bfloat16", "int8"), BACKENDS["tensorflow"]),
            "ours-tensorflow-strict": (
                "ours",
                ("bfloat16", "int8"),
                BACKENDS["tensorflow"] | STRICT,
            ),
            "ours-jax": ("ours", ("float32", "bfloat16", "int8"), BACKENDS["jax"]),
            "ours-jax-strict": ("ours", ("bfloat16", "int8"), BACKENDS["jax"] | STRICT),
            "ctranslate2": (
                "ctranslate2",
                ("float32", "int8", "float16"),
                BACKENDS["torch"],
            ),
            "ctranslate2-workers": (
                "ctranslate2_workers",
                ("float32", "int8"),
                BACKENDS["torch"],
            ),
            "ours-on-ctranslate2": (
                "ours_on_ctranslate2",
                ("float32", "int8"),
                BACKENDS["torch"],
            ),
            "pymarian": ("pymarian", ("float32", "int8"), BACKENDS["torch"]),
            "ours-inductor": ("ours_inductor", ("float32",), BACKENDS["torch"]),
            "transformers": (
                "transformers",
                ("float32", "bfloat16"),
                BACKENDS["torch"],
            ),
        }
    ),
    # With our default length penalty. Compare these two only with each other (`--only`).
    "ours-torch-penalty": ("ours", PENALTY, BACKENDS["torch"]),
    "ours-on-ctranslate2-penalty": ("ours_on_ctranslate2", PENALTY, BACKENDS["torch"]),
    "ours-saved-model": ("saved_model", {}, BACKENDS["tensorflow"]),
    "ours-saved-model-jit": ("saved_model", {"jit_compile": True}, BACKENDS["tensorflow"]),
    **{
        f"ours-{form}-{precision}": (
            "graphs",
            {"form": form, "precision": precision},
            BACKENDS["torch"],
        )
        for form, precisions in GRAPHS.items()
        for precision in precisions
    },
}
NOT_BY_DEFAULT = (
    "ctranslate2-float16",
    "pymarian-float32",  # a package of 0.6 GB
    "pymarian-int8",
    "ours-inductor-float32",  # it compiles for minutes
    "ours-torch-float16",
    "ours-jax-bfloat16",
    "ours-jax-int8",
    "ours-tensorflow-bfloat16",
    "ours-tensorflow-int8",
    "ours-saved-model-jit",
    *(name for name in CONTESTANTS if "-strict-" in name or "-onnx-" in name or "-litert-" in name),
    "ours-torch-penalty",
    "ours-on-ctranslate2-penalty",
)
REFERENCE = "ours-torch-float32"


def compete(
    folder: Path,
    pairs: Sequence[tuple[str, str]],
    beam_size: int,
    one_by_one: bool,
    names: Sequence[str],
    rounds: int,
    shortlist: bool = False,
) -> list[list]:
    """Return the rows of the table, one per contestant."""
    import sacrebleu

    lines, references = map(list, zip(*pairs, strict=True))
    options = dict(folder=str(folder), lines=lines, beam_size=beam_size, one_by_one=one_by_one)
    options |= {"shortlist": True} if shortlist else {}
    contestants = {}
    for name in names:
        setup, more, environment = CONTESTANTS[name]
        contestants[name] = Contestant(
            name, f"benchmarks.decoders:{setup}", {**options, **more}, environment
        )
    contest.contest(list(contestants.values()), rounds, lambda: None)
    ours = [name for name in names if name.startswith("ours")]
    reference = contestants[REFERENCE if REFERENCE in names else names[0]].facts["translations"]
    rows = []
    for name, contestant in contestants.items():
        translations = contestant.facts["translations"]
        same = sum(a == b for a, b in zip(translations, reference, strict=True))
        rows.append(
            [
                name,
                f"{len(lines) / contestant.seconds:.1f}",
                f"{contestant.facts['first_seconds']:.2f}",
                f"{contestant.facts['pass_seconds']:.2f}",
                f"{same / len(lines):.1%}",
                f"{sacrebleu.corpus_bleu(translations, [references]).score:.2f}",
                f"{max(x['peak_bytes'] for x in contestant.results) / 2**30:.2f}",
                _processor_milliseconds(contestant, len(lines)),
                *_latencies(contestant),
                *[
                    ""
                    if name == own_name
                    else f"{contest.ratio(contestant, contestants[own_name]):.2f}"
                    for own_name in ours
                ],
            ]
        )
    return rows


def _processor_milliseconds(contestant, sentences):
    seconds = (x["user_seconds"] + x["kernel_seconds"] for x in contestant.results)
    return f"{1e3 * statistics.median(seconds) / sentences:.1f}"


def _latencies(contestant):
    """Return the median and the 99th percentile in milliseconds, if sentences come one by one."""
    latencies = [1e3 * seconds for x in contestant.results for seconds in x["latencies"]]
    if not latencies:
        return []
    slow = sorted(latencies)[int(0.99 * len(latencies))]
    return [f"{x:.0f}" for x in (statistics.median(latencies), slow)]


def toy(folder: Path) -> list[tuple[str, str]]:
    """Write a small untrained translator into `folder`; return pairs to translate."""
    import subprocess
    import sys

    from benchmarks.data import made_up_pairs

    pairs = made_up_pairs(2_000)
    program = (
        "import json, sys\n"
        "from keras_transformer import Transformer, TransformerConfig, Translator\n"
        "from keras_transformer.text import SentencePieceTokenizer\n"
        "pairs = json.load(sys.stdin)\n"
        "tokenizer = SentencePieceTokenizer.train(*zip(*pairs), vocab_size=1000)\n"
        "config = TransformerConfig.tiny(tokenizer.target_vocab_size, max_length=256)\n"
        "Translator(Transformer(config), tokenizer).save(sys.argv[1])\n"
    )
    environment = {**os.environ, "KERAS_BACKEND": "torch"}
    subprocess.run(
        [sys.executable, "-c", program, str(folder)], env=environment, input=json.dumps(pairs),
        text=True, check=True,
    )  # fmt: skip
    return pairs


def main() -> None:
    """Run the contest and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="a saved translator")
    parser.add_argument(
        "--data-folder", type=Path, help="folder of Multi30k (default: download it)"
    )
    parser.add_argument(
        "--sentences", type=int, default=1000, help="first lines of test_2016_flickr"
    )
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--one-by-one", action="store_true", help="one sentence at a time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shortlist", action="store_true", help="use the folder's shortlist")
    parser.add_argument(
        "--processor", help="instructions to choose a precision by (default: this machine's)"
    )
    default = [name for name in CONTESTANTS if name not in NOT_BY_DEFAULT]
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=default)
    parser.add_argument("--short", action="store_true", help="32 made-up sentences, toy model")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    parser.add_argument("--part", default="", help="suffix of the table's name")
    options = parser.parse_args()
    if (options.folder is None) != options.short:
        parser.error("give either the folder of a saved translator or --short")
    for name in ("sentences", "beam_size", "rounds"):
        if getattr(options, name) < 1:
            parser.error(
                f"--{name.replace('_', '-')} must be at least 1, got {getattr(options, name)}"
            )
    if options.processor is not None:  # the contestants' processes inherit it
        os.environ["KERAS_TRANSFORMER_PROCESSOR"] = options.processor
    with tempfile.TemporaryDirectory() as room:
        if options.short:
            folder, name = Path(room), "toy"
            pairs = toy(folder)[:32]
        else:
            from keras_transformer.data.built_in_corpora import load_corpus

            folder, name = options.folder, options.folder.name
            tests = load_corpus("multi30k", options.data_folder, train_size=1).tests
            pairs = tests["test_2016_flickr"][: options.sentences]
        how_to = options.beam_size, options.one_by_one, options.only, options.rounds
        rows = compete(folder, pairs, *how_to, options.shortlist)
    header = ["", "sentences/s", "first s", "first pass s"]
    header += ["same as ours", "BLEU", "peak GiB", "processor ms"]
    header += ["p50 ms", "p99 ms"] if options.one_by_one else []
    header += [f"{entry} is faster by" for entry in options.only if entry.startswith("ours")]
    how = "one by one" if options.one_by_one else "all at once"
    parts = [f"decode-{name}-beam{options.beam_size}"]
    parts += ["one-by-one"] if options.one_by_one else []
    parts += ["shortlist"] if options.shortlist else []
    parts += [options.part] if options.part else []
    contest.report(
        "-".join(parts),
        f"Decoding, {name}: {len(pairs)} sentences {how}, beam {options.beam_size}",
        [contest.table(header, rows)],
        options.save,
    )


if __name__ == "__main__":
    main()
