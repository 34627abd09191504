"""Shortlists: for each source piece, the likely target pieces, learned from parallel text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.system.files import replacing
from keras_transformer.system.git_lfs import refuse_pointer
from keras_transformer.text.tokenizer import Tokenizer, checked_texts

FILE = "shortlist.safetensors"
NONE = -1  # padding of the rows of `candidates`
ITERATIONS = 5  # training iterations of IBM model 1
LEAST = 1e-3  # minimum probability of a candidate


@dataclass(frozen=True)
class Shortlist:
    """A restriction of the target vocabulary, by source text (Jean et al. 2015, section 3.2).

    In the search for a translation, only two kinds of target pieces are allowed: the candidates of
    the source's pieces, and the most frequent pieces of the training targets.

    Args:
        candidates: Target ids for each of V source ids: (V, N), int32, padded with -1.
        frequent: Target ids that are allowed for every source: (F,), int32.
        tokenizer: Fingerprint of the tokenizer that the ids belong to.

    Raises:
        ValueError: If an array has another number of axes, or is not of whole numbers.
    """

    candidates: np.ndarray
    frequent: np.ndarray
    tokenizer: str

    def __post_init__(self):
        for name, axes in (("candidates", 2), ("frequent", 1)):
            array = getattr(self, name)
            has_axes = array.ndim == axes and np.issubdtype(array.dtype, np.integer)
            require(
                has_axes, name, (array.shape, str(array.dtype)), f"{axes} axes of whole numbers"
            )

    @classmethod
    def train(
        cls,
        tokenizer: Tokenizer,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        per_piece: int = 20,
        frequent: int = 100,
    ) -> Shortlist:
        """Learn the candidates of each source piece with IBM model 1 (Brown et al. 1993).

        If both languages share a vocabulary, each piece is also a candidate of itself, because
        names are copied. Time and memory grow with the number of combinations of a source and a
        target piece within sentence pairs. For a large corpus, pass about 100,000 sentence pairs,
        not all.

        Args:
            tokenizer: Tokenizer of the model.
            sources: Source texts that the model was trained on, or similar ones.
            targets: Their translations, one per source.
            per_piece: Maximum number of candidates per source piece.
            frequent: Number of the most frequent target pieces, which are allowed for every source.

        Raises:
            ValueError: If an argument is out of range, or the numbers of texts differ.
        """
        require_whole("per_piece", per_piece, 1)
        require_whole("frequent", frequent, 0)
        sources, targets = checked_texts(sources, "sources"), checked_texts(targets, "targets")
        require(len(sources) > 0, "sources", sources, "one or more texts")
        accepted = f"{len(sources)} texts, one per source"
        require(len(targets) == len(sources), "targets", f"{len(targets)} texts", accepted)
        ids_of_pairs = (tokenizer.encode_source(sources), tokenizer.encode_target(targets))
        count, vocab_size = tokenizer.source_vocab_size, tokenizer.target_vocab_size
        source, target, probability = _model_1(*ids_of_pairs, vocab_size)
        candidates = np.full((count, per_piece), NONE, "int32")
        if tokenizer.shared:
            candidates[:, 0] = np.arange(count)
        _write_best(candidates, source, target, probability, first=int(tokenizer.shared))
        totals = np.bincount(np.concatenate([np.asarray(x, "int64") for x in ids_of_pairs[1]]))
        order = np.argsort(-totals, kind="stable")[:frequent]
        common = order[totals[order] > 0].astype("int32")
        return cls(candidates, common, tokenizer.fingerprint())

    def tokens_of(
        self,
        source_ids_BS: np.ndarray,
        first_ids: Sequence[int],
        num_special: int,
        prefix_BP: np.ndarray | None = None,
        lengths: Sequence[int] = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the target ids that the rows of a batch may use, and which row may use which.

        Args:
            source_ids_BS: Source ids.
            first_ids: First ids of the list, in this order.
            num_special: Number of first ids that each row may use.
            prefix_BP: Further ids of each row; None: no others.
            lengths: The list is padded with -1 to the first of these lengths that has room for it.

        Returns:
            The list (U,), int32, each id once, and a boolean array (B, U).
        """
        rows = np.arange(len(source_ids_BS))[:, None]
        parts = [self.candidates[source_ids_BS].reshape(len(rows), -1)]
        parts += [] if prefix_BP is None else [prefix_BP]
        highest = max(*first_ids, *(int(x.max(initial=0)) for x in (*parts, self.frequent)))
        may_use = np.zeros((len(rows), highest + 2), bool)  # the last column is that of -1
        for ids in parts:
            may_use[rows, ids] = True
        may_use[:, [*first_ids[:num_special], *self.frequent]] = True
        used = np.flatnonzero(may_use[:, :-1].any(axis=0))
        ids = np.concatenate([first_ids, np.setdiff1d(used, first_ids)])
        length = next((x for x in lengths if x >= len(ids)), len(ids))
        ids = np.pad(ids, (0, length - len(ids)), constant_values=NONE).astype("int32")
        may_use[:, -1] = False
        return ids, may_use[:, ids]

    def save(self, folder: str | os.PathLike) -> None:
        """Write the file `shortlist.safetensors` into a folder."""
        from safetensors.numpy import save_file

        arrays = {"candidates": self.candidates, "frequent": self.frequent}
        with replacing(Path(folder, FILE)) as temporary:
            save_file(arrays, temporary, {"tokenizer": self.tokenizer})

    @classmethod
    def read(cls, folder: str | os.PathLike, tokenizer: Tokenizer) -> Shortlist | None:
        """Read `shortlist.safetensors`; return None if the folder has no such file.

        Args:
            folder: Folder of the translator.
            tokenizer: Its tokenizer.

        Raises:
            ValueError: If the file is broken, or belongs to another tokenizer.
        """
        from safetensors import SafetensorError, safe_open

        path = Path(folder, FILE)
        if not path.is_file():
            return None
        refuse_pointer(path)
        try:
            with safe_open(path, "numpy") as file:
                arrays = {name: file.get_tensor(name) for name in ("candidates", "frequent")}
                shortlist = cls(tokenizer=(file.metadata() or {}).get("tokenizer", ""), **arrays)
        except (SafetensorError, ValueError) as error:
            raise ValueError(f"{path} is not a shortlist: {error}") from error
        if shortlist.tokenizer != tokenizer.fingerprint():
            raise ValueError(f"{path} is of another tokenizer: make it again, or remove it")
        return shortlist


def _model_1(sources, targets, vocab_size):
    """Train IBM model 1 on lists of ids.

    Returns:
        Source ids (N,), target ids (N,) and p(target | source) (N,) of all combinations of a source
        and a target id within sentence pairs.
    """
    cells, places, first = [], [], 0
    for source, target in zip(sources, targets, strict=True):
        if source and target:
            source_pieces = np.unique(np.asarray(source, "int64"))
            target_ids = np.asarray(target, "int64")
            cells.append((source_pieces[:, None] * vocab_size + target_ids).reshape(-1))
            places.append(np.tile(np.arange(first, first + len(target_ids)), len(source_pieces)))
            first += len(target_ids)
    require(first > 0, "sources", sources, "texts with tokens, and so targets")
    keys, pair = np.unique(np.concatenate(cells), return_inverse=True)
    source, target, place = keys // vocab_size, keys % vocab_size, np.concatenate(places)
    probability = np.ones(len(keys))
    for _ in range(ITERATIONS):
        share = probability[pair]  # the part of a target token that each source piece explains
        share /= np.bincount(place, share, first)[place]
        counts = np.bincount(pair, share, len(keys))
        probability = counts / np.bincount(source, counts)[source]
    return source, target, probability


def _write_best(candidates, source, target, probability, first):
    """Write the most probable targets of each source id into its row, from column `first` on."""
    is_probable = probability > LEAST
    source, target, probability = (x[is_probable] for x in (source, target, probability))
    order = np.lexsort((-probability, source))
    source, target = source[order], target[order]
    starts = np.searchsorted(source, source)  # index of the first entry with the same source
    column = first + np.arange(len(source)) - starts
    has_column = column < candidates.shape[1]
    candidates[source[has_column], column[has_column]] = target[has_column]
