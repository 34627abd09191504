"""Train a small ViT on MNIST or CIFAR-10, measure it and save it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer.data.images import batches, load_images
from keras_transformer.models import ViT, ViTConfig
from keras_transformer.optimizers import WarmupSchedule
from keras_transformer.tasks.image_classifier import ImageClassifier
from keras_transformer.tasks.image_format import ImageFormat
from keras_transformer.training.fine_tuning import fine_tuned_vit
from keras_transformer.training.task import Count, TaskRun, task

UNDECAYED = ["bias", "gamma", "beta", "class_token", "positions"]
# Training digits are shifted by up to 1 pixel, photographs by up to 4. A random half of the
# photographs is mirrored.
CHANGES: dict[str, Any] = {"mnist": dict(pixels=1), "cifar10": dict(pixels=4, flip=True)}


@task(
    lambda arguments: Path("saved_models") / f"vit-{arguments['dataset']}",
    data_folder=None,
    start_from=None,
    lora_rank=0,
    epochs=10,
    batch_size=64,
    d_model=64,
    num_layers=4,
    num_heads=4,
    dropout=0.0,
    peak_learning_rate=2e-3,
    weight_decay=0.05,
    train_size=None,
)
def train(run: TaskRun, dataset: str = "mnist", patch_size: Count = 4) -> None:
    """Train a ViT with AdamW, warmup and linear decay; save it with its accuracy.

    --start-from takes a trained or imported ViT. Its positions are interpolated to the size of the
    images.

    Args:
        output: Folder of the run.  [default: saved_models/vit-DATASET]
        dataset: One of cifar10, mnist.
        patch_size: Side of a patch in pixels, a divisor of 28 (MNIST) or 32 (CIFAR-10).
    """
    # Each channel gets mean 0 and variance 1.
    (images, labels), (test_images, test_labels), classes = load_images(dataset, run.data)
    moments = (x(images / np.float32(255), axis=(0, 1, 2)).tolist() for x in (np.mean, np.std))
    image_format = ImageFormat(*moments)
    images = image_format.normalized(images)
    if run.train_size:
        chosen = np.random.default_rng(run.seed).permutation(len(images))[: run.train_size]
        images, labels = images[chosen], labels[chosen]
    training = batches(images, labels, run.batch_size, run.seed, **CHANGES[dataset])

    keras.utils.set_random_seed(run.seed)
    shape = images.shape[1:]
    if run.start_from is None:
        sizes = dict(image_size=shape[:2], num_channels=shape[2], patch_size=patch_size)
        config = ViTConfig(len(classes), d_ff=2 * run.d_model, **run.sizes, **sizes)
        model = ViT(config, dtype=run.precision)
    else:
        options: dict[str, Any] = dict(lora_rank=run.lora_rank, precision=run.precision)
        model = fine_tuned_vit(run.start_from, shape, len(classes), dropout=run.dropout, **options)
    steps = len(images) // run.batch_size
    total = steps * run.epochs
    schedule = WarmupSchedule(run.peak_learning_rate, max(1, total // 20), 1 + total)
    optimizer = keras.optimizers.AdamW(schedule, weight_decay=run.weight_decay, beta_2=0.98)
    optimizer.exclude_from_weight_decay(var_names=UNDECAYED)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    used = time.process_time()
    run.fit(model, training, steps)
    used = time.process_time() - used

    classifier = ImageClassifier(model, classes, image_format)
    answers = classifier.classify(test_images, batch_size=512)
    right = [best.label == classes[x] for (best, *_), x in zip(answers, test_labels, strict=True)]
    accuracy = np.mean(right).item()
    run.save(classifier)
    facts = dict(epochs=run.epochs, processor_seconds=used, seed=run.seed)
    run.record(facts, "training", model)
    run.record(dict(accuracy=accuracy), "test")
    print(f"accuracy on {len(test_images)} test images {accuracy:.4f}; saved to {run.output}")
