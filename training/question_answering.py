"""Trains a BERT to find answers in texts and measures it by SQuAD's rules: one file to one folder.

`python -m training.question_answering --help`. The articles that a .tsv file marks with "eval" are
for the measurement, the others for training.
"""

from __future__ import annotations

import sys
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
from keras_transformer.inference.folder import load_with_tokenizer, save_folder
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.optimizers import adam
from keras_transformer.text.single import TextTokenizer
from keras_transformer.training.runs import main, run_into, schedule_for

SIDES = ("train", "eval")
LONGEST = 30  # pieces of an answer that is looked for


@run_into()
def train(
    questions_file: Annotated[Path, typer.Option("--questions", help="In SQuAD's form, or .gz.")],
    split_file: Annotated[Path, typer.Option("--split", help="A .tsv: title, tab, train or eval.")],
    output: Annotated[Path, typer.Option(help="Folder of the run.")],
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="A run of training.masked_language_model; an imported BERT, RoBERTa or ALBERT."
        ),
    ] = None,
    vocab_size: Annotated[int, typer.Option(help="Pieces.")] = 8000,
    d_model: Annotated[int, typer.Option(help="Width.")] = 128,
    num_layers: Annotated[int, typer.Option(help="Blocks.")] = 4,
    num_heads: Annotated[int, typer.Option(help="Heads of each.")] = 4,
    dropout: Annotated[float, typer.Option(help="Rate in [0, 1).")] = 0.1,
    max_length: Annotated[int, typer.Option(help="Pieces of question and text.")] = 256,
    batch_size: Annotated[int, typer.Option(min=1, help="Questions of a batch.")] = 16,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the questions.")] = 5,
    learning_rate: Annotated[float, typer.Option(help="The highest.")] = 5e-4,
    warmup_steps: Annotated[int, typer.Option(help="Steps until then.")] = 200,
    seed: Annotated[int, typer.Option(help="Of weights, dropout and order.")] = 0,
) -> None:
    """Trains a model that finds answers, and saves it with its tokenizer, exact match and F1."""
    keep_compilations()
    begun = time.monotonic()

    # Questions on either side; pieces and sizes.
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
    if start_from is None:
        texts = [x.question for x in questions] + sorted({x.context for x in questions})
        tokenizer = TextTokenizer.train(texts, "wordpiece", vocab_size)
        sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads)
        config = BERTConfig(tokenizer.vocab_size, max_length=max_length, **sizes, num_types=2)
        model = BERT(config)
    else:
        model, tokenizer = load_with_tokenizer(start_from, "BERT", BERT)
        max_length = model.config.max_length
    keras.utils.set_random_seed(seed)
    model = model.with_head("span_extraction", dropout=dropout)

    def arrays(questions):
        encoded = tokenizer.encode_pairs([(x.question, x.context) for x in questions], max_length)
        shape, pad_id = (len(encoded), max_length), model.config.pad_id
        inputs = {"token_ids": np.full(shape, pad_id, "int32")}
        if model.config.num_types > 1:
            inputs["type_ids"] = np.zeros(shape, "int32")
        for row, (ids, types, _) in enumerate(encoded):
            inputs["token_ids"][row, : len(ids)] = ids
            if "type_ids" in inputs:
                inputs["type_ids"][row, : len(ids)] = types
        return inputs, [places for _, _, places in encoded]

    # Training, on those questions whose answer is not cut off.
    inputs, places = arrays(questions)
    spans = [span_of(own, x.answers[0]) for own, x in zip(places, questions, strict=True)]
    kept = [row for row, span in enumerate(spans) if span]
    if not kept:
        raise ValueError(f"max_length must leave an answer in its text, got {max_length}")
    inputs = {name: x[kept] for name, x in inputs.items()}
    first, last = np.array([spans[row] for row in kept], "int32").T
    steps = epochs * -(-len(kept) // batch_size)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    schedule = schedule_for(learning_rate, warmup_steps, steps)
    model.compile(adam(schedule), {"start": loss, "end": loss})
    print(f"{model.count_params():,} parameters, {len(kept)} questions", file=sys.stderr)
    labels = {"start": first, "end": last}
    model.fit(inputs, labels, batch_size=batch_size, epochs=epochs, verbose=2)

    # The most probable span within each text.
    inputs, places = arrays(tests)
    logits = model.predict(inputs, batch_size=32, verbose=0)
    found = {}
    near = np.tri(max_length, k=0).T * np.tri(max_length, k=LONGEST - 1) > 0
    for x, own, start, end in zip(tests, places, logits["start"], logits["end"], strict=True):
        inside = np.array([place[0] >= 0 for place in own] + [False] * (max_length - len(own)))
        scores = np.where(near & inside[:, None] & inside, start[:, None] + end, -np.inf)
        i, j = np.unravel_index(scores.argmax(), scores.shape)
        found[x.id] = x.context[own[i][0] : own[j][1]]
    scores = answer_scores(found, {x.id: [text for text, _ in x.answers] for x in tests})
    save_folder(output, model, tokenizer, {"task": "question_answering"})
    scores |= dict(parameters=model.count_params(), seconds=time.monotonic() - begun)
    save_metrics(output, "eval", scores | {"questions": len(tests)})
    found = f"exact match {scores['exact_match']:.1f}, F1 {scores['f1']:.1f}"
    print(f"{found} of {len(tests)} questions; saved to {output}")


if __name__ == "__main__":
    main(train)
