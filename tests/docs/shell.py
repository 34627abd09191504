"""The little of a shell that the pages' commands are written in: pipes, `<`, `>`, variables."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path
from unittest import mock

import keras
import typer
from typer.testing import CliRunner

from keras_transformer import cli

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

SERVERS = []  # started by a page, and stopped at its end

# What makes a run tiny, after the page's own options.
_SIZES = "--d-model 16 --num-layers 1 --num-heads 2".split()
_RUN = dict(
    epochs=1, warmup_steps=2, train_size=64, vocab_size=400, tokens_per_batch=512, num_buckets=2
)
_RUN |= {"model.d_model": 16, "model.d_ff": 16, "model.num_heads": 2}
_RUN |= {"model.num_encoder_layers": 1, "model.num_decoder_layers": 1, "precision": '"float32"'}
_RUN = [x for name, value in _RUN.items() for x in ("--set", f"{name}={value}")]
_STEPS = "--length 16 --steps 4 --steps-per-epoch 2 --warmup-steps 1".split()
_PIECES = ["--vocab-size", "300", *_SIZES, *"--epochs 3 --warmup-steps 1".split()]
_CLIPS = "--epochs 1 --batch-size 2 --d-model 8 --num-layers 1".split()
TINY = {f"train --task {task}": _PIECES for task in ("classify", "tag", "answer", "metric")} | {
    "train --task embed": [*_PIECES, "--d-model", "64"],
    "train --task translate-lm": [*_PIECES, "--train-size", "64"],
    "keras-transformer train": _RUN,
    "training.translation": _RUN,
    "keras-transformer translate": "--max-extra-length 2".split(),
    "keras-transformer tune-reranking": "--max-extra-length 2".split(),
    "keras-transformer distill": "--max-extra-length 2".split(),
    "keras-transformer back-translate": "--max-extra-length 2".split(),
    "keras-transformer evaluate": "--max-extra-length 2".split(),
    "keras-transformer report": "--max-extra-length 2".split(),
    "keras-transformer generate": "--max-new-tokens 5".split(),
    "keras-transformer chat": "--max-new-tokens 5".split(),
    "keras-transformer plot heads": "--sentences 1".split(),
    "training.preference_tuning": "--epochs 1 --warmup-steps 1".split(),
    "training.chat_tuning": "--rows 2 --epochs 1 --warmup-steps 1".split(),
    "training.language_model": [
        *_SIZES,
        *"--length 16 --steps 4 --steps-per-epoch 2 --warmup-steps 1".split(),
    ],
    "training.masked_language_model": _PIECES,
    "training.text_classification": _PIECES,
    "training.token_classification": _PIECES,
    "training.question_answering": _PIECES,
    "training.speech_recognition": _CLIPS,
    "training.speech_synthesis": _CLIPS,
    "benchmarks.preferences": "--sources 4 --samples 4 --rates 1e-4 --seeds 0".split(),
    "benchmarks.sentiment": "--writer-steps 6 --prompts 4 --steps 2".split(),
    "benchmarks.chat": "--chats 2 --tokens 4 --rounds 1 --slots 2".split(),
    "benchmarks.dialogues": "--steps 10 --epochs 1 --most 2 --precision float32".split(),
    "benchmarks.gender_bias": "--pairs 40 --epochs 1 --sentences 20".split(),
    "benchmarks.toxicity": "--prompts 2 --samples 2".split(),
    "benchmarks.linear_attention": "--tasks decoding --lengths 16".split(),
}
_MODEL = dict(num_layers=1, num_heads=2, d_model=16)
CONSTANTS = {
    "benchmarks.gender_bias": dict(
        TRAINED_ON={"as many women as men": 0.5}, VALIDATION=8, BUCKETS=1
    ),
    "benchmarks.toxicity": dict(NEW_TOKENS=4),
    "benchmarks.linear_attention": dict(PATHS=("elu",)),  # each is a process
    "benchmarks.preferences": dict(GAP=0.0),
    "benchmarks.sentiment": dict(
        SIZES=_MODEL | dict(length=64, rows=2, vocab_size=300), BETAS=[0.1], NEW_TOKENS=4
    ),
    "benchmarks.dialogues": dict(
        SIZES=_MODEL | dict(family="llama", pieces="bytes", vocab_size=400, length=128), REPLY=4
    ),
}


class Command:
    """One command of a pipe: its words, and where it reads and writes."""

    def __init__(self, words):
        self.words, self.files = [], {}
        words = list(words)
        while words:
            word = words.pop(0)
            if word in ("<", ">"):
                self.files[word] = words.pop(0)
            else:
                self.words.append(word)
        self.variables = {}
        while re.match(r"[A-Z_]+=", self.words[0]):
            name, _, value = self.words.pop(0).partition("=")
            self.variables[name] = value

    def check(self):
        """Fails unless there is such a command with such options."""
        name, *rest = self.words
        if name in ("cat", "echo", "curl", "docker", "kill", "espeak-ng", "gunzip"):
            return
        if name == "make":
            assert set(rest) <= set(TARGETS), self.words
        elif name == "pip":
            if rest[0] == "wheel":
                assert rest[-1] == ".", self.words
                return
            asked = re.findall(r"\[(.*?)\]", " ".join(rest))
            assert asked and set(",".join(asked).split(",")) <= set(EXTRAS), self.words
        elif name == "bash":
            assert (ROOT / rest[0]).is_file(), self.words
        elif self.words[:2] == ["python", "-m"] and rest[1].startswith("benchmarks."):
            _check_argparse(rest[1], rest[2:])
        elif name == "python" and rest[0] != "-m":
            assert Path(rest[0]).name == "translate.py", self.words
        else:
            app, arguments = self._app()
            command = typer.main.get_command(app)
            if isinstance(command, typer.core.TyperGroup):
                context = command.make_context("keras-transformer", list(arguments))
                name, command, arguments = command.resolve_command(context, arguments)
            command.make_context(name, list(arguments))

    def run(self, read: str | bytes) -> str:
        """Runs it, with what it reads; what it writes."""
        if "<" in self.files:
            read = _content(Path(self.files["<"]))
        if self.words[0] in ("pip", "kill"):  # all is installed; `SERVERS` end with the page
            wrote = ""
        elif self.words[:2] == ["keras-transformer", "serve"]:
            wrote = _served(self.words[1:])
        elif self.words[0] == "curl":
            wrote = _posted(self.words[1:])
        elif self.words[0] == "echo":
            wrote = " ".join(self.words[1:]) + "\n"
        elif self.words[:2] == ["python", "-m"] and self.words[2].startswith("benchmarks."):
            wrote = self._benchmark()
        elif self.words[0] == "python" and self.words[1] != "-m":
            wrote = subprocess.run(
                [sys.executable, *self.words[1:]],
                input=read, capture_output=True, check=True, encoding="utf-8",
            ).stdout  # fmt: skip
        else:
            app, arguments = self._app()
            short = next((TINY[x] for x in TINY if " ".join(self.words).find(x) >= 0), [])
            result = CliRunner().invoke(app, [*arguments, *short], input=read)
            assert result.exit_code == 0, (self.words, result.output, result.exception)
            wrote = result.stdout
        if ">" in self.files:
            Path(self.files[">"]).write_text(wrote, "utf-8")
        return wrote

    def _benchmark(self):
        """Runs it with toy sizes; nothing if it is for another backend."""
        if self.variables.get("KERAS_BACKEND", keras.backend.backend()) != keras.backend.backend():
            return ""
        name, wrote = self.words[2], io.StringIO()
        module = importlib.import_module(name)
        with contextlib.ExitStack() as stack:
            for constant, value in CONSTANTS.get(name, {}).items():
                stack.enter_context(mock.patch.object(module, constant, value))
            stack.enter_context(mock.patch.object(sys, "argv", self.words[2:] + TINY[name]))
            main = sys.modules["__main__"]  # the report names it
            stack.enter_context(mock.patch.object(main, "__spec__", module.__spec__))
            stack.enter_context(mock.patch.dict(os.environ, PYTHONPATH=str(ROOT)))
            stack.enter_context(contextlib.redirect_stdout(wrote))
            module.main()
        return wrote.getvalue()

    def _app(self):
        if self.words[0] == "keras-transformer":
            return cli.app, self.words[1:]
        assert self.words[:2] == ["python", "-m"], f"no command of ours: {self.words}"
        module, app = importlib.import_module(self.words[2]), typer.Typer()
        app.command()(getattr(module, "train", None) or module.main)
        return app, self.words[3:]


def _content(path):
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return path.read_bytes()


def _served(arguments):
    """Starts a server, and waits until it answers."""
    port = arguments[arguments.index("--port") + 1]
    server = subprocess.Popen([sys.executable, "-m", "keras_transformer.cli", *arguments])
    SERVERS.append(server)
    while True:
        assert server.poll() is None, arguments
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
            return ""
        time.sleep(0.1)


def _posted(arguments):
    option, data, url = arguments
    assert option == "-d"
    with urllib.request.urlopen(f"http://{url}", data.encode()) as answer:
        return answer.read().decode()


def _check_argparse(module, arguments):
    parse = argparse.ArgumentParser.parse_args

    class ParsedError(Exception):
        pass

    def parsed(self, *given):
        parse(self, arguments)
        raise ParsedError

    with mock.patch("argparse.ArgumentParser.parse_args", parsed):
        try:
            importlib.import_module(module).main()
        except ParsedError:
            return
    raise AssertionError(f"{module} reads no options")


def commands_of(script: str) -> list[list[Command]]:
    """The pipes of a script."""
    pipes = []
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.shlex(
            re.sub(r"( 2>&1)?( &)?$", "", line), posix=True, punctuation_chars="|<>"
        )
        words.whitespace_split = True
        pipe = [[]]
        for word in words:
            if word == "|":
                pipe.append([])
            else:
                pipe[-1].append(word)
        if pipe != [[]]:
            pipes.append([Command(part) for part in pipe])
    return pipes
