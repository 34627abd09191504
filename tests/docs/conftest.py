"""A folder with tiny stand-ins for all that the pages name: models, corpora, a recording."""

from __future__ import annotations

import json
import shutil
import wave

import numpy as np
import pytest

from keras_transformer import (
    CausalLM,
    Parser,
    SentencePieceTokenizer,
    TextClassifier,
    TextEmbedder,
    Translator,
    demo,
)
from keras_transformer.data.trees import linearize, read_trees
from keras_transformer.models import BERT, GPT, BERTConfig, GPTConfig
from keras_transformer.text import WordTokenizer
from keras_transformer.text.chat_template import ChatTemplate
from keras_transformer.text.context import SEPARATOR
from keras_transformer.text.glossary import TERM_TAGS
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.hub.marian.models import documented
from tests.language.chats import chat_folder
from tests.tasks.small_metric import HERE, small_metric

from . import data_sets, senses
from .shell import ROOT

RECIPE = """corpus = "files"
epochs = 1
warmup_steps = 10
"""
LANGUAGES = """temperature = 5
vocab_size = 400
warmup_steps = 10
[[corpora]]
source = "train.en"
target = "train.de"
both_directions = true
validation_source = "dev.en"
validation_target = "dev.de"
[[corpora]]
source = "en-fr.tsv"
target_language = "fr"
both_directions = true
validation_source = "en-fr.dev.tsv"
"""
TREES = "(S (NP (DT the) (NN cat)) (VP (VBD sat)) (. .)) (S (NP (DT a) (NN mat)) (VP (VBD is)))"


@pytest.fixture(scope="session")
def world(tmp_path_factory, tiny_transformer, pretrained_folder, whisper_folder):
    """The folder; a page gets a copy of it."""
    folder = tmp_path_factory.mktemp("world")
    pairs = demo.splits(train=300, validation=20, test=20, seed=1)
    sides = {part: tuple(zip(*pairs[part], strict=True)) for part in pairs}
    _corpora(folder, sides)
    english, german = sides["train"]

    tokenizer = SentencePieceTokenizer.train(english, german, vocab_size=400, symbols=TERM_TAGS)
    windows = SentencePieceTokenizer.train(english, german, vocab_size=400, symbols=[SEPARATOR])
    _translator(tiny_transformer, windows).save(folder / "saved_models/documents")
    for name in ("grammar", "multi30k", "terms"):
        _translator(tiny_transformer, tokenizer).save(folder / "saved_models" / name)
    shutil.copytree(ROOT / "saved_models/tatoeba", folder / "saved_models/tatoeba")
    back = _translator(tiny_transformer, tokenizer, "de", "en")
    back.save(folder / "saved_models/grammar-de-en")
    data_sets.write(folder / "DATA", pairs["train"])
    shutil.copy(folder / "DATA/squad/dev-v1.1.reconstructed.json.gz", folder / "squad.json.gz")
    shutil.copy(folder / "DATA/squad/suggested_article_split.tsv", folder / "split.tsv")
    data_sets.write_digits(folder / "data" / "fsdd")
    trees = read_trees(TREES)
    sentences, lines = [" ".join(x.words()) for x in trees], [linearize(x) for x in trees]
    words = WordTokenizer.train(sentences, lines, min_count=1)
    parser = _translator(tiny_transformer, words)
    Parser(parser.model, words).save(folder / "saved_models/parser")
    senses.write(folder)
    text = TextTokenizer.train(["ROMEO: A plague JULIET"], "bytes", 280)
    sizes = dict(d_model=16, d_ff=16, num_layers=1, num_heads=2, max_length=128)
    writer = CausalLM(GPT(GPTConfig(280, **sizes)), text)
    writer.save(folder / "saved_models/shakespeare")
    sizes["max_length"] = 512
    CausalLM(GPT(GPTConfig(280, **sizes)), text).save(folder / "saved_models/deutsch")
    sizes["max_length"] = 256
    tutor = GPT(GPTConfig(280, **sizes))
    CausalLM(tutor, text, ChatTemplate.named("chatml")).save(folder / "saved_models/tutor")

    pieces = TextTokenizer.train(["A gripping film.", "A dull one."], "wordpiece", 80)
    sizes = dict(d_model=16, d_ff=16, num_layers=1, num_heads=2, max_length=32)
    bert = BERT(BERTConfig(pieces.vocab_size, head="sequence_classification", **sizes))
    TextClassifier(bert, pieces).save(folder / "saved_models/reviews")
    TextEmbedder(bert, pieces).save(folder / "saved_models/embedder")

    for kind, name in {
        "marian": "Helsinki-NLP/opus-mt-en-de",
        "nllb": "facebook/nllb-200-distilled-600M",
        "bart": "facebook/bart-large-cnn",
    }.items():
        (folder / name).mkdir(parents=True)
        pretrained_folder(kind, folder / name, english, german)
    (folder / "openai/whisper-tiny").mkdir(parents=True)
    whisper_folder(folder / "openai/whisper-tiny")
    documented(folder / "marian")
    _gpt2(folder / "gpt2", text)
    chat_folder(folder / "HuggingFaceTB/SmolLM2-135M-Instruct", "smollm", max_length=256)
    _bert(folder / "bert-base-uncased")
    _learned_metrics(folder)
    _sentence_transformer(folder / "sentence-transformers/all-MiniLM-L6-v2")
    _bert(folder / "cross-encoder/ms-marco-MiniLM-L6-v2", "SequenceClassification", num_labels=1)
    return folder


def _translator(tiny_transformer, tokenizer, source_language="en", target_language="de"):
    model = tiny_transformer(
        source_vocab_size=tokenizer.source_vocab_size,
        target_vocab_size=tokenizer.target_vocab_size,
        max_length=300,
        share_embeddings=isinstance(tokenizer, SentencePieceTokenizer),
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
    )
    return Translator(model, tokenizer, source_language, target_language)


def _corpora(folder, sides):
    def write(path, lines):
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")

    for part, name in {"train": "train", "validation": "dev", "test": "test"}.items():
        for code, lines in zip(("en", "de"), sides[part], strict=True):
            write(folder / f"{name}.{code}", lines)
    for code, lines in zip(("en", "de"), sides["train"], strict=True):
        write(folder / f"validation.{code}", lines[:100])
    rows = ("\t".join(pair) for pair in zip(*sides["test"], strict=True))
    write(folder / "test.tsv", rows)
    for part, name in {"train": "en-fr.tsv", "validation": "en-fr.dev.tsv"}.items():
        write(folder / name, [f"{text}\t{text.title()}" for text in sides[part][0][:20]])
    write(folder / "languages.toml", LANGUAGES.splitlines())
    write(folder / "english.txt", sides["test"][0][:3])
    write(folder / "book.en", [*sides["test"][0][:2], "", sides["test"][0][2]])
    write(folder / "terms.tsv", ["couch\tCouch\tCouches", "violin\tVioline\tViolinen"])
    write(folder / "articles.txt", sides["test"][0][:3])
    write(folder / "mine.toml", RECIPE.splitlines())
    write(folder / "input.txt", sides["train"][0])
    write(folder / "documents.jsonl", [json.dumps({"text": x}) for x in sides["train"][0]])
    chats = [[{"role": "user", "content": "Who?"}], [{"role": "user", "content": "When?"}]]
    write(folder / "chats.jsonl", map(json.dumps, chats))
    reply = {"role": "assistant", "content": "I."}
    write(folder / "dialogues.jsonl", [json.dumps({"messages": [*x, reply]}) for x in chats] * 4)
    names, texts = ("prompt", "chosen", "rejected"), (*sides["test"], sides["test"][1][::-1])
    pairs = [dict(zip(names, x, strict=True)) for x in zip(*texts, strict=True)]
    write(folder / "pairs.jsonl", [json.dumps(x) for x in pairs if x["chosen"] != x["rejected"]])
    for name in ("articles.txt", "articles.dev.txt"):
        articles = [
            x for i, text in enumerate(sides["train"][0][:40]) for x in (text, "")[: 1 + i % 2]
        ]
        write(folder / name, articles)
    for part in ("train", "dev", "test"):
        headings = [f"{text}\t{' '.join(text.split()[-2:])}" for text in sides["train"][0][:40]]
        write(folder / f"headings.{part}.tsv", headings)
        rows = ["sentence\tlabel", *(f"a {x} film\t{int(x == 'good')}" for x in ("good", "bad"))]
        write(folder / f"sentiment.{part}.tsv", rows)
    write(folder / "questions.tsv", ["Who sleeps?\tThe old dog sleeps."])
    words = "Ann\tB-person\nSmith\tI-person\nlives\tO\nin\tO\nRome\tB-place\n.\tO\n\n"
    for part in ("train", "test"):
        (folder / f"{part}.conll").write_text(words * 8, "utf-8")
    with wave.open(str(folder / "interview.wav"), "wb") as sound:
        sound.setnchannels(1), sound.setsampwidth(2), sound.setframerate(16000)
        noise = np.random.default_rng(0).integers(-9999, 9999, 2000)
        sound.writeframes(noise.astype("<i2").tobytes())


def _learned_metrics(folder):
    for part in ("regression", "encoder"):
        shutil.copytree(HERE / part, folder / "Unbabel/wmt22-comet-da", dirs_exist_ok=True)
    small_metric("kiwi").save(folder / "saved_models/kiwi")
    row = "A dog sleeps.\tEin Hund schläft.\tEs schläft ein Hund.\t0.9\n"
    (folder / "scored.tsv").write_text(row * 8, "utf-8")


def _gpt2(folder, tokenizer):
    transformers = pytest.importorskip("transformers")
    special = dict(bos_token_id=0, eos_token_id=5)
    sizes = dict(n_embd=16, n_layer=1, n_head=2, n_positions=64)
    config = transformers.GPT2Config(vocab_size=280, **special, **sizes)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save(folder)


def _bert(folder, head="MaskedLM", **options):
    transformers = pytest.importorskip("transformers")
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a ##s".split()
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=128, **options,
    )  # fmt: skip
    getattr(transformers, f"BertFor{head}")(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words))


def _sentence_transformer(folder):
    _bert(folder)
    kinds = ("Transformer", "Pooling", "Normalize")
    modules = [{"path": x, "type": f"sentence_transformers.models.{x}"} for x in kinds]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "Pooling").mkdir()
    (folder / "Pooling/config.json").write_text('{"pooling_mode_mean_tokens": true}')
