"""Parts that all commands share: one line for what was wrong, lines in and out."""

import io
import os

import pytest
import typer
from typer.testing import CliRunner

from keras_transformer import Translator
from keras_transformer.cli.common import counted, directed, opened, searching, write_utf8
from keras_transformer.cli.reading import read_lines
from keras_transformer.search import Search
from keras_transformer.text import SentencePieceTokenizer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate", "absent"], "absent is not a saved translator"),
        (["translate", "FOLDER", "--input", "absent.txt"], "absent.txt"),
        (["translate", "FOLDER", "-n", "5"], "num_hypotheses must be at most beam_size=4"),
        (["evaluate", "FOLDER"], "either --source"),
        (["evaluate", "FOLDER", "--source", "a", "--corpus", "grammar"], "either --source"),
        (["evaluate", "FOLDER", "--corpus", "a", "--reference", "b"], "--reference belongs to"),
        (["evaluate", "FOLDER", "--source", "a", "--data-folder", "b"], "--data-folder belongs"),
        (["evaluate", "FOLDER", "--corpus", "absent"], "name must be one of"),
        (
            ["evaluate", "FOLDER", "--corpus=grammar", "--test-set=x"],
            "must be one of ['test', 'varied']",
        ),
        (["evaluate", "FOLDER", "--source", "absent.tsv"], "absent.tsv"),
        (["average", "absent", "--out", "out"], "absent"),
        (["info", "absent"], "absent is not a saved model"),
        (["train", "--recipe", "absent"], "absent"),
    ],
)
def test_bad_input_gets_one_line(run, failure, folder, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    arguments = [str(folder) if a == "FOLDER" else a for a in arguments]
    assert message in failure(run(*arguments, stdin="one\n", status=2))


def test_debug_shows_where_an_error_arose(run, monkeypatch):
    result = run("--debug", "info", "absent", status=1)
    assert isinstance(result.exception, ValueError)
    monkeypatch.setenv("KERAS_TRANSFORMER_DEBUG", "1")
    assert isinstance(run("info", "absent", status=1).exception, ValueError)


def test_lines_of_a_file_and_of_stdin(tmp_path, monkeypatch):
    content = "\N{ZERO WIDTH NO-BREAK SPACE}one\r\ntwo\u2028three\n\nfour".encode()
    expected = ["one", "two\u2028three", "", "four"]  # no byte order mark, no other line breaks
    path = tmp_path / "in.txt"
    path.write_bytes(content)
    assert list(read_lines(path)) == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert list(read_lines(None)) == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\n\xff\n")))
    with pytest.raises(ValueError, match="stdin, line 2: invalid UTF-8"):
        list(read_lines(None))


def test_an_output_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "out.txt"
    with opened(path) as file:
        file.write("ü\n")
        assert not path.exists()
    assert path.read_bytes() == "ü\n".encode()
    with pytest.raises(ZeroDivisionError), opened(path) as file:
        file.write("half")
        raise ZeroDivisionError
    assert path.read_text("utf-8") == "ü\n" and list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="named pipes")
def test_stdout_gets_utf_8_and_newlines_if_it_encodes(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, "ascii", newline="\r\n"))
    write_utf8()
    print("ä", flush=True)
    assert written.getvalue() == b"\xc3\xa4\n"
    monkeypatch.setattr("sys.stdout", io.StringIO())  # as a caller in Python may have it
    write_utf8()


def test_a_named_pipe_stays_one(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with opened(path) as file:
        file.write("one\n")
    assert os.read(reader, 9) == b"one\n" and path.is_fifo()
    os.close(reader)


def test_a_model_of_many_languages_is_told_which(translator, folder, tmp_path, tiny_transformer):
    found = directed(folder, "xx", "yy")
    assert found.target_language == translator.target_language  # as saved
    texts = ["one two", "three"]
    many = SentencePieceTokenizer.train(
        texts, texts, vocab_size=32, byte_fallback=False, target_languages=["de", "fr"]
    )
    size = many.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size)
    Translator(model, many).save(tmp_path)
    found = directed(tmp_path, "en", "fr")
    assert (found.source_language, found.target_language) == ("en", "fr")
    with pytest.raises(ValueError, match="target_language"):
        directed(tmp_path, "en", "it")


@pytest.mark.parametrize("shown", [False, True])
def test_counting_changes_no_values(shown, capsys):
    assert list(counted(iter("abc"), "lines", shown)) == ["a", "b", "c"]
    captured = capsys.readouterr()
    assert captured.out == "" and ("3 lines" in captured.err) == shown


def test_a_command_gets_the_search_options_that_are_given_and_their_ranges():
    app, calls = typer.Typer(), []

    @app.command()
    @searching(Search, ("beam_size", "length_penalty"))
    def search(text: str, **options):
        calls.append((text, options))

    runner = CliRunner()
    assert runner.invoke(app, ["x", "--beam-size", "2"]).exit_code == 0
    assert calls == [("x", {"beam_size": 2})]
    result = runner.invoke(app, ["x", "--beam-size", "0"])
    assert result.exit_code == 2 and "beam_size must be" in " ".join(result.stderr.split())
    assert runner.invoke(app, ["x", "--top-k", "3"]).exit_code == 2
