"""The small translator in a folder, and its sentences in a file."""

import pytest

from tests.small_translator import SHORT, TEXTS


@pytest.fixture(scope="session")
def folder(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora") / "model"
    translator.save(folder)
    return folder


@pytest.fixture(scope="session")
def lines():
    return TEXTS * 4


@pytest.fixture(scope="session")
def expected(alone, lines):
    return "".join(f"{alone[text]}\n" for text in lines)


@pytest.fixture
def source(tmp_path, lines):
    path = tmp_path / "source.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture(scope="session")
def search():
    return SHORT


@pytest.fixture
def joined():
    """`joined(folder)`: the shards of a folder, as `cat` gives them"""
    return lambda folder: "".join(x.read_text() for x in sorted(folder.glob("shard-*.txt")))
