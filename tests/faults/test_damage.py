"""Truncated files and flipped bits are refused in one line, or change nothing."""

import json
import resource
import shutil
import signal
from collections import Counter

import pytest

from keras_transformer.system.failures import BAD_INPUT, in_one_line
from tests.faults import damage
from tests.faults.faults import ALL, COUNTS, in_child, some

pytestmark = pytest.mark.once("files: no backend reads them")
SECONDS, MEMORY = 30, 4 << 30  # for one file; of address space beyond that of the tests
HEADER = 512


@pytest.fixture(scope="module")
def kinds(tokenizer, tmp_path_factory):
    from tests.small_translator import make

    return damage.kinds(make(tokenizer, seed=4), tmp_path_factory.mktemp("whole"))


@pytest.fixture
def outcomes(kinds, tmp_path):
    """`outcomes(name, damaged)`: what a reader says to each of the damaged contents."""

    def read_all(kind, contents, accepted):
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        whole, found = kind.read(copied(kind)), []
        for content in contents:
            folder = copied(kind)
            (folder / kind.file).write_bytes(content)
            signal.alarm(SECONDS)
            try:
                same = kind.read(folder) == whole
                found.append("the same" if same else "as if edited" if kind.plain else "WRONG")
            except BAD_INPUT as error:
                line = in_one_line(error)
                named = str(folder) in line and len(line) < 2000
                found.append("refused" if named else f"unclear: {line}")
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")
        wrong = [(i, x) for i, x in enumerate(found) if x not in accepted]
        return json.dumps([Counter(found), wrong[:20]])

    def copied(kind):
        folder = tmp_path / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kind.folder, folder)
        return folder

    def run(name, contents, fault, accepted):
        status, message = in_child(lambda: read_all(kinds[name], contents, accepted), SECONDS)
        assert status == 0, (name, message)
        found, wrong = json.loads(message)
        assert not wrong, (name, wrong)
        for outcome, count in found.items():
            COUNTS[fault, outcome] += count

    return run


def content_of(kind):
    return (kind.folder / kind.file).read_bytes()


@pytest.mark.parametrize("name", damage.NAMES)
def test_a_truncated_file_is_refused(name, kinds, outcomes):
    whole = content_of(kinds[name])
    sizes = {0, 1, len(whole) // 2, *range(1024, len(whole), 1024), len(whole) - 1}
    # A JSON text without its last line end is whole.
    accepted = ("refused", "the same") if whole.endswith(b"}\n") else ("refused",)
    sizes = some(sorted(x for x in sizes if x < len(whole)), 5)
    outcomes(name, [whole[:size] for size in sizes], "truncation", accepted)


@pytest.mark.parametrize("name", damage.NAMES)
def test_flipped_bits_are_refused_or_change_nothing(name, kinds, outcomes):
    whole = content_of(kinds[name])
    size = len(whole)
    if kinds[name].file.endswith(".safetensors"):  # has no checksum of the numbers
        size = 8 + int.from_bytes(whole[:8], "little")
    places = {*range(min(HEADER, size))}
    if whole.startswith(b"PK"):
        places |= {*range(len(whole) - HEADER, len(whole))}
    bits = [(place, bit) for place in sorted(places) for bit in (range(8) if ALL else (place % 8,))]
    contents = []
    for place, bit in some(bits, 10):
        content = bytearray(whole)
        content[place] ^= 1 << bit
        contents.append(bytes(content))
    accepted = ("refused", "the same", *["as if edited"] * kinds[name].plain)
    outcomes(name, contents, "flipped bit", accepted)


@pytest.mark.parametrize("size", [2**20, 2**40, 2**60, 2**64 - 1])
def test_a_header_that_claims_more_than_there_is_takes_no_memory(size, kinds, outcomes):
    contents = [size.to_bytes(8, "little") + content_of(kinds["weights"])[8:]]
    for name in ("weights", "foreign weights", "shortlist", "state: weights"):
        outcomes(name, contents, "false size", ("refused",))
    whole = content_of(kinds["model.keras"])
    place = whole.rindex(b"PK\x01\x02")  # the last entry of the directory: its two sizes
    sizes = min(size, 2**32 - 2).to_bytes(4, "little") * 2
    content = whole[: place + 20] + sizes + whole[place + 28 :]
    outcomes("model.keras", [content], "false size", ("refused",))
