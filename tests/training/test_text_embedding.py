"""A text embedder, learned from made-up translations."""

import json
import random

import numpy as np
import pytest

from keras_transformer import TextEmbedder
from keras_transformer.models import LLaMA, LLaMAConfig
from keras_transformer.models.sentence import Embedding
from keras_transformer.training.text_embedding import distinct, train

WORDS = {"ba": "ko", "be": "ku", "du": "ra", "di": "ri", "fo": "sa", "fe": "se"}
SIZES = dict(
    vocab_size=60, d_model=16, num_layers=1, num_heads=2, dropout=0.0, max_length=16,
    tokens_per_batch=512, epochs=12, warmup_steps=5, peak_learning_rate=1e-2,
)  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files of pairs: a sentence, and its words in the other language in another order."""
    folder, generator = tmp_path_factory.mktemp("pairs"), random.Random(0)
    for name, count in (("train", 300), ("dev", 40)):
        lines = []
        for _ in range(count):
            words = generator.sample([*WORDS], 3)
            lines.append(f"{' '.join(words)}\t{' '.join(WORDS[x] for x in words[::-1])}")
        (folder / f"{name}.tsv").write_text("\n".join(lines))
    return [folder / "train.tsv"], folder / "dev.tsv"


def test_a_run(files, tmp_path):
    train(*files, tmp_path / "run", sizes=[8], **SIZES)
    scores = json.loads((tmp_path / "run" / "metrics.json").read_text())["validation"]
    # The same words in another order are another sentence, which a mean of vectors hardly tells.
    assert scores["source_error"] < 0.5 and scores["target_error_8"] < 0.6
    text, translation, other = TextEmbedder.load(tmp_path / "run").embed(
        ["ba du fo", "sa ra ko", "ri se ku"]
    )
    assert text @ translation > text @ other + 0.3


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_teacher(files, tmp_path):
    """The student has the teacher's vectors of the first texts, also for their translations."""
    few = SIZES | dict(epochs=2)
    train(*files, tmp_path / "teacher", **few)
    embedder = TextEmbedder.load(tmp_path / "teacher")
    TextEmbedder(embedder.model, embedder.tokenizer, "cls").save(tmp_path / "cls")
    more = SIZES | dict(epochs=8, start_from=tmp_path / "cls", teacher=tmp_path / "teacher")
    train(*files, tmp_path / "student", **more)
    student = TextEmbedder.load(tmp_path / "student")
    assert student.pooling == "cls"
    learned = student.embed(["ba du fo", "sa ra ko"], normalize=False)
    taught = embedder.embed(["ba du fo", "ba du fo"])
    before = TextEmbedder.load(tmp_path / "cls").embed(["ba du fo", "sa ra ko"], normalize=False)
    assert np.square(learned - taught).mean() < 0.3 * np.square(before - taught).mean()

    def refused(message, **options):
        with pytest.raises(ValueError, match=message):
            train(*files, tmp_path / "x", **{**SIZES, "start_from": tmp_path / "cls", **options})

    refused("sizes must be left out with a teacher", teacher=tmp_path / "teacher", sizes=[8])
    refused("sizes must be from 1 to 16, the size of the vectors, got .17.", sizes=[17])
    TextEmbedder.load(tmp_path / "teacher", size=8).save(tmp_path / "cut")
    refused("teacher must be an embedder with vectors of 16", teacher=tmp_path / "cut")
    prompts = Embedding(prompts={"query": "a "}, default_prompt_name="query")
    TextEmbedder(embedder.model, embedder.tokenizer, embedding=prompts).save(tmp_path / "asks")
    refused("start_from must be an embedder without a default", start_from=tmp_path / "asks")
    sizes = dict(d_model=8, d_ff=8, num_layers=1, num_heads=2)
    decoder = LLaMA(LLaMAConfig(embedder.tokenizer.vocab_size, **sizes))
    TextEmbedder(decoder, embedder.tokenizer).save(tmp_path / "decoder")
    refused("start_from must be an embedder with an encoder", start_from=tmp_path / "decoder")


@pytest.mark.once("no tensor")
def test_distinct_pairs():
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("x", "a")]
    assert distinct(pairs) == [("a", "x"), ("b", "y"), ("x", "a")]
