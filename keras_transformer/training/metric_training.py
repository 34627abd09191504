"""Train a learned metric like COMET, on a new or a saved encoder, from scored translations.

Each line of a file has a source, a translation, a reference and a score, with tabs between them. If
no line has a reference, the metric needs none.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from keras_transformer.config import require
from keras_transformer.data.ragged import Ragged
from keras_transformer.data.text_files import read_lines
from keras_transformer.models import BERT
from keras_transformer.models.metric_model import SEGMENTS, MetricConfig, MetricModel
from keras_transformer.tasks.learned_metric import LearnedMetric
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.fine_tuning import encoder_for, read_encoder
from keras_transformer.training.task import TaskRun, task


@task(
    start_from=None,
    vocab_size=8000,
    d_model=128,
    num_layers=2,
    num_heads=4,
    dropout=0.1,
    max_length=64,
    tokens_per_batch=4096,
    epochs=5,
    peak_learning_rate=1e-3,
    warmup_steps=300,
)
def train(run: TaskRun, train_file: Path, test_file: Path) -> None:
    """Train a metric of translations; save it with its correlation with the scores.

    --start-from takes a run of `--task fill`, or an imported BERT or variant of it (RoBERTa,
    XLM-RoBERTa, ...).

    Args:
        train_file: Sources, translations, references and scores.
        test_file: The same, for the final measurement.
    """
    texts, scores = read_scored(train_file)
    test_texts, test_scores = read_scored(test_file)
    accepted = f"{tuple(texts)}, as in {train_file}"
    require([*test_texts] == [*texts], f"the texts in {test_file}", tuple(test_texts), accepted)
    lines = dict.fromkeys(text for rows in texts.values() for text in rows)
    new = dict(num_types=1)
    encoder, tokenizer = encoder_for(
        run, "hidden", lines, lowercase=False, new=new, read=_read_bert
    )
    sizes = (4 * encoder.config.d_model, encoder.config.d_model)
    config = MetricConfig("BERT", encoder.config.to_dict(), tuple(texts), hidden_sizes=sizes)
    model = MetricModel.on(encoder, config, run.precision)
    metric = LearnedMetric(model, tokenizer)

    inputs, pad_id = {}, encoder.config.pad_id
    for name, rows in texts.items():
        ids = Ragged.pack(tokenizer.encode(rows, max_length=metric.max_length))
        inputs[f"{name}_ids"] = ids.padded(len(rows), int(ids.lengths.max()), pad_id)
    batch_size = max(1, run.tokens_per_batch // max(x.shape[1] for x in inputs.values()))
    model.compile(run.optimizer(run.epochs * -(-len(scores) // batch_size)), "mse")
    run.fit(model, inputs, None, y=scores[:, None], batch_size=batch_size)

    run.save(metric)
    sides = test_texts["source"], test_texts["translation"], test_texts.get("reference")
    pearson = float(np.corrcoef(metric.score(*sides), test_scores)[0, 1])
    run.record({"pearson": pearson, "translations": len(test_scores)}, "test", model)
    print(f"correlation {pearson:.4f}; saved to {run.output}")


def read_scored(path: Path) -> tuple[dict[str, list[str]], np.ndarray]:
    """Return the texts of scored translations by segment, and the scores (n,), float32.

    Raises:
        ValueError: If there are no lines, a line has other than four columns, a score is no finite
            number, or only some lines have a reference.
    """
    rows = [line.split("\t") for line in read_lines(path) if line]
    require(len(rows) > 0, f"lines of {path}", 0, "one or more")
    for number, row in enumerate(rows, 1):
        accepted = "4: source, translation, reference, score"
        require(len(row) == 4, f"columns in line {number} of {path}", len(row), accepted)
    sources, translations, references, numbers = map(list, zip(*rows, strict=True))
    try:
        scores = np.array(numbers, "float32")
        are_finite = bool(np.isfinite(scores).all())
    except ValueError:
        are_finite = False
    require(are_finite, f"the scores in {path}", numbers, "finite numbers")
    count = sum(map(bool, references))
    require(count in (0, len(rows)), f"references in {path}", count, f"0 or {len(rows)}")
    texts = dict(zip(SEGMENTS, (translations, sources, references), strict=True))
    return texts if count else {name: texts[name] for name in SEGMENTS[:2]}, scores


def _read_bert(folder: Path) -> tuple[BERT, TextTokenizer]:
    return read_encoder(folder, BERT, "BERT")
