"""Jobs on corpora that are ended anywhere: run again, they end as if never disturbed."""

import errno
import gzip
import json
import os
from functools import partial

import pytest
from typer.testing import CliRunner

from keras_transformer import cli
from keras_transformer.corpora import job, translate_corpus
from keras_transformer.corpora.worker import Worker
from keras_transformer.data.resumable import write_in_chunks
from keras_transformer.translate.translator import Translator
from tests.faults.faults import (
    ALL,
    COUNTS,
    REFUSED,
    changes_of,
    failing,
    in_child,
    limited,
    signalled,
    some,
)
from tests.small_translator import SHORT, TEXTS

pytestmark = pytest.mark.once("files: no backend writes them")
CHUNKS = [["a", "b"], [], ["ä"], ["c", "d", "e"]]
WHOLE = "0 a\n0 b\n2 ä\n3 c\n3 d\n3 e\n"


def chunked(path):
    def lines(number, chunk):
        return [f"{number} {x}" for x in chunk]

    return lambda: write_in_chunks(path, CHUNKS, lines, {"input": "x"}) and None


def faults_of(count, few):
    """Pairs of a kind of fault and a function from work to work with it."""
    for number in some(range(count), few):
        yield "kill in a job", partial(signalled, number=number)
        yield "full disk in a job", partial(failing, number=number)
        yield "no permission in a job", partial(failing, number=number, code=errno.EACCES)


def test_chunks_of_back_translate_and_distill(tmp_path):
    """Both commands write by `write_in_chunks`."""
    count = changes_of(chunked(tmp_path / "counted" / "x.tsv"))
    faults = [*faults_of(count, 8)]
    for number in range(count - 6, count):  # at the last note and the move of the whole file
        faults.append(("kill in a job", partial(signalled, number=number)))
    for size in (1, 5, 60, 100):  # bytes, of the lines or of the note how far they are
        for kill in (True, False):
            kind = "kill in a job" if kill else "full disk in a job"
            faults.append((kind, partial(limited, size=size, kill=kill)))
    for i, (kind, fault) in enumerate(faults):
        path = tmp_path / str(i) / "x.tsv"
        status, message = in_child(fault(chunked(path)))
        assert status in (0, -9, -25, REFUSED), message
        assert status != REFUSED or (str(path.parent) in message and "\n" not in message)
        is_whole = path.exists()
        if is_whole:
            assert "written already" in in_child(chunked(path))[1]
        else:
            assert in_child(chunked(path)) == (0, "")
        assert path.read_text("utf-8") == WHOLE
        assert {x.name for x in path.parent.iterdir()} <= {"x.tsv", "x.tsv.part.json"}
        COUNTS[kind, "new" if is_whole else "resumed"] += 1


def test_two_processes_write_no_chunks_into_one_file(tmp_path):
    path = tmp_path / "x.tsv"

    def lines(number, chunk):
        status, message = in_child(chunked(path))
        assert status == REFUSED and f"in use by another run (process {os.getpid()})" in message
        return chunk

    write_in_chunks(path, CHUNKS[:1], lines, {"input": "x"})
    assert path.read_text() == "a\nb\n"
    COUNTS["two processes", "refused"] += 1


@pytest.fixture
def in_process(translator, monkeypatch):
    """Workers in the process that drives the job."""

    def executor(values, shards, options):
        for shard in shards:
            for _ in range(4):
                try:
                    yield Worker(json.loads(json.dumps(values))).do(shard)
                    break
                except Exception:
                    continue

    monkeypatch.setitem(job.EXECUTORS, "local", executor)
    monkeypatch.setattr(Translator, "load", lambda folder, **loading: translator)


def test_a_job_on_a_corpus(translator, in_process, tmp_path):
    translator.save(tmp_path / "model")
    source = tmp_path / "source.txt"
    source.write_text("".join(f"{x}\n" for x in TEXTS[:4]))

    def work(out):
        options = dict(shard_lines=2, beam_size=1, **SHORT)
        return lambda: translate_corpus(tmp_path / "model", source, out, **options) and None

    def joined(out):
        return "".join(x.read_text() for x in sorted(out.glob("shard-*.txt")))

    work(tmp_path / "whole")()
    count = changes_of(work(tmp_path / "counted"))
    for i, (kind, fault) in enumerate(faults_of(count, 4)):
        out = tmp_path / str(i)
        status, message = in_child(fault(work(out)))
        assert status in (0, -9, REFUSED, 3), message
        assert status != 3 or "ShardError" in message, message
        assert in_child(work(out))[0] == 0
        assert joined(out) == joined(tmp_path / "whole")
        names = {x.name for x in (tmp_path / "whole").iterdir()}
        assert {x.name for x in out.iterdir()} == names
        COUNTS[kind, "resumed"] += 1


@pytest.mark.parametrize("suffix", ["", ".gz"] if ALL else [".gz"])
def test_cleaned_files_of_two_runs_are_never_mixed(suffix, tmp_path):
    """Neither file is old where the other is new; a fault between the moves leaves one missing."""
    inputs, opened = [], gzip.open if suffix else open
    for i, (side, word) in enumerate((("en", "dog"), ("de", "Hund"))):
        path = tmp_path / f"raw.{side}"
        path.write_text("".join(f"{word} {'abcdefgh'[n]} runs {i}\n" for n in range(8)))
        inputs += ["--input", path]

    def outputs(folder):
        return [folder / f"clean.{side}{suffix}" for side in ("en", "de")]

    def clean(folder):
        given = [x for path in outputs(folder) for x in ("--output", path)]

        def call():
            arguments = ["clean", *inputs, *given, "--skip", "numbers"]
            result = CliRunner().invoke(cli.app, [*map(str, arguments)])
            if result.exit_code == 2:
                raise ValueError(result.stderr)
            if result.exception:
                raise result.exception

        return call

    def texts(folder):
        return [opened(x, "rt").read() if x.exists() else None for x in outputs(folder)]

    clean(tmp_path / "whole")()
    new, old = texts(tmp_path / "whole"), ["old en\n", "old de\n"]
    assert all(new)
    count = changes_of(clean(tmp_path / "counted"))
    for i, (kind, fault) in enumerate(faults_of(count, 4)):
        folder = tmp_path / str(i)
        folder.mkdir()
        for path, text in zip(outputs(folder), old, strict=True):
            with opened(path, "wt") as file:
                file.write(text)
        status, message = in_child(fault(clean(folder)))
        assert status in (0, -9, REFUSED), message
        assert status != REFUSED or message.count("keras-transformer: ") == 1, message
        found = texts(folder)
        assert found in (old, new) or None in found, (found, status)
        clean(folder)()
        assert texts(folder) == new
        COUNTS[kind, "old" if found == old else "new" if found == new else "one missing"] += 1
