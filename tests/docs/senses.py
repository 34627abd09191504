"""Tiny models of images, proteins and DNA, and images, for the pages that name them."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from keras_transformer import ImageClassifier, TextClassifier, TokenTagger
from keras_transformer.data.biology import overlapping_words
from keras_transformer.models import BERT, ESM, BERTConfig, ESMConfig, ViT, ViTConfig
from keras_transformer.tasks.image_format import ImageFormat
from keras_transformer.text.text_tokenizer import TextTokenizer

SIZES = dict(d_model=16, num_layers=1, num_heads=2)


def write(folder):
    """Writes them below a folder."""
    generator, saved = np.random.default_rng(0), folder / "saved_models"
    for name, shape in {"digit.png": (28, 28), "photo.jpg": (60, 80, 3)}.items():
        Image.fromarray(generator.integers(0, 256, shape).astype("uint8")).save(folder / name)
    vit = ViT(ViTConfig(10, image_size=28, patch_size=14, num_channels=1, **SIZES))
    digits = ImageClassifier(vit, list("0123456789"), ImageFormat([0.13], [0.31]))
    digits.save(saved / "vit-mnist")
    _vits(folder / "google/vit-base-patch16-224", folder / "google/vit-base-patch16-224-in21k")

    residues = TextTokenizer.train(["M K V L A G I"], "wordpiece", 64, lowercase=False)
    sizes = SIZES | dict(pad_id=0, mask_id=4, max_length=32)
    head = dict(head="token_classification", labels=("C", "E", "H"))
    TokenTagger(ESM(ESMConfig(residues.vocab_size, **sizes, **head)), residues).save(
        saved / "protein"
    )
    words = TextTokenizer.train([overlapping_words("GATTACAGATTACA", 3)], "wordpiece", 64)
    sizes = SIZES | dict(max_length=64, head="sequence_classification", labels=("EI", "IE", "N"))
    dna = TextClassifier(BERT(BERTConfig(words.vocab_size, **sizes)), words, letters_per_word=3)
    dna.save(saved / "dna")


def _vits(classifier, bare):
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        image_size=32, patch_size=16,
    )  # fmt: skip
    kinds = transformers.ViTForImageClassification, transformers.ViTModel
    for kind, folder in zip(kinds, (classifier, bare), strict=True):
        kind(config).save_pretrained(folder)
        transformers.ViTImageProcessorPil(size=32).save_pretrained(folder)
