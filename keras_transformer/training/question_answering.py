"""Train a BERT that finds answers in passages, and measure it by SQuAD's rules.

`python -m training.question_answering --help`. A .tsv file assigns each article to training
("train") or testing ("eval"). The task is span extraction (Devlin et al. 2019, section 4.2). If
training has questions without an answer, as in SQuAD 2.0, the model learns to give none (section
4.3).
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.data.squad import SHARED_WORD, read_squad, span_of, with_shared_words
from keras_transformer.data.tagged import numbered
from keras_transformer.data.text_files import read_pairs
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.evaluation.spans import answer_scores
from keras_transformer.models import BERT, BERTConfig, DeBERTa
from keras_transformer.models.vocabulary import with_config
from keras_transformer.optimizers import adam
from keras_transformer.tasks.question_answerer import QuestionAnswerer
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import check_lora, fine_tuned, read_encoder, save_run
from keras_transformer.training.runs import facts, main, run_into, say, schedule_for

SIDES = ("train", "eval")


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
    shared_words: Annotated[
        bool,
        typer.Option(
            "--shared-words", help="Mark each token of a passage that the question has (BERT only)."
        ),
    ] = False,
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
        sizes |= dict(num_types=SHARED_WORD + 1 if shared_words else SHARED_WORD)
        config = BERTConfig(tokenizer.vocab_size, max_length=max_length, **sizes)
        model = BERT(config)
    else:
        families = BERT if shared_words else (BERT, DeBERTa)
        what = "BERT" if shared_words else "BERT or DeBERTa"
        model, tokenizer = read_encoder(start_from, families, what)
        if shared_words and model.config.num_types <= SHARED_WORD:
            types = dict(num_types=SHARED_WORD + 1)
            model = with_config(model, dataclasses.replace(model.config, **types), "float32")
        max_length = model.config.max_length
    keras.utils.set_random_seed(seed)
    model = fine_tuned(model, "span_extraction", lora_rank=lora_rank, dropout=dropout)

    # "No answer" is the first token, [CLS]. Questions whose answer is cut off are left out.
    inputs, places = _arrays(questions, tokenizer, model.config, max_length)
    spans = [
        span_of(own, x.answers[0]) if x.answers else (0, 0)
        for own, x in zip(places, questions, strict=True)
    ]
    kept = [row for row, span in enumerate(spans) if span]
    if not any(questions[row].answers for row in kept):
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

    answerer = QuestionAnswerer(model, tokenizer)
    min_score = None if all(x.answers for x in questions) else 0.0
    found = answerer.answer([(x.question, x.context) for x in tests], min_score=min_score)
    texts = {x.id: own[0].text if own else "" for x, own in zip(tests, found, strict=True)}
    scores = answer_scores(texts, {x.id: [text for text, _ in x.answers] for x in tests})
    save_run(answerer.save, output, start_from, lora_rank)
    save_metrics(output, "eval", scores | facts(model, begun) | {"questions": len(tests)})
    line = f"exact match {scores['exact_match']:.1f}, F1 {scores['f1']:.1f}"
    print(f"{line} of {len(tests)} questions; saved to {output}")


def _questions(questions_file, split_file):
    """Read the questions for training and those for testing."""
    side = dict(read_pairs(split_file))
    numbered(side.values(), SIDES, split_file)
    questions = read_squad(questions_file)
    if missing := sorted({x.article for x in questions} - set(side)):
        raise ValueError(f"{split_file} must name each article, it lacks {missing[0]!r}")
    tests = [x for x in questions if side[x.article] == "eval"]
    questions = [x for x in questions if side[x.article] == "train"]
    if not any(x.answers for x in questions) or not tests:
        missing = "a question with an answer to 'train'" if tests else "a question to 'eval'"
        raise ValueError(f"{split_file} must leave {missing}")
    return questions, tests


def _arrays(questions, tokenizer, config, max_length):
    """Return the model's inputs (B, max_length), and each token's place in its passage."""
    encoded = tokenizer.encode_pairs([(x.question, x.context) for x in questions], max_length)
    num_types = getattr(config, "num_types", 0)
    inputs = {"token_ids": np.full((len(encoded), max_length), config.pad_id, "int32")}
    if num_types > 1:
        inputs["type_ids"] = np.zeros_like(inputs["token_ids"])
    for row, (ids, types, places) in enumerate(encoded):
        inputs["token_ids"][row, : len(ids)] = ids
        if num_types > SHARED_WORD:
            types = with_shared_words(ids, types, places)
        if "type_ids" in inputs:
            inputs["type_ids"][row, : len(ids)] = types
    return inputs, [places for _, _, places in encoded]


if __name__ == "__main__":
    main(train)
