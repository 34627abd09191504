"""Train a language model to translate: a prompt holds the source; the translation has the loss.

As in `training.chat_tuning`, several pairs share a row; no pair attends to another. Without
--start-from, a new LLaMA learns to translate from scratch.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.built_in_corpora import load_corpus
from keras_transformer.data.formats import check_sides
from keras_transformer.data.ragged import Ragged
from keras_transformer.data.text_files import read_pairs
from keras_transformer.data.windows import PackedRows
from keras_transformer.evaluation.assess import assess
from keras_transformer.evaluation.scores import table
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import LLaMA, LLaMAConfig
from keras_transformer.text.prompt_tokenizer import PromptTokenizer
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.translation_prompt import TranslationPrompt, filled
from keras_transformer.training.language_models import compile_for_text, read_start, to_train
from keras_transformer.training.runs import say
from keras_transformer.training.task import TaskRun, task
from keras_transformer.translate.translator import Translator

Pairs = Sequence[tuple[str, str]]
END = "</s>"  # the token that ends a translation of a new model


@task(
    start_from=None,
    lora_rank=0,
    vocab_size=3000,
    num_layers=4,
    num_heads=4,
    d_model=128,
    length=128,
    rows=8,
    epochs=1,
    dropout=0.0,
    peak_learning_rate=3e-3,
    warmup_steps=100,
    weight_decay=0.01,
    train_size=None,
)
def train(
    run: TaskRun,
    train_files: list[Path] | None = None,
    validation_files: list[Path] | None = None,
    test_files: list[Path] | None = None,
    corpus: str = "files",
    source_language: str = "en",
    target_language: str = "de",
    prompt: str | None = None,
) -> None:
    """Train a language model to translate; save it with its prompt and its measured quality.

    Commands for translators, such as `translate` and `serve`, run the result, and so does
    `generate`. --start-from takes a saved language model, or one in Hugging Face's layout. Run the
    same command again to resume from the last checkpoint; SIGTERM and Ctrl-C save one.

    Args:
        train_files: Training text: a .tsv, .tmx, .jsonl or .parquet file, or two text files,
            source and target, each with --train.
        validation_files: Validation text, likewise, whose loss is measured after each epoch.
        test_files: Test text, likewise, whose translations are measured at the end.
        corpus: Name of a built-in corpus, such as grammar, to use instead of files.
        source_language: Code of the language to translate from.
        target_language: Code of the language to translate into.
        prompt: Name of a built-in prompt, or a TOML file.  [default: that of --start-from, else
            plain]
    """
    pair = source_language, target_language
    data = _pairs(run, corpus, pair, train_files, validation_files, test_files)
    start = None if run.start_from is None else read_start(run.start_from)
    asked = _prompt(start, prompt, pair)
    keras.utils.set_random_seed(run.seed)
    writer = _new(run, data["train"], asked) if start is None else start
    config = writer.model.config
    require_whole("length", run.length, 2)
    accepted = f"at most {config.max_length}, the max_length of the model"
    require(run.length <= config.max_length, "length", run.length, accepted)
    tokenizer = PromptTokenizer(
        writer.tokenizer, asked, writer.template, config.vocab_size, config.eos_ids
    ).between(*pair)
    packed = _packed(run, "training", tokenizer, data["train"])
    held_out = _packed(run, "validation", tokenizer, data["validation"])
    model = writer.model if start is None else to_train(run, start)
    steps = run.epochs * len(packed)
    compile_for_text(run, model, steps)
    identity = dict(lora_rank=run.lora_rank, seed=run.seed, steps=steps)
    logs = run.fit_rows(
        model,
        packed,
        len(packed),
        run.epochs,
        identity | dict(tokenizer=tokenizer.fingerprint(), prompt=asked.template),
        validation_data=held_out.all(),
        validation_batch_size=run.rows,
    )
    run.save(CausalLM(model, writer.tokenizer, writer.template, writer.search, asked))
    run.record(dict(epochs=run.epochs, validation_loss=_loss(logs)), "training", model)
    print(f"validation loss {_loss(logs):.4f} nats per token; saved to {run.output}")
    if data["test"]:
        metrics = assess(Translator.load(run.output), data["test"], beam_size=1)
        run.record(metrics, "test")
        print(f"\ntest\n{table(metrics)}")


def _loss(logs):
    return math.log(logs["val_perplexity"])


def _pairs(run, corpus, pair, *files):
    """Return the pairs of "train", "validation" and "test"; those of "test" may be empty."""
    sides = dict(zip(("source_language", "target_language"), pair, strict=True))
    names = ("train", "validation", "test")
    if corpus != "files":
        require(not any(files), "--train", files[0], "left out with --corpus")
        built_in = load_corpus(corpus, None, train_size=run.train_size, **sides)
        tests = next(iter(built_in.tests.values()), [])
        return dict(zip(names, (built_in.train, built_in.validation, tests), strict=True))
    data = {}
    for name, paths in zip(names, files, strict=True):
        if name != "test" and not paths:
            raise ValueError(f"--{name} is required to train on your own text files")
        if paths:
            check_sides(f"--{name}", paths)
        data[name] = read_pairs(*paths, **sides) if paths else []
    return data | {"train": data["train"][: run.train_size]}


def _prompt(start, prompt, pair):
    """Return the prompt of a run, with its pair of languages."""
    asked = TranslationPrompt.read(prompt or "plain")
    if prompt is None and start is not None and start.prompt is not None:
        asked = start.prompt
    sides = dict(zip(("source_language", "target_language"), pair, strict=True))
    directions = asked.directions if start is not None and start.prompt is asked else ()
    if start is None or directions:
        directions = [[*x] for x in dict.fromkeys(map(tuple, [*directions, pair]))]
    return dataclasses.replace(asked, directions=directions, **sides)


def _new(run, pairs, asked):
    """Return a new LLaMA with a tokenizer that is trained on the prompts and translations."""
    languages = asked.source_language, asked.target_language
    names, template = asked.fields_of(*languages), asked.variant(*languages).template
    sides = ((filled(template, names | {"text": source}), target) for source, target in pairs)
    texts = itertools.chain.from_iterable(sides)
    tokenizer = TextTokenizer.train(texts, "bytes", run.vocab_size).with_special_tokens([END])
    end = tokenizer.pieces()[END]
    config = LLaMAConfig(
        -(-tokenizer.vocab_size // 8) * 8,
        # A gated feed-forward has three matrices, not two, so its width is 2/3 of 4 * d_model.
        d_ff=8 * round(run.d_model / 3),
        max_length=2 * run.length,
        tie_output=True,
        pad_id=end,
        bos_id=end,
        eos_id=end,
        **run.sizes,
    )
    return CausalLM(LLaMA(config, dtype=run.precision), tokenizer)


def _packed(run, name, tokenizer, pairs):
    """Return pairs of prompts and translations, packed into rows; long ones are left out."""
    prompts = tokenizer.encode_source([source for source, _ in pairs])
    replies = tokenizer.encode_target([target for _, target in pairs])
    whole = [
        (prompt, reply)
        for prompt, reply in zip(prompts, replies, strict=True)
        if len(prompt) + len(reply) <= run.length + 1
    ]
    require(bool(whole), f"the {name} text", len(pairs), f"pairs of at most {run.length} tokens")
    ids = Ragged.pack([prompt + reply for prompt, reply in whole])
    masks = [np.repeat([0, 1], [len(prompt), len(reply)]) for prompt, reply in whole]
    packed = PackedRows(ids, run.length, run.rows, run.seed, Ragged.pack(masks))
    left_out = f"; {len(pairs) - len(whole)} are too long" if len(whole) < len(pairs) else ""
    say(
        f"{name}: {len(whole):,} pairs of {len(ids.values):,} tokens, {sum(map(sum, masks)):,} of "
        f"them in translations, in {len(packed):,} batches{left_out}"
    )
    return packed
