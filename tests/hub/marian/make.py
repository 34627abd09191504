"""Train the models in `data/` with Marian, and store its translations.

    python -m tests.hub.marian.make [NAME ...]

It needs the package `pymarian`, and some minutes a model. A model that is there is not trained
again. The sentences are short ones of the built-in
grammar.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from keras_transformer.demo import pairs

DATA = Path(__file__).with_name("data")
JOINT, PAIR = ["joint.spm"] * 2, ["en.yml", "de.yml"]
PLAIN = {
    "type": "transformer",
    "dim-emb": 32,
    "transformer-dim-ffn": 48,
    "transformer-heads": 4,
    "enc-depth": 1,
    "dec-depth": 2,
    "transformer-postprocess": "dan",
    "transformer-ffn-activation": "relu",
    "transformer-dropout": 0,
}
# Options of each model, and its vocabularies.
MODELS: dict[str, tuple[dict[str, object], list[str]]] = {
    "post_norm": ({"tied-embeddings": True, "transformer-decoder-dim-ffn": 40}, JOINT),
    "pre_norm": (
        {
            "tied-embeddings-all": True,
            "transformer-preprocess": "n",
            "transformer-postprocess": "da",
            "transformer-postprocess-top": "n",
            "transformer-ffn-activation": "gelu",
        },
        JOINT,
    ),
    "tied_all": (
        {
            "tied-embeddings-all": True,
            "output-omit-bias": True,
            "transformer-ffn-activation": "swish",
        },
        JOINT,
    ),
    "untied": ({"dec-depth": 1, "transformer-no-projection": True}, PAIR),
    "swish": (
        {
            "tied-embeddings-src": True,
            "tied-embeddings": True,
            "transformer-ffn-activation": "swish",
            "transformer-depth-scaling": True,
            "transformer-postprocess-emb": "nd",
            "transformer-tied-layers": [1, 1],
            "transformer-guided-alignment-layer": 2,
        },
        JOINT,
    ),
    "ssru": (
        {
            "tied-embeddings-all": True,
            "transformer-decoder-autoreg": "rnn",
            "dec-cell": "ssru",
            "dec-depth": 2,
        },
        JOINT,
    ),
}
TRAINING = {
    "cpu-threads": 1,
    "workspace": 500,
    "seed": 1,
    "mini-batch": 64,
    "maxi-batch": 10,
    "learn-rate": 0.004,
    "lr-warmup": 200,
    "lr-decay-inv-sqrt": 400,
    "label-smoothing": 0.1,
    "clip-norm": 1,
    "exponential-smoothing": 1e-3,
    "after": "150u",
    "disp-freq": "50u",
    "beam-size": 4,
    "normalize": 0.6,
    "overwrite": True,
    "no-reload": True,
    "sentencepiece-options": "--normalization_rule_name=identity",
}
MOST_WORDS, NUM_TESTS = 7, 100


def run(room: Path, command: str, lines: list[str] | None = None, **options: object) -> str:
    """Run a command of Marian in a folder, and return what it prints."""
    words = [sys.executable, "-m", "pymarian", command]
    for name, value in options.items():
        values = value if isinstance(value, list) else [] if value is True else [value]
        words += [f"--{name}", *map(str, values)]
    text = None if lines is None else "".join(f"{x}\n" for x in lines)
    newer = {"TRANSFORMER_FLAVOR": "experimental"} if options.get("models") == "decoded.npz" else {}
    environment = os.environ | newer
    done = subprocess.run(
        words, cwd=room, input=text, capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{done.stderr[:2000]}")
    print(done.stderr[-400:], file=sys.stderr)
    return done.stdout


def vocabularies(room: Path, corpus: list[tuple[str, str]]) -> None:
    """Write the corpus and the vocabularies into a folder."""
    for side, language in enumerate(("en", "de")):
        lines = [f"{pair[side]}\n" for pair in corpus]
        (room / f"train.{language}").write_text("".join(lines), "utf-8")
        words = [word for word, _ in Counter("".join(lines).split()).most_common(150)]
        words = ["</s>", "<unk>", *words]
        text = "".join(f"{json.dumps(x, ensure_ascii=False)}: {i}\n" for i, x in enumerate(words))
        (room / f"{language}.yml").write_text(text, "utf-8")


def nbest(text: str) -> list[dict[str, object]]:
    """Return the lines of an n-best list with scores of words."""
    rows = []
    for line in text.splitlines():
        number, translation, words, _, score = line.split(" ||| ")
        scores = [float(x) for x in words.removeprefix("WordScores=").split()]
        rows.append(dict(line=int(number), text=translation, score=float(score), words=scores))
    return rows


def with_other_names(path: Path, out: Path) -> None:
    """Write a pre-norm model with the names that Marian's newer code for the same layers has.

    With the usual code, Marian 1.12 does not normalize the keys and values of earlier tokens in the
    decoder, unlike in training.
    """
    with np.load(path) as arrays:
        values = {x: y[0] if "_ln_" in x else y for x, y in arrays.items()}
    named = {}
    for name, value in values.items():
        if not (parts := re.fullmatch(r"(encoder|decoder)_(l\d+_)?(\w+)_ln_(\w+?)(_pre)?", name)):
            named[name] = value
            continue
        side, layer, part, kind, _ = parts.groups()
        weight = f"norm->{'weight' if kind == 'scale' else 'bias'}"
        place = f"TransformerBatch{side.title()}->{side}"
        if not layer:
            named[f"{place}->postprocessor->{weight}"] = value
            continue
        cross = "WithCrossAttention" if side == "decoder" else ""
        self_block = "autoRegressiveBlock" if side == "decoder" else "selfAttentionBlock"
        block = {
            "self_Wo": self_block,
            "context_Wo": "crossAttentionBlock",
            "ffn_ffn": "filterBlock",
        }
        kind = f"marian::nn::Transformer{side.title()}Layer{cross}"
        place += f"->layers->at({int(layer[1:-1]) - 1})->as<{kind}>()"
        named[f"{place}->{block[part]}->preprocessor->{weight}"] = value
    np.savez(out, **named)


def make(name: str, room: Path, sources: list[str]) -> None:
    """Train a model, copy it to `data/`, and store Marian's translations."""
    changes, vocabs = MODELS[name]
    files = {"train-sets": ["train.en", "train.de"], "vocabs": vocabs, "model": f"{name}.npz"}
    sizes = {"dim-vocabs": [240, 240] if vocabs == JOINT else [152, 152]}
    if not (room / f"{name}.npz").is_file():
        run(room, "train", None, **PLAIN | TRAINING | sizes | files | changes)
    model = f"{name}.npz"
    if changes.get("transformer-preprocess") == "n":
        model = "decoded.npz"
        with_other_names(room / f"{name}.npz", room / model)
    here = dict(vocabs=vocabs, models=model, **{"cpu-threads": 1, "mini-batch": 1})
    greedy = run(room, "decode", sources, **here, **{"beam-size": 1}, normalize=0)
    options = {"beam-size": 4, "normalize": 0.6, "n-best": True, "word-scores": True}
    beams = run(room, "decode", sources, **here, **options)
    facts = dict(greedy=greedy.splitlines(), nbest=nbest(beams))
    (DATA / f"{name}.json").write_text(json.dumps(facts, ensure_ascii=False), "utf-8")
    for end in ("npz", "npz.decoder.yml"):
        (DATA / f"{name}.{end}").write_bytes((room / f"{name}.{end}").read_bytes())


def main(names: list[str]) -> None:
    """Make the models with these names, or all."""
    short = [x for x in pairs(30_000) if len(x[0].split()) <= MOST_WORDS]
    sources = [source for source, _ in short[:NUM_TESTS]]
    (DATA / "sources.json").write_text(json.dumps(sources), "utf-8")
    with tempfile.TemporaryDirectory() as temporary:
        room = Path(temporary)
        vocabularies(room, short[NUM_TESTS:])
        for path in (*DATA.glob("*.spm"), *DATA.glob("*.npz*")):
            (room / path.name).write_bytes(path.read_bytes())
        for name in names or MODELS:
            make(name, room, sources)
        for vocabulary in {*JOINT, *PAIR}:
            if (room / vocabulary).is_file():
                (DATA / vocabulary).write_bytes((room / vocabulary).read_bytes())


if __name__ == "__main__":
    main(sys.argv[1:])
