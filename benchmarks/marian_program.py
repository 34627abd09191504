"""Our model in the format of Marian, the C++ program, from the package `pymarian`.

`peers.marian` is MarianMT of `transformers`, which computes in PyTorch. Marian's decoder begins
with zeros where ours has the embedding of BOS, and its sinusoids have other frequencies. A table of
learned positions makes up for both, so the translations are equal. Marian 1.12 decodes models with
such a table, or with pre-norm, only with FLAVOR, other code for the same layers; on a CPU both take
the same time.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.peers import Weights, attention_parts, blocks, sinusoids
from keras_transformer.config import TransformerConfig

FLAVOR = {"TRANSFORMER_FLAVOR": "experimental"}  # environment variable of Marian
NEVER = -1e9  # output bias of padding and BOS


def options(config: TransformerConfig) -> dict[str, object]:
    """Return Marian's options for a model of our sizes."""
    norms = {"transformer-postprocess": "dan"}
    if config.norm_first:
        norms = {"transformer-preprocess": "n", "transformer-postprocess": "da"}
        norms |= {"transformer-postprocess-top": "n"}
    return {
        "type": "transformer",
        "dim-vocabs": [config.target_vocab_size] * 2,
        "dim-emb": config.d_model,
        "enc-depth": config.num_encoder_layers,
        "dec-depth": config.num_decoder_layers,
        "transformer-heads": config.num_heads,
        "transformer-dim-ffn": config.d_ff,
        "transformer-ffn-activation": config.activation,
        "tied-embeddings-all": True,
        **norms,
    }


def write_vocabulary(path: Path, pieces: Sequence[str]) -> None:
    """Write pieces, ordered by id, as a vocabulary in YAML, of which JSON is a part."""
    path.write_text(json.dumps({x: i for i, x in enumerate(pieces)}), "utf-8")


def write_model(path: Path, config: TransformerConfig, weights: Weights) -> None:
    """Write a model (.npz); Marian reads it with the environment variable of FLAVOR."""
    facts = {"transformer-train-position-embeddings": True, "max-length": config.max_length}
    text = json.dumps(options(config) | facts | {"version": "v1.12"}) + "\0"
    arrays = {"special:model.yml": np.frombuffer(text.encode(), "int8")}
    arrays |= _embeddings(config, weights)
    arrays |= dict(_layers(config, weights))
    np.savez(path, **{name: np.ascontiguousarray(value) for name, value in arrays.items()})


def rows_of(
    ids: Sequence[Sequence[int]], batch_size: int
) -> tuple[list[Sequence[int]], list[int | None]]:
    """Return rows in the order of Marian's batches, the longest first, and the place of each.

    With FLAVOR, Marian 1.12 does not mask padding in a batch whose width is a multiple of 4. Such a
    batch gets a longer row, which has no place.
    """
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    rows, places = [], []
    while order:
        longest = ids[order[0]]
        if len(longest) % 4 == 0 and len(order) > 1:
            rows.append([longest[0], *longest])
            places.append(None)
        size = batch_size - len(rows) % batch_size
        rows += [ids[i] for i in order[:size]]
        places += order[:size]
        order = order[size:]
    return rows, places


def training_command(
    config: TransformerConfig,
    files: Mapping[str, Path],
    rows: int,
    steps: int,
    more: Mapping[str, object],
) -> list[str]:
    """Return the command of a training of twice `steps` updates, with a line of log per `steps`.

    Args:
        config: Sizes of the model.
        files: Paths of "source", "target", "pieces.yml" and "model.npz", the model to write.
        rows: Rows of a batch, which all threads share.
        steps: Updates between two lines.
        more: Further options.
    """
    arguments = options(config) | {
        "train-sets": [files["source"], files["target"]],
        "vocabs": [files["pieces.yml"]] * 2,
        "model": files["model.npz"],
        "cpu-threads": machine.count_threads(),
        "sync-sgd": True,
        "mini-batch": rows,
        "maxi-batch": 1,
        "max-length": config.max_length,
        "shuffle": "none",
        "no-reload": True,
        "after": f"{2 * steps}u",
        "disp-freq": f"{steps}u",
        **more,
    }
    command = [sys.executable, "-m", "pymarian", "train"]
    for name, value in arguments.items():
        values = value if isinstance(value, list) else [] if value is True else [value]
        command += [f"--{name}", *map(str, values)]
    return command


def last_shown(log: str) -> tuple[int, float]:
    """Return target tokens and tokens per second of a log's last line of progress."""
    tokens, rate = re.findall(r" \* ([\d,]+) .* : ([\d.]+) words/s", log)[-1]
    return int(tokens.replace(",", "")), float(rate)


def _embeddings(config, weights):
    # A token's vector lacks that of BOS, which the positions add again. As the table is also that
    # of the output, all logits lack the same, which the softmax ignores; their scale is undone by
    # the last norm, see `_layers`.
    scaled = weights["target_embedding/tokens/embeddings"] * np.float32(config.d_model**0.5)
    start = scaled[config.bos_id]
    positions = sinusoids(config.max_length, config.d_model) + start
    bias = np.zeros((1, config.target_vocab_size), "float32")
    bias[:, [config.pad_id, config.bos_id]] = NEVER
    return {
        "Wemb": scaled - start,
        "decoder_ff_logit_out_b": bias,
        "TransformerBatchEncoder->encoder->positionEmbedding->embeddings": positions,
        "TransformerBatchDecoder->decoder->positionEmbedding->embeddings": positions,
    }


def _layers(config: TransformerConfig, weights: Weights) -> Iterator[tuple[str, np.ndarray]]:
    place = "preprocessor" if config.norm_first else "postprocessor"
    last = "decoder" if config.norm_first else None
    last = last or f"decoder/block_{config.num_decoder_layers - 1}/feed_forward_norm"

    def norm(name, path):
        scale = np.float32(config.d_model**-0.5 if path == last else 1.0)
        yield f"{name}->norm->weight", weights[f"{path}/norm/gamma"] * scale
        yield f"{name}->norm->bias", weights[f"{path}/norm/beta"] * scale

    stacks = {x: f"TransformerBatch{x.title()}->{x}" for x in ("encoder", "decoder")}
    if config.norm_first:
        for stack, name in stacks.items():
            yield from norm(f"{name}->postprocessor", stack)
    for stack, number, attentions in blocks(config):
        kind = f"Transformer{stack.title()}Layer"
        kind += "WithCrossAttention" if stack == "decoder" else ""
        layer = f"{stacks[stack]}->layers->at({number})->as<marian::nn::{kind}>()"
        short, block = f"{stack}_l{number + 1}", f"{stack}/block_{number}"
        for name, is_cross in attentions.items():
            prefix = f"{short}_{'context' if is_cross else 'self'}"
            parts = attention_parts(weights, f"{block}/{name}", config.num_heads)
            for part, (kernel, bias) in parts.items():
                yield f"{prefix}_W{part[0]}", kernel
                yield f"{prefix}_b{part[0]}", bias[None]
            kind = "crossAttention" if is_cross else "selfAttention"
            kind = "autoRegressive" if name == "self_attention" else kind
            yield from norm(f"{layer}->{kind}Block->{place}", f"{block}/{name}_norm")
        for i, name in enumerate(("hidden", "output"), 1):
            path = f"{block}/feed_forward/{name}"
            yield f"{short}_ffn_W{i}", weights[f"{path}/kernel"]
            yield f"{short}_ffn_b{i}", weights[f"{path}/bias"][None]
        yield from norm(f"{layer}->filterBlock->{place}", f"{block}/feed_forward_norm")
