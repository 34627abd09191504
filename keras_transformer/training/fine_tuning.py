"""Fine-tuning of pretrained models: new heads, LoRA, and saving of the runs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_transformer.config import require, require_whole
from keras_transformer.data.sequence_batches import SequenceBatches
from keras_transformer.models import BERT, BERTConfig, EncoderOnly, ViT, enable_lora, resized
from keras_transformer.models.encoder_only import SHARED
from keras_transformer.models.vocabulary import with_config
from keras_transformer.saved.contents import read_config
from keras_transformer.saved.folder import load_model, load_with_tokenizer
from keras_transformer.text.text_tokenizer import TextTokenizer

ADAPTER_FOLDER = "adapter"  # inside the folder of a run with LoRA
# Options, with their defaults, of tasks whose model comes from `encoder_for`.
ENCODER: dict[str, Any] = dict(start_from=None, lora_rank=0, vocab_size=8000)
ENCODER |= dict(d_model=128, num_heads=4)


def read_encoder(
    folder: str | os.PathLike,
    family: type[EncoderOnly] | tuple[type[EncoderOnly], ...] = EncoderOnly,
    what: str = "encoder",
) -> tuple[Any, TextTokenizer]:
    """Load the encoder that a run starts from, in float32, with its tokenizer.

    Args:
        folder: Folder of a run of `train --task`, of an adapter, or of an imported model.
        family: Class that the encoder must have, or a tuple of accepted classes.
        what: Name of the family in error messages.

    Raises:
        ValueError: If the folder does not hold such an encoder.
    """
    return load_with_tokenizer(folder, what, family, "float32")


def check_lora(lora_rank: int, start_from: str | os.PathLike | None) -> None:
    """Raise ValueError if a LoRA rank is below 0, or above 0 without a model to start from."""
    require_whole("lora_rank", lora_rank, 0)
    accepted = "0 without --start-from: LoRA trains an existing model further"
    require(start_from is not None or lora_rank == 0, "lora_rank", lora_rank, accepted)


def fine_tuned(
    start: EncoderOnly,
    head: str,
    *,
    lora_rank: int = 0,
    precision: Any = "float32",
    **changes: Any,
) -> EncoderOnly:
    """Return a copy of an encoder with the head of a task, to train.

    The head is new, unless the encoder has this head with the same labels: then it is kept.

    Args:
        start: The encoder.
        head: One of `models.task_heads.HEADS`.
        lora_rank: Rank of the LoRA products of the encoder; the head is trained whole. 0: all
            weights are trained.
        precision: Keras dtype policy.
        changes: New values of other config fields, such as `labels` and `dropout`.

    Raises:
        ValueError: If a value is out of range.
    """
    # The problem type of the encoder is not that of the task.
    changes = {"problem_type": None, **changes}
    config = dataclasses.replace(start.config, head=head, **changes)
    if (config.head, config.labels) == (start.config.head, start.config.labels):
        model = with_config(start, config, precision)
    else:
        model = start.with_head(head, precision, **changes)
    copied = {x.path for x in start.weights if x.path.startswith(SHARED)}
    return with_lora(model, lora_rank, {x.path for x in model.weights} - copied)


def encoder_for(
    run: Any,
    head: str,
    texts: Iterable[str],
    *,
    lowercase: bool = True,
    new: dict[str, Any] | None = None,
    read: Callable[[Path], tuple[EncoderOnly, TextTokenizer]] = read_encoder,
    **fields: Any,
) -> tuple[EncoderOnly, TextTokenizer]:
    """Return the encoder that a run trains, and its tokenizer.

    Without `start_from` it is a BERT of the run's sizes; otherwise see `fine_tuned`.

    Args:
        run: A `TaskRun`.
        head: One of `models.task_heads.HEADS`.
        texts: Texts that a new tokenizer is trained on.
        lowercase: Whether a new tokenizer ignores case and accents.
        new: Further config fields of a new BERT.
        read: Function that loads the encoder and the tokenizer of `start_from`.
        fields: Config fields in both cases, such as `labels`.
    """
    fields = dict(dropout=run.dropout) | fields
    if run.start_from is None:
        tokenizer = TextTokenizer.train(texts, "wordpiece", run.vocab_size, lowercase=lowercase)
        fields |= run.sizes | dict(head=head, max_length=run.max_length) | (new or {})
        keras.utils.set_random_seed(run.seed)
        return BERT(BERTConfig(tokenizer.vocab_size, **fields), dtype=run.precision), tokenizer
    start, tokenizer = read(run.start_from)
    keras.utils.set_random_seed(run.seed)
    fields |= dict(lora_rank=run.lora_rank, precision=run.precision)
    return fine_tuned(start, head, **fields), tokenizer


def batches_for(
    run: Any, model: EncoderOnly, sequences: Sequence[Sequence[int]], labels: Any, **options: Any
) -> SequenceBatches:
    """Return batches of texts for an encoder; `options` go to `SequenceBatches`."""
    config = model.config
    sizes = dict(tokens_per_batch=run.tokens_per_batch, max_length=config.max_length)
    return SequenceBatches(
        sequences, labels, **sizes | options, pad_id=config.pad_id, seed=run.seed
    )


def with_lora(model: Any, lora_rank: int, whole: set[str] | frozenset[str] = frozenset()) -> Any:
    """Enable LoRA in a model unless the rank is 0, and return the model.

    Args:
        model: The model, which is changed.
        lora_rank: Rank of the LoRA products.
        whole: Paths of weights that are trained whole.
    """
    if lora_rank:
        enable_lora(model, lora_rank, whole=whole)
    return model


def save_run(
    save: Callable[..., None], output: Path, start_from: Path | None, lora_rank: int
) -> None:
    """Save the whole model of a run; after LoRA, also an adapter to the model it started from.

    Args:
        save: Method `save` of the trained object, such as a `CausalLM`.
        output: Folder of the run; the adapter is in its folder `adapter`.
        start_from: Folder that the run started from.
        lora_rank: Rank of the LoRA products; 0: the run had none.
    """
    save(output)
    if lora_rank:
        save(output / ADAPTER_FOLDER, base=start_from)


def fine_tuned_vit(
    folder: str | os.PathLike,
    image_shape: tuple[int, int, int],
    num_classes: int,
    *,
    dropout: float,
    lora_rank: int = 0,
    precision: Any = "float32",
) -> ViT:
    """Return a copy of a saved ViT with a new head, and positions for images of another size.

    Args:
        folder: Folder of a run of `train --task see`, or of an imported ViT.
        image_shape: Height, width and channels of the images.
        num_classes: Number of image classes.
        dropout: Dropout rate in [0, 1).
        lora_rank: As in `fine_tuned`; positions of another size are trained whole, too.
        precision: Keras dtype policy.

    Raises:
        ValueError: If the folder does not hold a ViT, or the images do not fit it.
    """
    start = load_model(folder, read_config(folder, "ViT"), None, "float32")
    if not isinstance(start, ViT):
        raise ValueError(f"{folder} is not a saved ViT but a {type(start).__name__}")
    *size, channels = image_shape
    count = start.config.num_channels
    require(channels == count, "the channels of the images", channels, f"{count}, as of {folder}")
    sized = resized(start, (size[0], size[1]))
    config = dataclasses.replace(sized.config, num_classes=num_classes, dropout=dropout)
    model = ViT(config, dtype=precision)
    trained = {weight.path: weight for weight in sized.weights}
    assert model.head is not None, "there are classes"
    head = {weight.path for weight in model.head.weights}
    for weight in model.weights:
        if weight.path not in head:
            weight.assign(trained[weight.path])
    # An adapter stores the weights that its base lacks: the head, and positions of another size.
    moved = {model.embedding.positions.path} if sized.config != start.config else set()
    return with_lora(model, lora_rank, head | moved)
