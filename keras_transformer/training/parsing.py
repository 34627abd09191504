"""Train a constituency parser, a small Transformer from words to trees, and measure it.

`python -m training.parsing --help`. Section 6.3 of Vaswani et al. 2017; a tree is written as
a line of symbols (Vinyals et al. 2015).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.config import TransformerConfig, require
from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.data.trees import linearize, read_treebank, right_branching
from keras_transformer.evaluation.assess import parsing_scores, save_metrics
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import Transformer
from keras_transformer.optimizers import adam
from keras_transformer.tasks.parser import Parser
from keras_transformer.text import WordTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.runs import facts, fit_epochs, main, run_into, schedule_for
from keras_transformer.translate.translator import Translator


@run_into()
def train(
    treebank: Annotated[Path, typer.Option(help="A zip with combined/wsj_0001.mrg and so on.")],
    output: options.Output,
    validation_from: Annotated[
        int, typer.Option(help="Number of the first validation file.")
    ] = 170,
    test_from: Annotated[int, typer.Option(help="Number of the first test file.")] = 185,
    tags: Annotated[bool, typer.Option(help="Write words in trees as tags, not XX.")] = True,
    d_model: options.Width = 128,
    num_layers: options.Layers = 3,
    num_heads: options.Heads = 4,
    dropout: options.Dropout = 0.2,
    word_dropout: Annotated[float, typer.Option(help="Share of words replaced by a class.")] = 0.1,
    max_length: options.MaxLength = 180,
    tokens_per_batch: options.TokensPerBatch = 1024,
    epochs: options.Epochs = 24,
    peak_learning_rate: options.PeakLearningRate = 1.5e-3,
    warmup_steps: options.WarmupSteps = 400,
    beam_size: options.BeamSize = 4,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """Train a parser; save it with its tokenizer and the F1 of its brackets."""
    keep_compilations()
    begun = time.monotonic()
    trees = _parts(treebank, validation_from, test_from)
    pairs = {
        name: [(" ".join(tree.words()), linearize(tree, tags)) for tree in own]
        for name, own in trees.items()
    }
    tokenizer = WordTokenizer.train(*zip(*pairs["train"], strict=True))
    budget = dict(tokens_per_batch=tokens_per_batch, max_length=max_length, seed=seed)
    batches = TokenBatches(pairs["train"], tokenizer, sampling=word_dropout, **budget)
    validation = TokenBatches(pairs["validation"], tokenizer, shuffle=False, **budget)

    keras.utils.set_random_seed(seed)
    sizes = dict(d_model=d_model, d_ff=2 * d_model, num_heads=num_heads, dropout=dropout)
    sizes |= dict(num_encoder_layers=num_layers, num_decoder_layers=num_layers)
    vocabularies = tokenizer.source_vocab_size, tokenizer.target_vocab_size
    config = TransformerConfig(*vocabularies, **sizes, norm_first=True, share_embeddings=False)
    model = Transformer(config, dtype=precision)
    model.compile(
        adam(schedule_for(peak_learning_rate, warmup_steps, epochs * len(batches))),
        LabelSmoothedCrossentropy(0.1),
        metrics=[Perplexity()],
    )
    fit_epochs(model, batches, epochs, validation)
    trained = facts(model, begun)
    Parser(model, tokenizer).save(output)

    parser = Parser.load(output, "float32")
    search = dict(beam_size=beam_size, max_extra_length=max_length, strict=True)
    for name in ("validation", "test"):
        sentences = [source for source, _ in pairs[name]]
        metrics = _scores(parser, tags, sentences, trees[name], search)
        for kind, scores in metrics.items():
            print(name, kind, *(f"{key} {value:.2f}" for key, value in scores.items()))
        save_metrics(output, name, metrics | trained | {"trees": len(sentences)})
    print(f"{len(trees['train'])} trees, trained in {trained['seconds']:.0f} s; saved to {output}")


def _parts(treebank, validation_from, test_from):
    """Read the trees for training, validation and test, by the numbers of their files."""
    trees = {"train": [], "validation": [], "test": []}
    for number, own in read_treebank(treebank).items():
        later = (number >= validation_from) + (number >= test_from)
        trees[list(trees)[later]] += own
    for name, own in trees.items():
        require(len(own) > 0, f"trees for {name} in {treebank}", 0, "one or more")
    return trees


def _scores(parser, tags, sentences, trees, search):
    """Return the scores with the constraint, without it, and of right-branching trees."""
    translator = Translator(parser.model, parser.tokenizer)
    lines = {
        "constrained": [linearize(x, tags) for x in parser.parse(sentences, **search)],
        "unconstrained": translator.translate(sentences, **search),
        "right_branching": [linearize(right_branching(x.split())) for x in sentences],
    }
    return {kind: parsing_scores(own, trees) for kind, own in lines.items()}


if __name__ == "__main__":
    main(train)
