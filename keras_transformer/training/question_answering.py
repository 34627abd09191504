"""Train a BERT that finds answers in passages, and measure it by SQuAD's rules.

A .tsv file assigns each article to training ("train") or testing ("eval"). The task is span
extraction (Devlin et al. 2019, section 4.2). If training has questions without an answer, as in
SQuAD 2.0, the model learns which questions have none (section 4.3).
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import keras
import numpy as np

from keras_transformer.data.squad import SHARED_WORD, read_squad, span_of, with_shared_words
from keras_transformer.data.tagged import numbered
from keras_transformer.data.text_files import read_pairs
from keras_transformer.evaluation.spans import answer_scores
from keras_transformer.models import BERT, DeBERTa
from keras_transformer.models.vocabulary import with_config
from keras_transformer.tasks.question_answerer import QuestionAnswerer
from keras_transformer.training.fine_tuning import ENCODER, encoder_for, read_encoder
from keras_transformer.training.task import TaskRun, task

SIDES = ("train", "eval")


@task(
    **ENCODER,
    num_layers=4,
    dropout=0.1,
    max_length=256,
    batch_size=16,
    epochs=5,
    peak_learning_rate=5e-4,
    warmup_steps=200,
)
def train(run: TaskRun, questions_file: Path, split_file: Path, shared_words: bool = False) -> None:
    """Train a model that finds answers; save it with its tokenizer, exact match and F1.

    --start-from takes a run of `--task fill`, or an imported BERT or variant of it (RoBERTa,
    MPNet, ...) or DeBERTa.

    Args:
        questions_file: Questions in SQuAD's JSON form; may be a .gz.
        split_file: A .tsv of article titles and train or eval.
        shared_words: Mark each token of a passage that the question has (BERT only).
    """
    questions, tests = _questions(questions_file, split_file)
    texts = [x.question for x in questions] + sorted({x.context for x in questions})
    read = functools.partial(_read_start, shared_words)
    new = dict(num_types=SHARED_WORD + shared_words)
    model, tokenizer = encoder_for(run, "span_extraction", texts, new=new, read=read)

    # "No answer" is the span of the first token, [CLS]. Questions whose answer is cut off are
    # left out.
    inputs, places = _arrays(questions, tokenizer, model.config)
    spans = [
        span_of(tokens, x.answers[0]) if x.answers else (0, 0)
        for tokens, x in zip(places, questions, strict=True)
    ]
    kept = [row for row, span in enumerate(spans) if span]
    if not any(questions[row].answers for row in kept):
        limit = model.config.max_length
        raise ValueError(f"max_length must leave an answer in its text, got {limit}")
    inputs = {name: x[kept] for name, x in inputs.items()}
    first, last = np.array([spans[row] for row in kept], "int32").T
    steps = run.epochs * -(-len(kept) // run.batch_size)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(run.optimizer(steps), {"start": loss, "end": loss})
    labels = {"start": first, "end": last}
    run.fit(model, inputs, None, y=labels, batch_size=run.batch_size)

    answerer = QuestionAnswerer(model, tokenizer)
    min_score = None if all(x.answers for x in questions) else 0.0
    answers = answerer.answer([(x.question, x.context) for x in tests], min_score=min_score)
    best = {
        x.id: ranked[0].text if ranked else "" for x, ranked in zip(tests, answers, strict=True)
    }
    scores = answer_scores(best, {x.id: [text for text, _ in x.answers] for x in tests})
    run.save(answerer)
    run.record(scores | {"questions": len(tests)}, "eval", model)
    line = f"exact match {scores['exact_match']:.1f}, F1 {scores['f1']:.1f}"
    print(f"{line} of {len(tests)} questions; saved to {run.output}")


def _questions(questions_file, split_file):
    """Read the questions for training and those for testing."""
    side = dict(read_pairs(split_file))
    numbered([*side.values()], SIDES, split_file)
    questions = read_squad(questions_file)
    if missing := sorted({x.article for x in questions} - set(side)):
        raise ValueError(f"{split_file} must name each article, it lacks {missing[0]!r}")
    tests = [x for x in questions if side[x.article] == "eval"]
    questions = [x for x in questions if side[x.article] == "train"]
    if not any(x.answers for x in questions) or not tests:
        needed = "a question with an answer to 'train'" if tests else "a question to 'eval'"
        raise ValueError(f"{split_file} must leave {needed}")
    return questions, tests


def _read_start(shared_words, folder):
    """Load the encoder to start from; with `shared_words`, it has a token type for them."""
    if not shared_words:
        return read_encoder(folder, (BERT, DeBERTa), "BERT or DeBERTa")
    model, tokenizer = read_encoder(folder, BERT, "BERT")
    if model.config.num_types <= SHARED_WORD:
        config = dataclasses.replace(model.config, num_types=SHARED_WORD + 1)
        model = with_config(model, config, "float32")
    return model, tokenizer


def _arrays(questions, tokenizer, config):
    """Return the inputs (B, max_length), and each token's span of characters in its passage."""
    pairs = [(x.question, x.context) for x in questions]
    encoded = tokenizer.encode_pairs(pairs, config.max_length)
    num_types = getattr(config, "num_types", 0)
    inputs = {"token_ids": np.full((len(encoded), config.max_length), config.pad_id, "int32")}
    if num_types > 1:
        inputs["type_ids"] = np.zeros_like(inputs["token_ids"])
    for row, (ids, types, places) in enumerate(encoded):
        inputs["token_ids"][row, : len(ids)] = ids
        if num_types > SHARED_WORD:
            types = with_shared_words(ids, types, places)
        if "type_ids" in inputs:
            inputs["type_ids"][row, : len(ids)] = types
    return inputs, [places for _, _, places in encoded]
