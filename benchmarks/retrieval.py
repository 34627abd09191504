"""Retrieval of paraphrases: an imported sentence encoder beside BM25.

    python -m benchmarks.retrieval MODEL --data DATA [--queries 500] [--corpus 10000] [--save]

MODEL is anything that `import` takes and that becomes a `TextEmbedder`. DATA is a folder with
`tatoeba-en-de`: English sentences with one German translation are paraphrases. Each query is one
of them, and the corpus holds the others, among further sentences. Recall@1 is the share of queries
whose first result is a paraphrase; MRR is the mean of 1 / rank of the first paraphrase.
"""

from __future__ import annotations

import argparse
import gzip
import math
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks import contest
from keras_transformer import load_pretrained

K1, B = 1.5, 0.75  # the usual parameters of BM25


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return re.findall(r"\w+", text.lower())


def bm25(corpus: Sequence[str]) -> Callable[[str], np.ndarray]:
    """Return a function from a query to its score with each text (Robertson and Zaragoza 2009)."""
    counts = [Counter(words(text)) for text in corpus]
    lengths = np.array([x.total() for x in counts], float)
    postings = defaultdict(list)
    for i, count in enumerate(counts):
        for word, times in count.items():
            postings[word].append((i, times))
    norms, size = K1 * (1 - B + B * lengths / lengths.mean()), len(corpus)

    def scores(query):
        result = np.zeros(size)
        for word in {*words(query)} & postings.keys():
            rows, times = np.array(postings[word]).T
            rarity = math.log(1 + (size - len(rows) + 0.5) / (len(rows) + 0.5))
            result[rows] += rarity * times * (K1 + 1) / (times + norms[rows])
        return result

    return scores


def paraphrases(folder: Path) -> list[list[str]]:
    """Return the groups of English sentences that share a German translation, two or more each."""
    sides = (gzip.decompress((folder / f"train.{x}.gz").read_bytes()) for x in ("en", "de"))
    groups = defaultdict(dict)
    for english, german in zip(*(x.decode().splitlines() for x in sides), strict=True):
        groups[german.strip()].setdefault(" ".join(words(english)), english.strip())
    return [[*group.values()] for group in groups.values()]


def split(
    groups: Sequence[Sequence[str]], num_queries: int, size: int, seed: int = 0
) -> tuple[list[str], list[str], list[set[int]]]:
    """Return queries, a corpus of a size, and the indices of each query's paraphrases in it."""
    rng = random.Random(seed)
    groups = rng.sample(groups, len(groups))
    asked = [group for group in groups if len(group) > 1][:num_queries]
    queries = [group[0] for group in asked]
    corpus = list(dict.fromkeys(text for group in asked for text in group[1:]))
    more = dict.fromkeys(text for group in groups for text in group)
    used = {*queries, *corpus}
    corpus += [text for text in more if text not in used][: max(0, size - len(corpus))]
    places = {text: i for i, text in enumerate(corpus)}
    return queries, corpus, [{places[x] for x in group[1:] if x in places} for group in asked]


def measured(scores: np.ndarray, relevant: Sequence[set[int]]) -> tuple[float, float]:
    """Return recall@1 and MRR of scores (queries, corpus)."""
    best = np.array([row[sorted(right)].max() for row, right in zip(scores, relevant, strict=True)])
    ranks = 1 + (scores > best[:, None]).sum(axis=1)
    return float((ranks == 1).mean()), float((1 / ranks).mean())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="folder, zip file or name of a sentence encoder")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--corpus", type=int, default=10_000)
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    groups = paraphrases(options.data / "tatoeba-en-de")
    queries, corpus, relevant = split(groups, options.queries, options.corpus)
    rows, start = [], time.perf_counter()
    of_query = bm25(corpus)
    scores = np.stack([of_query(query) for query in queries])
    rows.append(["BM25", *measured(scores, relevant), time.perf_counter() - start])
    embedder, start = load_pretrained(options.model), time.perf_counter()
    vectors = [embedder.embed(texts) for texts in (queries, corpus)]
    vectors = [x / np.linalg.norm(x, axis=-1, keepdims=True) for x in vectors]
    scores = vectors[0] @ vectors[1].T
    name = Path(options.model).name
    rows.append([f"`{name}`", *measured(scores, relevant), time.perf_counter() - start])
    shown = [[name, f"{x:.3f}", f"{y:.3f}", f"{seconds:.1f}"] for name, x, y, seconds in rows]
    note = (
        f"{len(queries)} English sentences of Tatoeba as queries, a corpus of {len(corpus):,} with "
        "their paraphrases (sentences with the same German translation). Seconds are those of all "
        "queries and the whole corpus, without loading."
    )
    header = ["", "recall@1", "MRR", "seconds"]
    contest.report(
        "retrieval",
        "Retrieval of paraphrases",
        [contest.table(header, shown), note],
        options.save,
    )


if __name__ == "__main__":
    main()
