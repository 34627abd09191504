"""Weights rounded to 8 bits so that a layer's outputs change least on example texts (GPTQ)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.export.litert_int8 import levels
from keras_transformer.layers import basic
from keras_transformer.translate.translator import Translator

DAMPING = 0.01  # share of the mean squared input that is added to each, for rarely used inputs


def calibrate(loaded: Any, texts: Sequence[str]) -> None:
    """Round the kernels of a model's dense layers to 8 bits; their dtype stays float32.

    Of each kernel W, the columns are rounded one after another; the columns that follow compensate
    for the error that the rounding makes in x W on the inputs x of the example texts (Frantar et
    al. 2023).

    Args:
        loaded: A translator, or another object with a model from `token_ids` and a tokenizer.
        texts: Example texts, at least one; for a translator, source texts.
    """
    products = input_products(loaded.model, batches(loaded, texts))
    for weight in loaded.model.weights:
        if weight.path in products:
            kernel = keras.ops.convert_to_numpy(weight)
            weight.assign(rounded(kernel.T, products[weight.path]).T)


def batches(loaded: Any, texts: Sequence[str]) -> list[dict[str, np.ndarray]]:
    """Return the model's inputs for each text; for a translator, with its own translation."""
    tokenizer, config = loaded.tokenizer, loaded.model.config

    def row(ids: Sequence[int]) -> np.ndarray:
        return np.array([ids[: config.max_length]], "int32")

    if not isinstance(loaded, Translator):
        return [{"token_ids": row(ids)} for ids in tokenizer.encode(texts)]
    options: dict[str, Any] = dict(beam_size=1, length_penalty=0.0)
    targets = tokenizer.encode_target(loaded.translate(texts, **options))
    return [
        {"source_ids": row(source), "target_ids": row([config.bos_id, *target[:-1]])}
        for source, target in zip(tokenizer.encode_source(texts), targets, strict=True)
    ]


def input_products(
    model: keras.Model, inputs: Iterable[Mapping[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Return the sum of x^T x over the inputs x of each dense layer, by the path of its kernel."""
    linear = basic.linear

    @tf.function(autograph=False, reduce_retracing=True)
    def of_example(example):
        products: dict[str, Any] = {}

        def recorded(x: Any, kernel: Any, *others: Any, **options: Any) -> Any:
            rows = tf.reshape(x, [-1, x.shape[-1]])
            product = tf.matmul(rows, rows, transpose_a=True)
            products[kernel.path] = products.get(kernel.path, 0) + product
            return linear(x, kernel, *others, **options)

        with mock.patch.object(basic, "linear", recorded):
            model(example)
        return products

    sums: dict[str, Any] = {}
    for example in inputs:
        for path, product in of_example(example).items():
            sums[path] = sums.get(path, 0) + product.numpy().astype("float64")
    return sums


def rounded(matrix: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return a matrix (F, D) whose rows are whole multiples, up to 127, of a scale per row.

    Args:
        matrix: W^T, a row for each output.
        products: The sum of x^T x (D, D) over the inputs x.
    """
    _, scales = levels(matrix)
    width = len(products)
    damped = products + np.eye(width) * (DAMPING * np.mean(np.diag(products)) + 1e-10)
    order = np.argsort(-np.diag(damped))  # inputs of large values first: all others compensate
    factor = np.linalg.cholesky(np.linalg.inv(damped[order][:, order])).T
    rest = matrix[:, order].astype("float64")
    result = np.empty_like(rest)
    for i in range(width):
        result[:, i] = np.clip(np.rint(rest[:, i] / scales), -127, 127) * scales
        error = (rest[:, i] - result[:, i]) / factor[i, i]
        rest[:, i + 1 :] -= np.outer(error, factor[i, i + 1 :])
    return result[:, np.argsort(order)].astype(matrix.dtype)
