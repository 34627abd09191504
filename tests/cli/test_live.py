"""`keras-transformer live`: the pieces of a pipe in, each sentence's line out."""

import io
import sys

import pytest

from keras_transformer.cli.live import _stdin
from keras_transformer.translate.live import WaitK, translate_live


def test_each_sentence_has_a_line(run, folder, translator):
    text = "one two. three\ntwo one"
    translated = run("live", folder, "--policy", "wait-k", "--k", "2", stdin=text).stdout
    commits = translate_live(translator, text.replace("\n", "\n ").split(" "), WaitK(2))
    expected = "".join(x.text + "\n" * x.ends_sentence for x in commits)
    assert translated == expected and translated.count("\n") == 3
    whole = run("live", folder, "--max-length", "3", stdin=text.replace(" ", "\n")).stdout
    alone = translator.translate(["one", "two.", "three", "two", "one"], beam_size=1, max_length=3)
    assert whole.splitlines() == alone


def test_pieces_are_read_as_they_arrive(monkeypatch):
    class Pipe(io.BytesIO):
        def read1(self, size=-1):
            return super().read1(3)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe("aä€".encode())))
    assert list(_stdin()) == ["aä", "€", ""]


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["--policy", "fast"], "policy must be one of ['wait-k', 'align-att', 'local-agreement']"),
        (
            ["--policy", "local-agreement", "--k", "1"],
            "n must be a whole number of at least 2, got 1",
        ),
    ],
)
def test_bad_input(run, failure, folder, arguments, message):
    assert message in failure(run("live", folder, *arguments, status=2))
