"""Folders that the training scripts write, trained for seconds on made-up words."""

import random

from keras_transformer.training import text_classification, token_classification

WORDS = "ba be bi bo bu da de di do du".split()
SIZES = dict(vocab_size=64, d_model=16, num_layers=1, num_heads=2, dropout=0.0)
STEPS = dict(tokens_per_batch=512, warmup_steps=10, peak_learning_rate=1e-2)


def classifier_folder(folder):
    """A classifier: texts with "good" are of the class "1", texts with "bad" of the class "0"."""
    generator, lines = random.Random(0), ["sentence\tlabel"]
    for _ in range(300):
        words, label = generator.choices(WORDS, k=generator.randint(2, 6)), generator.randrange(2)
        words.insert(generator.randrange(len(words)), ("bad", "good")[label])
        lines.append(f"{' '.join(words)}\t{label}")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "texts.tsv"
    path.write_text("\n".join(lines))
    options = dict(output=folder / "run", epochs=8, max_length=24)
    text_classification.train(path, path, path, **options, **SIZES, **STEPS)
    return folder / "run"


def tagger_folder(folder):
    """A tagger: after "mister" comes a person, of one word or of two; signs are words, too."""
    generator, lines = random.Random(0), []
    for _ in range(300):
        sentence = [(word, "O") for word in generator.choices([*WORDS, *"(,)!"], k=5)]
        name = [("Ga", "B-person"), ("Lo", "I-person")][: generator.randint(1, 2)]
        at = generator.randrange(5)
        sentence[at:at] = [("mister", "O"), *name]
        lines += [f"{word}\t{tag}" for word, tag in sentence] + [""]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "words.conll"
    path.write_text("\n".join(lines))
    options = dict(output=folder / "run", epochs=8, max_length=24)
    token_classification.train(path, path, **options, **SIZES, **STEPS)
    return folder / "run"
