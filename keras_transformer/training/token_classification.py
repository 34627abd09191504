"""Train a tagger of words, a small BERT from scratch or a pretrained encoder, and measure it.

Each line of a file is a word, a tab and its tag, such as B-person; an empty line ends a sentence,
as in WNUT 2017 (Derczynski et al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_transformer.data.tagged import labels_of_tokens, numbered, read_tagged
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.evaluation.spans import span_f1
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy
from keras_transformer.tasks.token_tagger import TokenTagger
from keras_transformer.training.fine_tuning import ENCODER, batches_for, encoder_for
from keras_transformer.training.task import TaskRun, task

WORDS: dict[str, Any] = ENCODER | dict(  # options of the flows that train on words
    num_layers=2,
    dropout=0.3,
    max_length=192,
    tokens_per_batch=2048,
    epochs=15,
    peak_learning_rate=1e-3,
    warmup_steps=50,
)


def word_encoder(run: TaskRun, words: Sequence[Sequence[str]], **head: Any) -> tuple[Any, Any, Any]:
    """Return an encoder to train on words, its tokenizer, and the encoded words.

    The encoded words of a sentence are its token ids, and the index of the first token of each
    word.

    Args:
        run: The run.
        words: The words of each sentence.
        head: Config fields of the head.
    """
    head |= dict(new=dict(num_types=1), head_dropout=run.dropout, lowercase=False)
    model, tokenizer = encoder_for(run, "token_classification", map(" ".join, words), **head)
    return model, tokenizer, tokenizer.encode_words(words, model.config.max_length)


@task(**WORDS)
def train(run: TaskRun, train_file: Path, test_file: Path) -> None:
    """Train a tagger of words; save it with its tokenizer and the F1 of its spans.

    --start-from takes a run of `--task fill`, or an imported BERT or variant of it (RoBERTa,
    MPNet, ...), DeBERTa or ESM-2.

    Args:
        train_file: Words and tags; may be a .gz.
        test_file: The same, for the final measurement.
    """
    (words, tags), (test_words, test_tags) = (
        zip(*read_tagged(path), strict=True) for path in (train_file, test_file)
    )
    labels = tuple(sorted({tag for sentence in tags for tag in sentence}))
    for sentence in test_tags:
        numbered(sentence, labels, test_file)
    model, tokenizer, encoded = word_encoder(run, words, labels=labels)

    # The first piece of each word has the label of its tag.
    numbers = [numbered(sentence, labels, train_file) for sentence in tags]
    ids, token_labels = [x[0] for x in encoded], labels_of_tokens(encoded, numbers)
    batches = batches_for(run, model, ids, token_labels, pad_label=NO_LABEL)
    model.compile(
        run.optimizer(run.epochs * len(batches)),
        LabelSmoothedCrossentropy(0.0, NO_LABEL),
        metrics=[MaskedAccuracy(NO_LABEL)],
    )
    run.fit(model, batches.dataset(), len(batches))

    tagger = TokenTagger(model, tokenizer)
    predicted = [[tag.label for tag in sentence] for sentence in tagger.tag_words(test_words)]
    scores = span_f1(predicted, test_tags)
    run.save(tagger)
    run.record(scores, "test", model)
    print(f"span F1 {scores['f1']:.3f}; saved to {run.output}")
