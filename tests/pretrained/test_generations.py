"""An imported model finds what `generate()` finds, by `generation_config.json` alone.

A sample of the cases by default; KT_GENERATIONS=200 tries so many and prints their outcomes:

    KT_GENERATIONS=200 pytest -s tests/pretrained/test_generations.py
"""

import collections
import json
import os

import numpy as np
import pytest

from tests.backends import BACKEND, EVERY_CASE_ASKED
from tests.pretrained.generations import (
    FAMILIES,
    TEXTS,
    TRANSLATORS,
    WRITERS,
    configure,
    continuations,
    drawn,
    transcriptions,
    translations,
    write_folder,
)

COUNT = int(os.environ.get("KT_GENERATIONS", 0))
EACH = -(-COUNT // len(FAMILIES)) if COUNT else 2 if EVERY_CASE_ASKED else 1
SOME = FAMILIES if COUNT or BACKEND == "torch" else ("bart", "llama", "whisper")
outcomes = collections.Counter()
tokens = collections.Counter()


@pytest.fixture(scope="module", params=SOME)
def written(request, tmp_path_factory):
    """A family, its folder, and the contents of its two files at first."""
    folder = tmp_path_factory.mktemp(request.param.replace("_", "-"))
    write_folder(request.param, folder)
    files = [folder / name for name in ("config.json", "generation_config.json")]
    texts = [path.read_text() if path.is_file() else "{}" for path in files]
    yield request.param, folder, *texts
    if COUNT:
        print(request.param, dict(outcomes), f"{len(tokens)} different texts")


@pytest.mark.once("the search is compiled under each in tests/decoding and tests/running")
@pytest.mark.parametrize("case", range(EACH))
def test_the_same_as_generate(written, case):
    family, folder, config, generation = written
    random = np.random.default_rng([case, FAMILIES.index(family)])
    (folder / "config.json").write_text(config)
    ids = {x: y for x, y in json.loads(generation).items() if x.endswith("token_id")}
    if not isinstance(ids.get("eos_token_id"), int):
        ids["eos_token_id"] = json.loads(config)["eos_token_id"]
    ids = {x: y for x, y in ids.items() if isinstance(y, int) and not x.startswith("forced")}
    vocab_size = json.loads(config)["vocab_size"]
    fields = drawn(family, ids, random, vocab_size)
    kept = json.loads(generation) if family == "whisper" else ids
    kept.pop("suppress_tokens", None)  # some of them may be EOS here
    original = kept, folder / "generation_config.json"
    configure(folder, fields, case % 3 == 2 and family != "whisper", original)
    try:
        if family in TRANSLATORS:
            texts = random.choice(TEXTS, 3, replace=False).tolist()
            found, expected = translations(family, folder, texts)
        elif family in WRITERS:
            prompts = [random.integers(3, 99, n).tolist() for n in random.integers(2, 9, 3)]
            found, expected = continuations(folder, prompts)
        else:
            found, expected = transcriptions(folder, case)
    except ValueError as error:
        if not COUNT or not any(name in str(error) for name in fields):
            raise
        outcomes["refused"] += 1
        print(family, case, error)
        return
    outcomes["equal" if found == expected else "different"] += 1
    tokens.update(map(str, expected))
    assert found == expected, fields
