"""Train a BERT that finds answers in passages, and measure it by SQuAD's rules.

`python -m training.question_answering --help`. A .tsv file assigns each article to training
("train") or testing ("eval"). The task is span extraction (Devlin et al. 2019, section 4.2).
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.data.squad import read_squad, span_of
from keras_transformer.data.tagged import numbered
from keras_transformer.data.text_files import read_pairs
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.evaluation.spans import answer_scores
from keras_transformer.inference.folder import save_folder
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.optimizers import adam
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import check_lora, fine_tuned, read_encoder, save_run
from keras_transformer.training.runs import facts, main, run_into, say, schedule_for

SIDES = ("train", "eval")
LONGEST = 30  # pieces of the longest answer that is considered


@run_into()
def train(
    questions_file: Annotated[
        Path, typer.Option("--questions", help="Questions in SQuAD's JSON form; may be a .gz.")
    ],
    split_file: Annotated[
        Path, typer.Option("--split", help="A .tsv of article titles and train or eval.")
    ],
    output: options.Output,
    start_from: options.StartFrom = None,
    lora_rank: options.LoRARank = 0,
    vocab_size: options.VocabSize = 8000,
    d_model: options.Width = 128,
    num_layers: options.Layers = 4,
    num_heads: options.Heads = 4,
    dropout: options.Dropout = 0.1,
    max_length: options.MaxLength = 256,
    batch_size: options.BatchSize = 16,
    epochs: options.Epochs = 5,
    peak_learning_rate: options.PeakLearningRate = 5e-4,
    warmup_steps: options.WarmupSteps = 200,
    seed: options.Seed = 0,
) -> None:
    """Train a model that finds answers; save it with its tokenizer, exact match and F1."""
    keep_compilations()
    begun = time.monotonic()
    check_lora(lora_rank, start_from)
    questions, tests = _questions(questions_file, split_file)
    if start_from is None:
        texts = [x.question for x in questions] + sorted({x.context for x in questions})
        tokenizer = TextTokenizer.train(texts, "wordpiece", vocab_size)
        sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads)
        config = BERTConfig(tokenizer.vocab_size, max_length=max_length, **sizes, num_types=2)
        model = BERT(config)
    else:
        model, tokenizer = read_encoder(start_from, BERT, "BERT")
        max_length = model.config.max_length
    keras.utils.set_random_seed(seed)
    model = fine_tuned(model, "span_extraction", lora_rank=lora_rank, dropout=dropout)

    # Only questions whose answer is not cut off are trained on.
    inputs, places = _arrays(questions, tokenizer, model.config, max_length)
    spans = [span_of(own, x.answers[0]) for own, x in zip(places, questions, strict=True)]
    kept = [row for row, span in enumerate(spans) if span]
    if not kept:
        raise ValueError(f"max_length must leave an answer in its text, got {max_length}")
    inputs = {name: x[kept] for name, x in inputs.items()}
    first, last = np.array([spans[row] for row in kept], "int32").T
    steps = epochs * -(-len(kept) // batch_size)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    schedule = schedule_for(peak_learning_rate, warmup_steps, steps)
    model.compile(adam(schedule), {"start": loss, "end": loss})
    say(f"{model.count_params():,} parameters, {len(kept)} questions")
    labels = {"start": first, "end": last}
    model.fit(inputs, labels, batch_size=batch_size, epochs=epochs, verbose=2)

    inputs, places = _arrays(tests, tokenizer, model.config, max_length)
    found = _answers(model.predict(inputs, batch_size=32, verbose=0), tests, places, max_length)
    scores = answer_scores(found, {x.id: [text for text, _ in x.answers] for x in tests})
    save = functools.partial(
        save_folder, model=model, tokenizer=tokenizer, facts={"task": "question_answering"}
    )
    save_run(save, output, start_from, lora_rank)
    save_metrics(output, "eval", scores | facts(model, begun) | {"questions": len(tests)})
    line = f"exact match {scores['exact_match']:.1f}, F1 {scores['f1']:.1f}"
    print(f"{line} of {len(tests)} questions; saved to {output}")


def _questions(questions_file, split_file):
    """Read the questions for training, which have answers, and those for testing."""
    side = dict(read_pairs(split_file))
    numbered(side.values(), SIDES, split_file)
    questions = read_squad(questions_file)
    if missing := sorted({x.article for x in questions} - set(side)):
        raise ValueError(f"{split_file} must name each article, it lacks {missing[0]!r}")
    tests = [x for x in questions if side[x.article] == "eval"]
    questions = [x for x in questions if side[x.article] == "train" and x.answers]
    if not questions or not tests:
        missing = "a question to 'eval'" if questions else "a question with an answer to 'train'"
        raise ValueError(f"{split_file} must leave {missing}")
    return questions, tests


def _arrays(questions, tokenizer, config, max_length):
    """Return the model's inputs (B, max_length), and each token's place in its passage."""
    encoded = tokenizer.encode_pairs([(x.question, x.context) for x in questions], max_length)
    inputs = {"token_ids": np.full((len(encoded), max_length), config.pad_id, "int32")}
    if config.num_types > 1:
        inputs["type_ids"] = np.zeros_like(inputs["token_ids"])
    for row, (ids, types, _) in enumerate(encoded):
        inputs["token_ids"][row, : len(ids)] = ids
        if "type_ids" in inputs:
            inputs["type_ids"][row, : len(ids)] = types
    return inputs, [places for _, _, places in encoded]


def _answers(logits, questions, places, max_length):
    """Return the text of the most probable span of each question, by the question's id."""
    found = {}
    near = np.tri(max_length, k=0).T * np.tri(max_length, k=LONGEST - 1) > 0
    for x, own, start, end in zip(questions, places, logits["start"], logits["end"], strict=True):
        inside = np.array([place[0] >= 0 for place in own] + [False] * (max_length - len(own)))
        scores = np.where(near & inside[:, None] & inside, start[:, None] + end, -np.inf)
        i, j = np.unravel_index(scores.argmax(), scores.shape)
        found[x.id] = x.context[own[i][0] : own[j][1]]
    return found


if __name__ == "__main__":
    main(train)
