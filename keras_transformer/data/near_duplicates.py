"""A filter of pairs that are nearly the same as an earlier one (MinHash with LSH)."""

from __future__ import annotations

from keras_transformer.config import require
from keras_transformer.system.extras import missing

NGRAM = 4  # characters


class NearDuplicateFilter:
    """The filter of pairs that are nearly the same as an earlier one; reason "near_duplicate".

    A pair is the set of character n-grams of its two texts, without case, punctuation and repeated
    spaces. The similarity of two sets is Jaccard's: the size of their intersection by that of
    their union. MinHash (Broder 1997, "On the resemblance and containment of documents") estimates
    it from 128 minima of hashes, and locality-sensitive hashing (Leskovec et al. 2014, "Mining of
    Massive Datasets", section 3.4) finds earlier pairs with equal bands of these: nearly all that
    are clearly above the threshold, and few that are clearly below.

    It holds a hash of each band of each pair that it lets pass: with a threshold of 0.8, nine of
    them, about 0.6 KB.

    Args:
        threshold: Similarity above which a pair is dropped, between 0 and 1: 0.8, for example.

    Raises:
        ImportError: If datasketch is not installed.
        ValueError: If the threshold is out of range.
    """

    def __init__(self, threshold: float):
        require(0 < threshold < 1, "threshold", threshold, "above 0 and below 1")
        try:
            from datasketch import MinHash, MinHashLSH
        except ImportError as error:
            raise missing("finding near duplicates", "clean") from error
        self._empty = MinHash()  # its permutations, which take long to draw, are shared by copies
        lsh = MinHashLSH(threshold, num_perm=self._empty.num_perm)
        self._bands = [slice(i * lsh.r, (i + 1) * lsh.r) for i in range(lsh.b)]
        # MinHashLSH would hold six times as much: it remembers which pairs have a band.
        self._seen: set[int] = set()

    def __call__(self, source: str, target: str) -> str | None:
        sketch = self._empty.copy()
        sketch.update_batch(_ngrams(source, target))
        values = sketch.hashvalues
        keys = {hash((i, values[x].tobytes())) for i, x in enumerate(self._bands)}
        if not self._seen.isdisjoint(keys):
            return "near_duplicate"
        self._seen |= keys
        return None


def _ngrams(*texts: str) -> list[bytes]:
    """Return the different character n-grams of the texts; those of each text are its own."""
    found = set()
    for number, text in enumerate(texts):
        plain = "".join(x if x.isalnum() else " " for x in text.casefold())
        plain = f" {' '.join(plain.split())} "
        for i in range(max(1, len(plain) - NGRAM + 1)):
            found.add(f"{number}{plain[i : i + NGRAM]}".encode("utf-8", "surrogatepass"))
    return list(found)
