"""Train an encoder, new or pretrained, whose vectors of texts with the same meaning are similar.

The texts of a pair are translations, paraphrases, or a question and its answer. The loss is
`ContrastiveLoss`. With `--teacher`, both texts of a pair learn the vector that another embedder has
for the first one (Reimers and Gurevych 2020, equation 1): so an embedder learns more languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer

from keras_transformer.config import require
from keras_transformer.data.text_files import read_pairs
from keras_transformer.data.text_pairs import TextPairBatches
from keras_transformer.losses import ContrastiveLoss
from keras_transformer.models import EncoderOnly
from keras_transformer.tasks.similarity import cosines, nearest
from keras_transformer.tasks.text_embedder import TextEmbedder
from keras_transformer.training.fine_tuning import ENCODER, encoder_for
from keras_transformer.training.task import TaskRun, task


@task(
    **ENCODER,
    num_layers=2,
    dropout=0.1,
    max_length=64,
    tokens_per_batch=4096,
    epochs=3,
    peak_learning_rate=2e-3,
    warmup_steps=200,
    train_size=None,
)
def train(
    run: TaskRun,
    train_files: list[Path],
    validation_file: Path,
    temperature: float = 0.05,
    sizes: Annotated[list[int] | None, typer.Option("--size", min=1)] = None,
    teacher: Path | None = None,
) -> None:
    """Train a text embedder on pairs of texts; save it with its errors of retrieval.

    --start-from takes an embedder, a run of `--task fill`, or an imported encoder of texts. It
    keeps the pooling of an embedder; modules after the pooling are not trained.

    Args:
        train_files: Pairs of texts; .tsv, .jsonl or .parquet. Repeatable.
        validation_file: The same, for the final measurement.
        temperature: Temperature of the similarities, above 0.
        sizes: Number of leading elements that are to work as a vector, too (Matryoshka); may be
            repeated.
        teacher: Folder of an embedder: both texts of a pair learn its vector of the first text, in
            place of the contrastive loss.
    """
    pairs = [pair for path in train_files for pair in read_pairs(path)]
    pairs = _sample(pairs, run.train_size, run.seed)
    held_out = distinct(read_pairs(validation_file))
    embedder = _embedder(run, [text for pair in pairs for text in pair])
    width, sizes = embedder.dimension, sorted({*(sizes or [])})
    accepted = f"from 1 to {width}, the size of the vectors"
    require(all(0 < x <= width for x in sizes), "sizes", sizes, accepted)
    loss: keras.losses.Loss = ContrastiveLoss(temperature, sorted({*sizes, width}))
    vectors = None
    if teacher is not None:
        require(not sizes, "sizes", sizes, "left out with a teacher")
        loss = keras.losses.MeanSquaredError()
        vectors = _taught(teacher, [source for source, _ in pairs], width)
    batches = _batches(run, embedder, pairs, vectors)
    model = embedder.trainable()
    model.compile(run.optimizer(run.epochs * len(batches)), loss)
    run.fit(model, batches.dataset(), len(batches))

    run.save(embedder)
    scores = measured(embedder, held_out, sizes)
    run.record(scores, "validation", model)
    shown = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    print(f"{shown}; saved to {run.output}")


def measured(
    embedder: TextEmbedder, pairs: Sequence[tuple[str, str]], sizes: Sequence[int] = ()
) -> dict[str, float]:
    """Return the errors of retrieval and the lowest similarities of pairs.

    Args:
        embedder: The embedder.
        pairs: Pairs in which no text occurs twice on a side.
        sizes: Smaller sizes of the vectors to measure, too.

    Returns:
        `source_error`: the share of sources whose most similar target is not that of their pair;
        `target_error`: the same for targets; with names such as `source_error_64` for vectors of
        64 elements. `similarity_of_1_percent`: the cosine below which 1 % of the pairs are.
    """
    sources, targets = (embedder.embed(side) for side in zip(*pairs, strict=True))
    scores = {}
    for size in (None, *sizes):
        x, y, end = sources[:, :size], targets[:, :size], f"_{size}" if size else ""
        for name, one, other in (("source", x, y), ("target", y, x)):
            best = nearest(one, other, 1)[0][:, 0]
            scores[f"{name}_error{end}"] = float((best != np.arange(len(best))).mean())
    lowest = float(np.percentile(cosines(sources, targets), 1))
    return scores | {"similarity_of_1_percent": lowest}


def distinct(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs without those of which a text occurred earlier on the same side."""
    seen: tuple[set[str], set[str]] = set(), set()
    kept = []
    for pair in pairs:
        if not any(text in side for text, side in zip(pair, seen, strict=True)):
            kept.append(pair)
            for text, side in zip(pair, seen, strict=True):
                side.add(text)
    return kept


def _sample(pairs, size, seed):
    """Return so many of the pairs, drawn at random; None: all."""
    if size is None or size >= len(pairs):
        return pairs
    chosen = np.random.default_rng(seed).choice(len(pairs), size, replace=False)
    return [pairs[i] for i in sorted(chosen)]


def _embedder(run, texts):
    """Return the embedder to train: a new one, or a copy of that of `start_from`."""
    start = None if run.start_from is None else TextEmbedder.load(run.start_from, "float32")
    head, new = "hidden", dict(num_types=1)
    if start is None:
        return TextEmbedder(*encoder_for(run, head, texts, new=new))
    prompt, only = start.embedding.default_prompt_name, "an embedder without a default prompt"
    require(prompt is None, "start_from", str(run.start_from), only)
    is_encoder = isinstance(start.model, EncoderOnly)
    require(is_encoder, "start_from", str(run.start_from), "an embedder with an encoder")
    copied = encoder_for(run, head, texts, read=lambda _: (start.model, start.tokenizer))
    return TextEmbedder(*copied, start.pooling, start.embedding)


def _batches(run, embedder, pairs, teacher):
    """Return the pairs in batches; `teacher` has the vectors to learn, or is None."""
    tokenizer, config = embedder.tokenizer, embedder.model.config
    sources, targets = (
        tokenizer.encode(side, max_length=embedder.max_length) for side in zip(*pairs, strict=True)
    )
    return TextPairBatches(
        sources,
        targets,
        teacher,
        tokens_per_batch=max(run.tokens_per_batch, config.max_length),
        max_length=config.max_length,
        pad_id=config.pad_id,
        seed=run.seed,
    )


def _taught(folder, texts, width):
    """Return the vectors that the teacher has for texts."""
    teacher = TextEmbedder.load(folder, "float32")
    accepted = f"an embedder with vectors of {width} elements, as those to train"
    require(teacher.dimension == width, "teacher", f"{folder} with {teacher.dimension}", accepted)
    return teacher.embed(texts)
