"""Files are taken apart by the script `__main__`, in processes that have limits and are ended."""

import asyncio
import time

import pytest

from keras_transformer.serving import readers
from keras_transformer.serving.readers import Readers
from keras_transformer.serving.waiting import TooLargeError

pytestmark = pytest.mark.once("processes that read files: no tensor is read")
SUBTITLES = b"0:0:1,0 --> 0:0:2,0\none\n\n" * 3


def run(work, most_texts=10):
    """Returns what `work(readers)` returns."""

    async def inside():
        return await work(Readers(most_texts))

    return asyncio.run(inside())


def test_texts_out_and_in():
    assert run(lambda x: x.texts("subtitles", SUBTITLES)) == (["one"] * 3, [])
    file = run(lambda x: x.filled("subtitles", SUBTITLES, ["a\x07", "\ufffeb", "\ud800c\x00"]))
    assert file.split()[3::4] == [b"a", b"b", b"c"]


def test_too_much_is_refused(monkeypatch):
    with pytest.raises(TooLargeError, match="at most 2 paragraphs .* got 3 paragraphs of 9"):
        run(lambda x: x.texts("subtitles", SUBTITLES), most_texts=2)
    long = SUBTITLES.replace(b"one", b"one " * 200)
    with pytest.raises(TooLargeError, match="500 characters, .* got 3 paragraphs of 24"):
        run(lambda x: x.texts("subtitles", long))
    with pytest.raises(ValueError, match="SubRip"):
        run(lambda x: x.texts("subtitles", b"x"))
    monkeypatch.setattr(readers, "MOST_BYTES", 200_000_000)
    with pytest.raises(TooLargeError, match="got one that takes more memory"):
        run(lambda x: x.texts("subtitles", b"\n" * 20_000_000))


def test_too_long_is_ended(tmp_path, monkeypatch):
    (tmp_path / "slow.py").write_text("def read(content):\n    while True: pass\n")
    code = "import runpy, sys; sys.path[:0] = [{!r}]; runpy.run_path({!r}, run_name='__main__')"
    code = code.format(str(tmp_path), readers.COMMAND[-1] + "/__main__.py")
    monkeypatch.setattr(readers, "COMMAND", (readers.COMMAND[0], "-c", code))
    monkeypatch.setattr(readers, "MOST_SECONDS", 1)
    with pytest.raises(TooLargeError, match="at most 1 seconds .* got one that took more"):
        run(lambda x: x.texts("slow", b""))

    async def left(one):
        started = []
        begin = asyncio.create_subprocess_exec

        async def remembered(*command, **options):
            started.append(await begin(*command, **options))
            return started[-1]

        monkeypatch.setattr(asyncio, "create_subprocess_exec", remembered)
        task = asyncio.ensure_future(one.texts("slow", b""))
        while not started:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return started[0].returncode

    monkeypatch.setattr(readers, "MOST_SECONDS", 60)
    begun = time.monotonic()
    assert run(left) == -9 and time.monotonic() - begun < 30
