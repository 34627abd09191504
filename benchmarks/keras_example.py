"""Beside what Keras users find first: keras.io's English-to-Spanish example with KerasHub.

    python -m benchmarks.keras_example ROOM [--data-folder DATA] [--steps 3000] [--pairs 1000]
        [--size tiny] [--precision float32] [--save]

DATA holds `tatoeba-en-es`, the text of that example (manythings.org's spa-eng). Both models train
on its training pairs on the same backend, one after the other. Ours trains for `--steps` updates of
4,096 tokens; the example's then trains for as many seconds of the processor, because a shared core
runs other work too. Theirs has the example's layers and numbers (keras.io/examples/nlp/
neural_machine_translation_with_keras_hub): one block of encoder and decoder of KerasHub, d_model
256, d_ff 2048, 8 heads, WordPiece vocabularies of 15,000, lower case, batches of 64 pairs of 40
tokens, dropout 0.5 before the output, RMSprop, greedy search. The example reports a ROUGE-1 F1 of
0.579 and a ROUGE-2 F1 of 0.381 on 30 sentences after ten epochs. Scores are of lower-cased text.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

import keras_transformer as kt
from benchmarks import contest
from benchmarks.recurrent import kept
from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.data.text_files import read_pairs
from keras_transformer.evaluation.scores import evaluate, rouge
from keras_transformer.training.runs import schedule_for

ROWS, LENGTH, VOCABULARY = 64, 40, 15_000  # of the example
RESERVED = ["[PAD]", "[UNK]", "[START]", "[END]"]
TOKENS, RATE, WARMUP = 4096, 0.004, 500  # of ours
Pairs = list[tuple[str, str]]
Translate = Callable[[Sequence[str]], list[str]]


class StopAfter(keras.callbacks.Callback):
    """A callback that ends training after a number of seconds of the processor.

    Attributes:
        steps: Number of batches so far.
        seconds: Seconds of the processor at the last batch.
    """

    def __init__(self, limit: float = float("inf")):
        super().__init__()
        self.limit, self.steps, self.seconds = limit, 0, 0.0

    def on_train_begin(self, logs=None):
        self._begin = time.process_time()

    def on_train_batch_end(self, batch, logs=None):
        self.steps, self.seconds = self.steps + 1, time.process_time() - self._begin
        self.model.stop_training = self.seconds >= self.limit


def ours(pairs: Pairs, size: str, steps: int, precision: str) -> tuple[Any, StopAfter, Translate]:
    """Return our model, trained for a number of steps, its watch, and its translation (beam 4)."""
    keras.utils.set_random_seed(0)
    tokenizer = kt.SentencePieceTokenizer.train(*zip(*pairs, strict=True), vocab_size=8000)
    batches = TokenBatches(pairs, tokenizer, tokens_per_batch=TOKENS, max_length=256, seed=0)
    make = getattr(kt.TransformerConfig, size)
    config = make(tokenizer.source_vocab_size, norm_first=True, dropout=0.1, max_length=256)
    model, watch = kt.Transformer(config, precision), StopAfter()
    optimizer = kt.adam(schedule_for(RATE, WARMUP, steps))
    model.compile(optimizer, kt.LabelSmoothedCrossentropy(0.1))
    model.fit(batches.dataset(), steps_per_epoch=steps, callbacks=[watch], verbose=0)
    translator = kt.Translator(model, tokenizer, "en", "es")
    return model, watch, lambda texts: translator.translate(texts, beam_size=4)


def tokenizers(pairs: Pairs) -> list[Any]:
    """Return the example's WordPiece tokenizers of both languages."""
    import keras_hub
    import tensorflow as tf

    made = []
    for side in zip(*pairs, strict=True):
        texts = tf.data.Dataset.from_tensor_slices([x.lower() for x in side]).batch(1000)
        pieces = keras_hub.tokenizers.compute_word_piece_vocabulary(
            texts.prefetch(2), vocabulary_size=VOCABULARY, reserved_tokens=RESERVED
        )
        made.append(keras_hub.tokenizers.WordPieceTokenizer(vocabulary=pieces, lowercase=False))
    return made


def example_model() -> keras.Model:
    """Return the example's model: the next token's probabilities from both sides' ids."""
    from keras_hub.layers import TokenAndPositionEmbedding, TransformerDecoder, TransformerEncoder

    sizes = dict(intermediate_dim=2048, num_heads=8)
    source_ids = keras.Input((None,), dtype="int64", name="encoder_inputs")
    x = TokenAndPositionEmbedding(VOCABULARY, LENGTH, 256)(source_ids)
    memory = TransformerEncoder(**sizes)(x)
    target_ids = keras.Input((None,), dtype="int64", name="decoder_inputs")
    x = TokenAndPositionEmbedding(VOCABULARY, LENGTH, 256)(target_ids)
    x = TransformerDecoder(**sizes)(decoder_sequence=x, encoder_sequence=memory)
    x = keras.layers.Dropout(0.5)(x)
    outputs = keras.layers.Dense(VOCABULARY, activation="softmax")(x)
    return keras.Model([source_ids, target_ids], outputs)


def theirs(pairs: Pairs, seconds: float) -> tuple[Any, StopAfter, Translate]:
    """Return the example's model, trained for these seconds, its watch, and its translation."""
    import keras_hub
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    english, spanish = tokenizers(pairs)
    ends = dict(
        start_value=spanish.token_to_id("[START]"),
        end_value=spanish.token_to_id("[END]"),
        pad_value=spanish.token_to_id("[PAD]"),
    )
    pack_source = keras_hub.layers.StartEndPacker(LENGTH, pad_value=english.token_to_id("[PAD]"))
    pack_target = keras_hub.layers.StartEndPacker(LENGTH + 1, **ends)

    def prepared(source, target):
        ids = pack_target(spanish(target))
        inputs = {"encoder_inputs": pack_source(english(source)), "decoder_inputs": ids[:, :-1]}
        return inputs, ids[:, 1:]

    shuffled = random.Random(0).sample(pairs, len(pairs))
    sides = tuple([x.lower() for x in side] for side in zip(*shuffled, strict=True))
    batches = tf.data.Dataset.from_tensor_slices(sides).batch(ROWS).map(prepared)
    batches = batches.shuffle(2048).prefetch(16).cache().repeat()
    model, watch = example_model(), StopAfter(seconds)
    model.compile("rmsprop", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(batches, steps_per_epoch=10**6, callbacks=[watch], verbose=0)

    def translate(texts):
        lines = []
        for i in range(0, len(texts), ROWS):
            part = [x.lower() for x in texts[i : i + ROWS]]
            source_ids = ops.convert_to_tensor(np.asarray(pack_source(english(part))))

            def following(prompt, cache, index, source_ids=source_ids):
                return model([source_ids, prompt])[:, index - 1, :], None, cache

            prompt = np.full((len(part), LENGTH), ends["pad_value"], "int64")
            prompt[:, 0] = ends["start_value"]
            ids = keras_hub.samplers.GreedySampler()(
                following,
                ops.convert_to_tensor(prompt),
                stop_token_ids=[ends["end_value"]],
                index=1,
            )
            lines += [_text(spanish, row, ends) for row in ops.convert_to_numpy(ids).tolist()]
        return lines

    return model, watch, translate


def _text(tokenizer, ids, ends):
    """Return the text between the start and the end."""
    ids = [*ids[1:], ends["end_value"]]
    ids = [x for x in ids[: ids.index(ends["end_value"])] if x != ends["pad_value"]]
    return str(tokenizer.detokenize(ids)) if ids else ""


def measured(trained: tuple[Any, StopAfter, Translate], tests: Pairs) -> dict[str, Any]:
    """Return sizes, times and scores of a trained model."""
    model, watch, translate = trained
    sources, references = ([*side] for side in zip(*tests, strict=True))
    translate(sources[:ROWS])  # compiles
    begin = time.process_time()
    translations = [x.lower() for x in translate(sources)]
    seconds = time.process_time() - begin
    references = [x.lower() for x in references]
    return dict(
        weights=model.count_params(),
        steps=watch.steps,
        seconds=watch.seconds,
        translating=seconds / len(tests),
        repeats=sum(map(_repeats, translations)) / len(tests),
        **evaluate(translations, references),
        **rouge(translations, references),
        examples=[*zip(sources[:5], translations[:5], strict=True)],
    )


def _repeats(text):
    """Return whether a word occurs three times in a row."""
    words = text.split()
    return any(x == y == z for x, y, z in zip(words, words[1:], words[2:], strict=False))


def main() -> None:
    """Train both, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("room", type=Path, help="keeps what is measured")
    parser.add_argument("--data-folder", type=Path, default=os.environ.get("KT_DATA", "."))
    parser.add_argument("--steps", type=int, default=3000, help="updates of our model")
    parser.add_argument("--pairs", type=int, default=1000, help="first pairs of dev to translate")
    parser.add_argument("--size", default="tiny", help="name of our config: tiny, base")
    parser.add_argument("--precision", default="float32", help="Keras dtype policy of ours")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    files = {x: Path(options.data_folder, "tatoeba-en-es", x) for x in ("train", "dev")}
    train, tests = (read_pairs(f"{x}.en.gz", f"{x}.es.gz") for x in files.values())
    tests = tests[: options.pairs]
    of_ours = kept(
        options.room / "ours.json",
        lambda: measured(ours(train, options.size, options.steps, options.precision), tests),
    )
    of_theirs = kept(
        options.room / "keras-hub.json",
        lambda: measured(theirs(train, of_ours["seconds"]), tests),
    )
    rows = [
        [
            name,
            f"{x['weights']:,}",
            f"{x['seconds']:,.0f}",
            x["steps"],
            f"{1000 * x['seconds'] / x['steps']:,.0f}",
            *(f"{x[y]:.1f}" for y in ("bleu", "chrf", "rouge1", "rouge2")),
            f"{x['repeats']:.1%}",
            f"{1000 * x['translating']:,.1f}",
        ]
        for name, x in {"ours": of_ours, "keras.io's example": of_theirs}.items()
    ]
    header = ["", "weights", "training, s", "steps", "ms a step", "BLEU", "chrF", "ROUGE-1"]
    header += ["ROUGE-2", "lines that repeat a word", "ms a sentence"]
    backend = keras.backend.backend()
    title = f"English to Spanish, {len(tests)} sentences, {backend}"
    contest.report(f"keras-example-{backend}", title, [contest.table(header, rows)], options.save)


if __name__ == "__main__":
    main()
