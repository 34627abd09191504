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

from keras_transformer.backend import keep_compilations, reuse_memory
from keras_transformer.config import require
from keras_transformer.data.images import DATASETS, batches, load_images
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.inference.image_classifier import ImageClassifier
from keras_transformer.inference.image_format import ImageFormat
from keras_transformer.models import ViT, ViTConfig
from keras_transformer.optimizers import WarmupSchedule
from keras_transformer.training import script_options as options
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
    reuse_memory()
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
    config = ViTConfig(
        num_classes=len(classes),
        image_size=images.shape[1:3],
        patch_size=patch_size,
        num_channels=images.shape[3],
        d_model=d_model,
        d_ff=2 * d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        dropout=dropout,
    )
    model = ViT(config, dtype=precision)
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
    classifier.save(output)
    run = dict(epochs=epochs, processor_seconds=used, seed=seed)
    save_metrics(output, "training", run | trained)
    save_metrics(output, "test", dict(accuracy=accuracy))
    print(f"accuracy on {len(test_images)} test images {accuracy:.4f}; saved to {output}")


if __name__ == "__main__":
    main(train)
