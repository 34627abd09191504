"""The script on made-up texts whose class one word says."""

import gzip
import json
import random

import keras

from training.text_classification import train

WORDS = "ba be bi bo bu da de di do du ga ge gi go gu la le li lo lu".split()


def test_a_run(tmp_path):
    generator = random.Random(0)
    files = {}
    for name, count in (("train", 600), ("validation", 60), ("test", 60)):
        lines = ["sentence\tlabel"]
        for _ in range(count):
            words, label = generator.choices(WORDS, k=generator.randint(2, 9)), generator.random()
            words.insert(generator.randrange(len(words)), "good" if label < 0.5 else "bad")
            lines.append(f"{' '.join(words)}\t{int(label < 0.5)}")
        files[f"{name}_file"] = tmp_path / f"{name}.tsv.gz"
        files[f"{name}_file"].write_bytes(gzip.compress("\n".join(lines).encode()))
    sizes = dict(vocab_size=64, d_model=16, num_layers=1, num_heads=2, dropout=0.0, max_length=32)
    train(**files, output=tmp_path / "run", **sizes, tokens_per_batch=512, epochs=6,
          warmup_steps=20, learning_rate=5e-3)  # fmt: skip
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["test_accuracy"] > 0.9
    model = keras.saving.load_model(tmp_path / "run" / "model.keras")
    assert model.config.labels == ("0", "1")
