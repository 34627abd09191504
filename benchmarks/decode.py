"""Translating a test set, ours and the peers' in turn, with the same trained weights.

    python -m benchmarks.decode saved_models/multi30k [--data-folder multi30k] [--sentences 1000]
        [--beam-size 4] [--one-by-one] [--only ours-torch-float32 ctranslate2-int8 ...] [--save]
    python -m benchmarks.decode --short

The peers need `pip install -c constraints.txt -e ".[all,bench]"`. Everyone gets strings and gives
strings, with the same SentencePiece model, the whole test set at once, in batches as each likes
them best; with --one-by-one a sentence at a time. The length penalty is 0, which means the same to
all. Before anything is timed the translations are compared: a table says how many are equal to our
float32 ones and what BLEU they have. --short takes a toy model without training, where equality
says nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from benchmarks import contest, peers
from benchmarks.contest import Contestant
from benchmarks.train import BACKENDS

ROOM = 50  # a translation may be so many tokens longer than its source
_rooms: list[tempfile.TemporaryDirectory] = []  # until the process ends


def ours(folder, lines, beam_size, one_by_one, precision):
    """A contestant: `Translator.translate`."""
    from keras_transformer import Translator

    translator = Translator.load(folder, precision=precision)

    def translate(lines):
        return translator.translate(lines, beam_size=beam_size, length_penalty=0.0)

    return _contestant(translate, lines, one_by_one)


def pool(folder, lines, beam_size, one_by_one, precision):
    """A contestant: `TranslatorPool.translate`, a process a core."""
    from keras_transformer import TranslatorPool

    translators = TranslatorPool(folder, precision=precision)

    def translate(lines):
        return translators.translate(lines, beam_size=beam_size, length_penalty=0.0)

    return _contestant(translate, lines, one_by_one)


def saved_model(folder, lines, beam_size, one_by_one, batch_size=64, jit_compile=False):
    """A contestant: our SavedModel, batches of sentences of like length made by the caller."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 - its operations are in the graph

    import keras_transformer.export

    room = _room()
    path = keras_transformer.export.saved_model(
        folder, Path(room, "served"), beam_size=beam_size, length_penalty=0.0,
        jit_compile=jit_compile,
    )  # fmt: skip
    loaded = tf.saved_model.load(str(path))

    def batch(lines):
        texts = loaded.translate(tf.constant(lines))["translations"].numpy()
        return [text.decode() for text in texts]

    def translate(lines):
        return _by_length(batch, lines, len, batch_size)

    return _contestant(translate, lines, one_by_one)


def ctranslate2(folder, lines, beam_size, one_by_one, precision, workers=1):
    """A contestant: CTranslate2 on our weights, all cores for one batch or shared by workers."""
    import ctranslate2

    from keras_transformer.export.ctranslate2 import specification

    tokenizer, config, weights = _model(folder)
    pieces = tokenizer.pieces_of("target")
    room = _room()
    spec = specification(config, weights, tokenizer.pieces_of("source"), pieces)
    spec.validate()
    spec.save(room)
    numbers = {piece: number for number, piece in enumerate(pieces)}
    device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    threads = {}
    if device == "cpu":
        cores = len(os.sched_getaffinity(0))
        threads = {"inter_threads": workers, "intra_threads": max(1, cores // workers)}
    model = ctranslate2.Translator(room, device=device, compute_type=precision, **threads)

    def translate(lines):
        ids = tokenizer.encode_source(lines)
        found = model.translate_batch(
            [[pieces[i] for i in row] for row in ids], beam_size=beam_size, length_penalty=0.0,
            max_batch_size=2048 // workers, batch_type="tokens",
            min_decoding_length=0, max_decoding_length=max(map(len, ids)) + ROOM,
        )  # fmt: skip
        return tokenizer.decode_target([[numbers[x] for x in one.hypotheses[0]] for one in found])

    return _contestant(translate, lines, one_by_one)


def ctranslate2_workers(**options):
    """A contestant: CTranslate2 with a worker a core."""
    return ctranslate2(**options, workers=len(os.sched_getaffinity(0)))


def transformers(folder, lines, beam_size, one_by_one, precision, batch_size=64):
    """A contestant: `transformers`' generate on our weights."""
    import torch

    tokenizer, config, weights = _model(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = peers.marian(config, weights).to(device, getattr(torch, precision)).eval()

    @torch.no_grad()
    def batch(ids):
        longest = max(map(len, ids))
        padded = torch.tensor([[*row, *[config.pad_id] * (longest - len(row))] for row in ids])
        padded = padded.to(device)
        found = model.generate(
            input_ids=padded, attention_mask=(padded != config.pad_id).long(),
            num_beams=beam_size, do_sample=False, length_penalty=0.0, max_length=longest + ROOM,
        )  # fmt: skip
        return tokenizer.decode_target([_until_end(row, config) for row in found[:, 1:].tolist()])

    def translate(lines):
        return _by_length(batch, tokenizer.encode_source(lines), len, batch_size)

    return _contestant(translate, lines, one_by_one)


def _until_end(ids, config):
    end = ids.index(config.eos_id) if config.eos_id in ids else len(ids)
    return [token for token in ids[:end] if token != config.pad_id]


def _by_length(batch, items, length, batch_size):
    """The results of batches of items of like length, in the items' order."""
    order = sorted(range(len(items)), key=lambda i: -length(items[i]))
    results = [""] * len(items)
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        for place, result in zip(places, batch([items[i] for i in places]), strict=True):
            results[place] = result
    return results


def _room():
    _rooms.append(tempfile.TemporaryDirectory())
    return _rooms[-1].name


def _model(folder):
    from keras_transformer import Translator
    from keras_transformer.checkpoints.weights import weights_of

    translator = Translator.load(folder, precision="float32")
    return translator.tokenizer, translator.model.config, weights_of(translator.model)


def _contestant(translate, lines, one_by_one):
    begin = time.perf_counter()
    translate(lines[:1])
    first = time.perf_counter() - begin

    def run():
        if not one_by_one:
            return translate(lines)
        return [translation for line in lines for translation in translate([line])]

    facts = {"translations": run(), "first_seconds": first}

    def timed():
        run()

    return timed, facts


def _all(precisions_of):
    return {
        f"{name}-{precision}": (setup, {"precision": precision}, environment)
        for name, (setup, precisions, environment) in precisions_of.items()
        for precision in precisions
    }


CONTESTANTS = {
    **_all(
        {
            "ours-torch": ("ours", ("float32", "bfloat16", "float16", "int8"), BACKENDS["torch"]),
            "ours-torch-pool": ("pool", ("float32", "bfloat16", "int8"), BACKENDS["torch"]),
            "ours-tensorflow": ("ours", ("float32", "bfloat16"), BACKENDS["tensorflow"]),
            "ours-jax": ("ours", ("float32", "bfloat16"), BACKENDS["jax"]),
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
            "transformers": (
                "transformers",
                ("float32", "bfloat16"),
                BACKENDS["torch"],
            ),
        }
    ),
    "ours-saved-model": ("saved_model", {}, BACKENDS["tensorflow"]),
    "ours-saved-model-jit": ("saved_model", {"jit_compile": True}, BACKENDS["tensorflow"]),
}
NOT_BY_DEFAULT = (
    "ctranslate2-float16",
    "ours-torch-float16",
    "ours-jax-bfloat16",
    "ours-tensorflow-bfloat16",
    "ours-saved-model-jit",
)
REFERENCE = "ours-torch-float32"


def compete(folder, pairs, beam_size, one_by_one, names, rounds) -> list[list]:
    """Rows of the table, one a contestant."""
    import sacrebleu

    lines, references = map(list, zip(*pairs, strict=True))
    options = dict(folder=str(folder), lines=lines, beam_size=beam_size, one_by_one=one_by_one)
    contestants = {}
    for name in names:
        setup, more, environment = CONTESTANTS[name]
        contestants[name] = Contestant(
            name, f"benchmarks.decode:{setup}", {**options, **more}, environment
        )
    contest.contest(list(contestants.values()), rounds, lambda: None)
    ours = [name for name in names if name.startswith("ours")]
    reference = contestants[REFERENCE if REFERENCE in names else names[0]].facts["translations"]
    rows = []
    for name, contestant in contestants.items():
        found = contestant.facts["translations"]
        same = sum(a == b for a, b in zip(found, reference, strict=True))
        rows.append(
            [
                name,
                f"{len(lines) / contestant.seconds:.1f}",
                f"{contestant.facts['first_seconds']:.2f}",
                f"{same / len(lines):.1%}",
                f"{sacrebleu.corpus_bleu(found, [references]).score:.2f}",
                f"{max(x['peak_bytes'] for x in contestant.results) / 2**30:.2f}",
                *[
                    "" if name == one else f"{contest.ratio(contestant, contestants[one]):.2f}"
                    for one in ours
                ],
            ]
        )
    return rows


def toy(folder: Path) -> list[tuple[str, str]]:
    """Writes a small untrained translator; gives pairs to translate."""
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
    """Runs the contest and prints its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="a saved translator")
    parser.add_argument("--data-folder", type=Path, help="of Multi30k; else it is fetched")
    parser.add_argument("--sentences", type=int, default=1000, help="of test_2016_flickr")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--one-by-one", action="store_true", help="a sentence at a time")
    parser.add_argument("--rounds", type=int, default=3)
    default = [name for name in CONTESTANTS if name not in NOT_BY_DEFAULT]
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=default)
    parser.add_argument("--short", action="store_true", help="a toy model, a few sentences")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    if (options.folder is None) != options.short:
        parser.error("give either the folder of a saved translator or --short")
    for name in ("sentences", "beam_size", "rounds"):
        if getattr(options, name) < 1:
            parser.error(
                f"--{name.replace('_', '-')} must be at least 1, got {getattr(options, name)}"
            )
    with tempfile.TemporaryDirectory() as room:
        if options.short:
            folder, name = Path(room), "toy"
            pairs = toy(folder)[:32]
        else:
            from keras_transformer.data.corpora import load_corpus

            folder, name = options.folder, options.folder.name
            tests = load_corpus("multi30k", options.data_folder, train_size=1).tests
            pairs = tests["test_2016_flickr"][: options.sentences]
        rows = compete(
            folder, pairs, options.beam_size, options.one_by_one, options.only, options.rounds
        )
    header = ["", "sentences/s", "first s", "same as ours", "BLEU", "peak GiB"]
    header += [f"{one} is faster by" for one in options.only if one.startswith("ours")]
    how = "one by one" if options.one_by_one else "all at once"
    contest.report(
        f"decode-{name}-beam{options.beam_size}{'-one-by-one' if options.one_by_one else ''}",
        f"Decoding, {name}: {len(pairs)} sentences {how}, beam {options.beam_size}",
        [contest.table(header, rows)],
        options.save,
    )


if __name__ == "__main__":
    main()
