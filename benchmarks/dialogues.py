"""Supervised fine-tuning on SQuAD's articles as dialogues: before and after, whole and with LoRA.

    python -m benchmarks.dialogues FOLDER --data DATA [--steps 2000] [--epochs 3] [--save]

A base language model is trained on the articles for training and on two novels. It is tuned on
dialogues about the same articles: the first message is a passage and a question, the others are
questions about the passage and their answers. Each question of the other articles is then asked
alone. Printed are exact match and F1 by SQuAD's rules, how often a reply ends by itself, and the
loss per token of the replies. FOLDER keeps all runs: the same command resumes what was stopped.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

from benchmarks import contest

SIZES = dict(family="llama", pieces="bytes", vocab_size=8000, num_layers=4, num_heads=4)
SIZES |= dict(d_model=192, length=384)
REPLY = 32  # maximum tokens of a reply
QUESTIONS = 4  # maximum questions of a dialogue
NOVELS = ("gutenberg/war_and_peace.first90.gz", "gutenberg/moby_dick.first90.gz")


def prompt(context: str, question: str) -> str:
    """Return the first message of a dialogue."""
    return f"{context}\n\n{question}"


def dialogues(questions: list) -> list[dict[str, Any]]:
    """Return dialogues of up to `QUESTIONS` questions about one passage."""
    results = []
    for context, group in itertools.groupby(questions, lambda x: x.context):
        answered = [x for x in group if x.answers]
        for start in range(0, len(answered), QUESTIONS):
            messages = []
            for asked in answered[start : start + QUESTIONS]:
                text = asked.question if messages else prompt(context, asked.question)
                messages.append({"role": "user", "content": text})
                messages.append({"role": "assistant", "content": asked.answers[0][0]})
            results.append({"messages": messages})
    return results


def write_files(folder: Path, data: Path) -> list:
    """Write the articles and dialogues to train on; return the questions to test with."""
    from keras_transformer.data.squad import read_squad
    from keras_transformer.data.text_files import read_pairs

    side = dict(read_pairs(data / "squad/suggested_article_split.tsv"))
    questions = read_squad(data / "squad/dev-v1.1.reconstructed.json.gz")
    train_questions = [x for x in questions if side[x.article] == "train"]
    articles = {x.article: {} for x in train_questions}
    for asked in train_questions:
        articles[asked.article][asked.context] = None  # in order, each once
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in {
        "articles": [{"text": "\n".join(contexts)} for contexts in articles.values()],
        "dialogues": dialogues(train_questions),
    }.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, "utf-8")
    return [x for x in questions if side[x.article] == "eval"]


def measure(chat: Any, questions: list) -> dict[str, float]:
    """Ask each question alone; return exact match, F1 and how often a reply ends by itself."""
    from keras_transformer.evaluation.spans import answer_scores
    from keras_transformer.search import Generation

    asked, prompts = [], []
    for question in questions:
        text = prompt(question.context, question.question)
        names = chat.writer.tokenizer.special_names
        rendered = chat.template.render([{"role": "user", "content": text}], special_names=names)
        (ids,) = chat.writer.tokenizer.encode([rendered], framed=False)
        if len(ids) + REPLY < chat.writer.model.config.max_length:
            asked.append(question)
            prompts.append(ids)
    search = Generation(max_new_tokens=REPLY)
    replies = chat.writer.generate_ids(prompts, search, ends=chat.ends)
    texts = chat.writer.tokenizer.decode(replies)
    answers = {question.id: text for question, text in zip(asked, texts, strict=True)}
    expected = {x.id: [text for text, _ in x.answers] for x in questions}
    scores = answer_scores(answers, expected)  # a question that is too long counts as wrong
    ended = 100.0 * sum(len(ids) < REPLY for ids in replies) / len(replies)
    return scores | {"ended": ended, "asked": len(asked), "questions": len(questions)}


def main() -> None:
    """Train, tune, measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--steps", type=int, default=2000, help="steps of the base model")
    parser.add_argument("--epochs", type=int, default=3, help="epochs of the tuning")
    parser.add_argument("--lora-rank", type=int, default=16)
    parser.add_argument("--most", type=int, help="ask at most this many questions")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    arguments = parser.parse_args()
    from keras_transformer.evaluation.assess import read_metrics
    from keras_transformer.language.chat import Chat
    from keras_transformer.training import chat_tuning, language_model
    from keras_transformer.training.language_models import read_start, with_chat_template

    folder = arguments.folder
    questions = write_files(folder, arguments.data)[: arguments.most]
    texts = [folder / "articles.jsonl", *(arguments.data / name for name in NOVELS)]
    run = dict(precision=arguments.precision, rows=8, steps=arguments.steps, warmup_steps=200)
    run |= dict(steps_per_epoch=max(1, arguments.steps // 10), **SIZES)
    language_model.train(text=texts, output=folder / "base", **run)
    start, _ = with_chat_template(read_start(folder / "base"))
    rows = [("before", "", *_cells(measure(Chat(start), questions)), "", "")]
    for name, rank, rate in (("all weights", 0, 5e-4), ("LoRA", arguments.lora_rank, 2e-3)):
        output = folder / ("lora" if rank else "whole")
        options = dict(start_from=folder / "base", data_files=[folder / "dialogues.jsonl"])
        options |= dict(output=output, lora_rank=rank, peak_learning_rate=rate)
        chat_tuning.train(**options, epochs=arguments.epochs, precision=arguments.precision)
        scores = measure(Chat.load(output), questions)
        trained = read_metrics(output)["training"]
        detail = f"rank {rank}" if rank else ""
        rows.append((name, detail, *_cells(scores), f"{trained['loss']:.3f}",
                     f"{trained['seconds']:.0f}"))  # fmt: skip
        print(*rows[-1], flush=True)
    base = read_metrics(folder / "base")["validation"]
    columns = ("", "", "exact match", "F1", "ends by itself", "training loss", "seconds")
    parts = [
        contest.table(columns, rows),
        f"{len(questions)} questions of articles that no model saw. The base model has "
        f"{base['parameters']:,} weights and a validation loss of {base['loss']:.3f} per token; "
        f"its training took {base['seconds']:.0f} s.",
    ]
    contest.report("dialogues", "Tuning on dialogues", parts, arguments.save)


def _cells(scores):
    return (*(f"{scores[name]:.1f}" for name in ("exact_match", "f1")), f"{scores['ended']:.1f} %")


if __name__ == "__main__":
    main()
