"""Train a small ViT on MNIST or CIFAR-10, measure it and save it.

`python -m training.image_classification --help`. KERAS_BACKEND chooses the backend.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.config import require
from keras_transformer.data.images import DATASETS, batches, load_images
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.models import ViT, ViTConfig
from keras_transformer.optimizers import WarmupSchedule
from keras_transformer.tasks.image_classifier import ImageClassifier
from keras_transformer.tasks.image_format import ImageFormat
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import check_lora, fine_tuned_vit, save_run
from keras_transformer.training.runs import facts, main, run_into, say

UNDECAYED = ["bias", "gamma", "beta", "class_token", "positions"]
# Digits are shifted a little; photographs are shifted more, and mirrored.
CHANGES = {"mnist": dict(pixels=1), "cifar10": dict(pixels=4, flip=True)}


@run_into(lambda given: Path("saved_models") / f"vit-{given['dataset']}")
def train(
    dataset: Annotated[str, typer.Option(help=f"One of {', '.join(DATASETS)}.")] = "mnist",
    data_folder: options.DataFolder = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the run.  [default: saved_models/vit-DATASET]")
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a trained or imported ViT, which replaces the sizes. Its positions are "
            "interpolated to the size of the images."
        ),
    ] = None,
    lora_rank: options.LoRARank = 0,
    epochs: options.Epochs = 10,
    batch_size: options.BatchSize = 64,
    patch_size: Annotated[
        int, typer.Option(min=1, help="Side of a patch in pixels, a divisor of 28 (MNIST) or 32.")
    ] = 4,
    d_model: options.Width = 64,
    num_layers: options.Layers = 4,
    num_heads: options.Heads = 4,
    dropout: options.Dropout = 0.0,
    peak_learning_rate: options.PeakLearningRate = 2e-3,
    weight_decay: options.WeightDecay = 0.05,
    precision: options.Precision = "float32",
    train_size: options.TrainSize = None,
    seed: options.Seed = 0,
) -> None:
    """Train a ViT with AdamW, warmup and linear decay on shifted images, and print its accuracy.

    Examples:

        python -m training.image_classification

        python -m training.image_classification --dataset cifar10 --d-model 96 --num-layers 6
            --precision mixed_bfloat16
    """
    keep_compilations()
    check_lora(lora_rank, start_from)
    source = data_folder or Path(os.environ.get("KT_DATA", "data"))

    # Each channel gets mean 0 and variance 1.
    (images, labels), (test_images, test_labels), classes = load_images(dataset, source)
    moments = (x(images / np.float32(255), axis=(0, 1, 2)).tolist() for x in (np.mean, np.std))
    image_format = ImageFormat(*moments)
    images = image_format.normalized(images)
    if train_size:
        chosen = np.random.default_rng(seed).permutation(len(images))[:train_size]
        images, labels = images[chosen], labels[chosen]
    accepted = f"at most {len(images)}, the number of images"
    require(batch_size <= len(images), "batch_size", batch_size, accepted)
    training = batches(images, labels, batch_size, seed, **CHANGES[dataset])

    keras.utils.set_random_seed(seed)
    shape, policy = images.shape[1:], dict(dropout=dropout, precision=precision)
    if start_from is None:
        sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads)
        model = _vit(shape, len(classes), patch_size, **sizes, **policy)
    else:
        own = dict(lora_rank=lora_rank)
        model = fine_tuned_vit(start_from, shape, len(classes), **policy, **own)
    steps = len(images) // batch_size
    schedule = WarmupSchedule(peak_learning_rate, max(1, steps * epochs // 20), 1 + steps * epochs)
    optimizer = keras.optimizers.AdamW(schedule, weight_decay=weight_decay, beta_2=0.98)
    optimizer.exclude_from_weight_decay(var_names=UNDECAYED)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    say(f"{model.count_params():,} parameters, {len(images)} images, {keras.backend.backend()}")

    begun, used = time.monotonic(), time.process_time()
    model.fit(training, steps_per_epoch=steps, epochs=epochs, shuffle=False, verbose=2)
    used = time.process_time() - used
    trained = facts(model, begun)

    classifier = ImageClassifier(model, classes, image_format)
    found = classifier.classify(test_images, batch_size=512)
    expected = [classes[number] for number in test_labels]
    accuracy = np.mean([own[0].label == x for own, x in zip(found, expected, strict=True)]).item()
    save_run(classifier.save, output, start_from, lora_rank)
    run = dict(epochs=epochs, processor_seconds=used, seed=seed)
    save_metrics(output, "training", run | trained)
    save_metrics(output, "test", dict(accuracy=accuracy))
    print(f"accuracy on {len(test_images)} test images {accuracy:.4f}; saved to {output}")


def _vit(shape, num_classes, patch_size, *, d_model, num_layers, num_heads, dropout, precision):
    config = ViTConfig(
        num_classes,
        image_size=shape[:2],
        patch_size=patch_size,
        num_channels=shape[2],
        d_model=d_model,
        d_ff=2 * d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        dropout=dropout,
    )
    return ViT(config, dtype=precision)


if __name__ == "__main__":
    main(train)
