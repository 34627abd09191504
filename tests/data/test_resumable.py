"""Files that are written chunk by chunk: stopped anywhere, they end as if never stopped."""

import json

import pytest

from keras_transformer.data.resumable import write_in_chunks

pytestmark = pytest.mark.once("files: no tensor is read")

CHUNKS = [["a", "b"], [], ["ä"], ["c", "d", "e"]]
WHOLE = "0 a\n0 b\n2 ä\n3 c\n3 d\n3 e\n"
RUN = {"input": "x", "options": (1, None)}


def lines(number, chunk):
    return [f"{number} {x}" for x in chunk]


def stopping_at(stop):
    def lines_of(number, chunk):
        for i, line in enumerate(lines(number, chunk)):
            if (number, i) == stop:
                raise KeyboardInterrupt
            yield line

    return lines_of


@pytest.mark.parametrize("stop", [(0, 0), (2, 0), (3, 2)])
def test_goes_on_after_the_last_whole_chunk(tmp_path, stop):
    path = tmp_path / "new" / "pairs.tsv"
    with pytest.raises(KeyboardInterrupt):
        write_in_chunks(path, CHUNKS, stopping_at(stop), RUN)
    assert not path.exists()
    if stop[0]:
        with (path.parent / "pairs.tsv.part").open("a") as file:
            file.write("half a li")  # what a machine that lost power left
    assert write_in_chunks(path, CHUNKS, lines, RUN) == stop[0]
    assert path.read_text("utf-8") == WHOLE
    assert [x.name for x in path.parent.iterdir()] == ["pairs.tsv"]


def test_nothing_is_overwritten_or_mixed(tmp_path):
    path = tmp_path / "pairs.tsv"
    assert write_in_chunks(path, CHUNKS, lines, RUN) == 0
    with pytest.raises(ValueError, match="pairs.tsv must not exist: it is written already"):
        write_in_chunks(path, CHUNKS, lines, RUN)
    assert path.read_text("utf-8") == WHOLE
    path.unlink()
    with pytest.raises(KeyboardInterrupt):
        write_in_chunks(path, CHUNKS, stopping_at((3, 0)), RUN)
    before = (tmp_path / "pairs.tsv.part").read_bytes()
    with pytest.raises(ValueError, match=r"part was begun with other arguments: .*'x'.*now .*'y'"):
        write_in_chunks(path, CHUNKS, lines, {**RUN, "input": "y"})
    assert (tmp_path / "pairs.tsv.part").read_bytes() == before
    (tmp_path / "pairs.tsv.part.json").write_text(json.dumps({"chunks": 1}))
    with pytest.raises(ValueError, match=r"part.json is broken: remove it and .* to start over"):
        write_in_chunks(path, CHUNKS, lines, RUN)
