"""Train a constituency parser, a small Transformer from words to trees, and measure it.

This is the task of Vaswani et al. 2017, section 6.3. A tree is written as a line of symbols, as in
Vinyals et al. 2015.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras

from keras_transformer.config import TransformerConfig, require
from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.data.trees import Tree, linearize, read_treebank, right_branching
from keras_transformer.evaluation.assess import parsing_scores
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import Transformer
from keras_transformer.tasks.parser import Parser
from keras_transformer.text import WordTokenizer
from keras_transformer.training.task import TaskRun, task
from keras_transformer.translate.translator import Translator


@task(
    d_model=128,
    num_layers=3,
    num_heads=4,
    dropout=0.2,
    max_length=180,
    tokens_per_batch=1024,
    epochs=24,
    peak_learning_rate=1.5e-3,
    warmup_steps=400,
)
def train(
    run: TaskRun,
    treebank: Path,
    validation_from: int = 170,
    test_from: int = 185,
    tags: bool = True,
    word_dropout: float = 0.1,
    beam_size: int = 4,
) -> None:
    """Train a parser; save it with its tokenizer and the F1 of its brackets.

    Args:
        treebank: A zip with combined/wsj_0001.mrg and so on.
        validation_from: Number of the first validation file.
        test_from: Number of the first test file.
        tags: Write words in trees as tags, not XX.
        word_dropout: Share of words replaced by a class.
        beam_size: Hypotheses of the beam search.
    """
    trees = _parts(treebank, validation_from, test_from)
    pairs = {
        name: [(" ".join(tree.words()), linearize(tree, tags)) for tree in part]
        for name, part in trees.items()
    }
    tokenizer = WordTokenizer.train(*zip(*pairs["train"], strict=True))
    budget: dict[str, Any] = dict(tokens_per_batch=run.tokens_per_batch, seed=run.seed)
    budget["max_length"] = run.max_length
    batches = TokenBatches(pairs["train"], tokenizer, sampling=word_dropout, **budget)
    validation = TokenBatches(pairs["validation"], tokenizer, shuffle=False, **budget)

    keras.utils.set_random_seed(run.seed)
    sizes: dict[str, Any] = dict(d_model=run.d_model, d_ff=2 * run.d_model)
    sizes |= dict(num_encoder_layers=run.num_layers, num_decoder_layers=run.num_layers)
    sizes |= dict(num_heads=run.num_heads, dropout=run.dropout)
    sizes |= dict(norm_first=True, share_embeddings=False)
    config = TransformerConfig(tokenizer.source_vocab_size, tokenizer.target_vocab_size, **sizes)
    model = Transformer(config, dtype=run.precision)
    optimizer = run.optimizer(run.epochs * len(batches))
    model.compile(optimizer, LabelSmoothedCrossentropy(0.1), metrics=[Perplexity()])
    run.fit(model, batches.dataset(), len(batches), validation_data=validation)
    run.save(Parser(model, tokenizer))

    parser = Parser.load(run.output, "float32")
    search = dict(beam_size=beam_size, max_extra_length=run.max_length, strict=True)
    for name in ("validation", "test"):
        sentences = [source for source, _ in pairs[name]]
        scores = _scores(parser, tags, sentences, trees[name], search)
        for kind, measured in scores.items():
            print(name, kind, *(f"{key} {value:.2f}" for key, value in measured.items()))
        run.record(scores | {"trees": len(sentences)}, name, model)
    print(f"{len(trees['train'])} trees, trained in {run.seconds:.0f} s; saved to {run.output}")


def _parts(treebank, validation_from, test_from):
    """Read the trees for training, validation and test, by the numbers of their files."""
    trees: dict[str, list[Tree]] = {"train": [], "validation": [], "test": []}
    for number, part in read_treebank(treebank).items():
        later = (number >= validation_from) + (number >= test_from)
        trees[list(trees)[later]] += part
    for name, part in trees.items():
        require(len(part) > 0, f"trees for {name} in {treebank}", 0, "one or more")
    return trees


def _scores(parser, tags, sentences, trees, search):
    """Return the scores of parses with and without the constraint, and of right-branching trees."""
    translator = Translator(parser.model, parser.tokenizer)
    lines = {
        "constrained": [linearize(x, tags) for x in parser.parse(sentences, **search)],
        "unconstrained": translator.translate(sentences, **search),
        "right_branching": [linearize(right_branching(x.split())) for x in sentences],
    }
    return {kind: parsing_scores(written, trees) for kind, written in lines.items()}
