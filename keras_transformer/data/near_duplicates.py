"""A filter that drops near duplicates of earlier pairs (MinHash with LSH)."""

from __future__ import annotations

from keras_transformer.config import require
from keras_transformer.system.extras import missing

NGRAM = 4  # length of the n-grams in characters


class NearDuplicateFilter:
    """A filter that drops pairs that are nearly the same as an earlier pair that was kept.

    A pair is represented by the set of character n-grams of its two texts, without case,
    punctuation and repeated spaces. The similarity of two pairs is the Jaccard index of these sets:
    the size of the intersection divided by that of the union. MinHash (Broder 1997, "On the
    resemblance and containment of documents") estimates it from 128 minima of hashes.
    Locality-sensitive hashing (Leskovec et al. 2014, "Mining of Massive Datasets", section 3.4)
    divides these minima into bands, and drops a pair if one of its bands is equal to that of an
    earlier pair: nearly all pairs clearly above the threshold, and few clearly below.

    It stores a hash of each band of each pair that is kept: with a threshold of 0.8, nine hashes,
    about 0.6 KB.

    Args:
        threshold: Similarity from which on most pairs are dropped, above 0 and below 1, such as
            0.8.

    Call arguments:
        source, target: The texts of a pair.

    Returns:
        "near_duplicate" if the pair is dropped, else None.

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
        self._empty = MinHash()  # copies share its permutations, which are slow to draw
        lsh = MinHashLSH(threshold, num_perm=self._empty.num_perm)
        self._bands = [slice(i * lsh.r, (i + 1) * lsh.r) for i in range(lsh.b)]
        # MinHashLSH would take six times as much memory: it also stores which pairs have a band.
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
    """Return the distinct character n-grams of texts, each marked with the number of its text."""
    ngrams = set()
    for number, text in enumerate(texts):
        plain = "".join(x if x.isalnum() else " " for x in text.casefold())
        plain = f" {' '.join(plain.split())} "
        for i in range(max(1, len(plain) - NGRAM + 1)):
            ngrams.add(f"{number}{plain[i : i + NGRAM]}".encode("utf-8", "surrogatepass"))
    return list(ngrams)
