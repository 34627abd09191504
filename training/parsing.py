"""Trains a parser, a small Transformer from words to trees, and measures it: a zip to one folder.

`python -m training.parsing --help`. Section 6.3 of Vaswani et al. 2017: trees are lines of symbols
(Vinyals et al. 2015).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.config import TransformerConfig, require
from keras_transformer.data.batching import TokenBatches
from keras_transformer.data.trees import (
    linearize,
    read_treebank,
    right_branching,
)
from keras_transformer.decoding import TreeConstraint
from keras_transformer.evaluation.assess import parsing_scores, save_metrics
from keras_transformer.inference.translator import Translator
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import Transformer
from keras_transformer.optimizers import adam
from keras_transformer.text import WordTokenizer
from keras_transformer.training.runs import main, run_into, schedule_for


@run_into()
def train(
    treebank: Annotated[Path, typer.Option(help="A zip with combined/wsj_0001.mrg and so on.")],
    output: Annotated[Path, typer.Option(help="Folder of the run.")],
    validation_from: Annotated[int, typer.Option(help="First file for validation.")] = 170,
    test_from: Annotated[int, typer.Option(help="First file for the measurement.")] = 185,
    tags: Annotated[bool, typer.Option(help="Words are their tags in trees, or else XX.")] = True,
    d_model: Annotated[int, typer.Option(help="Width; the feed-forward's is twice that.")] = 128,
    num_layers: Annotated[int, typer.Option(help="Blocks of either stack.")] = 3,
    num_heads: Annotated[int, typer.Option(help="Heads of each.")] = 4,
    dropout: Annotated[float, typer.Option(help="Rate in [0, 1).")] = 0.2,
    word_dropout: Annotated[float, typer.Option(help="Words that become their class.")] = 0.1,
    max_length: Annotated[int, typer.Option(help="Longest tree to train on, in symbols.")] = 180,
    tokens_per_batch: Annotated[int, typer.Option(help="Cells of a side of a batch.")] = 1024,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 24,
    learning_rate: Annotated[float, typer.Option(help="The highest.")] = 1.5e-3,
    warmup_steps: Annotated[int, typer.Option(help="Steps until then.")] = 400,
    beam_size: Annotated[int, typer.Option(help="Hypotheses of a search.")] = 4,
    precision: Annotated[str, typer.Option(help="float32 or mixed_bfloat16.")] = "float32",
    seed: Annotated[int, typer.Option(help="Of weights, dropout and order.")] = 0,
) -> None:
    """Trains a parser and saves it with its tokenizer and the F1 of its brackets."""
    keep_compilations()
    begun = time.monotonic()

    # Pairs of a sentence and its tree, a line each.
    trees = {"train": [], "validation": [], "test": []}
    for number, own in read_treebank(treebank).items():
        later = (number >= validation_from) + (number >= test_from)
        trees[list(trees)[later]] += own
    for name, own in trees.items():
        require(len(own) > 0, f"trees for {name} in {treebank}", 0, "one or more")
    pairs = {
        name: [(" ".join(tree.words()), linearize(tree, tags)) for tree in own]
        for name, own in trees.items()
    }
    tokenizer = WordTokenizer.train(*zip(*pairs["train"], strict=True))
    budget = dict(tokens_per_batch=tokens_per_batch, max_length=max_length, seed=seed)
    batches = TokenBatches(pairs["train"], tokenizer, sampling=word_dropout, **budget)
    validation = TokenBatches(pairs["validation"], tokenizer, shuffle=False, **budget)

    # Training.
    keras.utils.set_random_seed(seed)
    sizes = dict(d_model=d_model, d_ff=2 * d_model, num_heads=num_heads, dropout=dropout)
    sizes |= dict(num_encoder_layers=num_layers, num_decoder_layers=num_layers)
    vocabularies = tokenizer.source_vocab_size, tokenizer.target_vocab_size
    config = TransformerConfig(*vocabularies, **sizes, norm_first=True, share_embeddings=False)
    model = Transformer(config, dtype=precision)
    steps = len(batches)
    model.compile(
        adam(schedule_for(learning_rate, warmup_steps, epochs * steps)),
        LabelSmoothedCrossentropy(0.1),
        metrics=[Perplexity()],
    )
    print(f"{model.count_params():,} parameters, {steps} batches", file=sys.stderr)
    model.fit(
        batches.dataset(),
        steps_per_epoch=steps,
        epochs=epochs,
        validation_data=validation.dataset(steps=len(validation)),
        validation_steps=len(validation),
        shuffle=False,
        verbose=2,
    )
    seconds = time.monotonic() - begun
    Translator(model, tokenizer).save(output)

    # By the constraint, by the model alone, and all branching to the right.
    parser = Translator.load(output, "float32")
    options = dict(beam_size=beam_size, max_extra_length=max_length, strict=True)
    constraint = TreeConstraint.of(tokenizer.pieces_of("target"))
    for name in ("validation", "test"):
        sentences = [source for source, _ in pairs[name]]
        lines = {
            "constrained": parser.translate(sentences, constraint=constraint, **options),
            "unconstrained": parser.translate(sentences, **options),
            "right_branching": [linearize(right_branching(x.split())) for x in sentences],
        }
        metrics = {kind: parsing_scores(own, trees[name]) for kind, own in lines.items()}
        for kind, scores in metrics.items():
            print(name, kind, *(f"{key} {value:.2f}" for key, value in scores.items()))
        training = dict(parameters=model.count_params(), seconds=seconds, trees=len(sentences))
        save_metrics(output, name, metrics | training)
    print(f"{len(trees['train'])} trees, trained in {seconds:.0f} s; saved to {output}")


if __name__ == "__main__":
    main(train)
