"""The `MaskFiller`, which predicts a masked token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.saved.kinds import kind_of
from keras_transformer.tasks.encoder_task import EncoderTask
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts

MASKS = ("[MASK]", "<mask>")


@dataclass(frozen=True)
class Candidate:
    """A candidate for a masked token, and its probability in [0, 1].

    `token` is the text of the candidate, without the space before it. If this text is empty, or
    several candidates for a mask have the same text, `token` is the piece of the vocabulary, such
    as "ĠParis" for "Paris" after a space.
    """

    token: str
    probability: float


class MaskFiller(EncoderTask):
    """A predictor of masked tokens that `training.masked_language_model` or `import` saved.

    ```python
    filler = MaskFiller.load("saved_models/bert")
    (candidates,) = filler.fill([f"a {filler.mask} film"])
    print(candidates[0].token, candidates[0].probability)
    ```

    Texts are sorted by length and processed in batches of a token budget. Padding is masked, so
    the result for a text does not depend on the others in its batch.

    Args:
        model: Encoder with the head "masked_lm" or "pretraining".
        tokenizer: Tokenizer that the model was trained with.

    Attributes:
        mask: The mask token: "[MASK]" if the tokenizer has it, else "<mask>", as in a RoBERTa, an
            MPNet or an ESM.

    Raises:
        ValueError: If the model has another head, or the tokenizer has more pieces than the model
            or no mask token.
    """

    kind = kind_of("MaskFiller")

    def __init__(self, model: EncoderOnly, tokenizer: TextTokenizer):
        super().__init__(model, tokenizer)
        masks = [mask for mask in MASKS if tokenizer.id_of(mask) is not None]
        require(len(masks) > 0, "the tokenizer's mask token", None, f"one of {MASKS}")
        self.mask, self._mask_id = masks[0], tokenizer.pieces()[masks[0]]

    def fill(
        self,
        texts: Sequence[str],
        top_k: int = 5,
        *,
        tokens_per_batch: int = 1024,
        strict: bool = False,
    ) -> list[list[Candidate]]:
        """Return the most probable tokens in place of the mask of each text, best first.

        Args:
            texts: Texts that contain the mask token (`mask`) once.
            top_k: Number of candidates per text.
            tokens_per_batch: Maximum tokens in a batch, padding included. Each token takes memory
                for the logits of the whole vocabulary.
            strict: Whether a text that is too long raises ValueError; else it is cut with a
                warning.

        Raises:
            ValueError: If an argument is out of range, or a text does not have exactly one mask
                within the model's `max_length`.
        """
        require_whole("top_k", top_k, 1)
        texts = checked_texts(texts)
        ids = self._encoded(texts, strict, special=(self.mask,))
        for i, row in enumerate(ids):
            if (count := row.count(self._mask_id)) != 1:
                raise ValueError(
                    f"texts must have one {self.mask} each, in the first "
                    f"{self.model.config.max_length} tokens, got {count} in {texts[i]!r:.60}"
                )
        pieces = {i: piece for piece, i in self.tokenizer.pieces().items()}
        results = []
        for row in self._run(ids, tokens_per_batch):
            # A model may have more outputs than the tokenizer has tokens.
            best = (-row[: self.tokenizer.vocab_size]).argsort(kind="stable")[:top_k].tolist()
            tokens = self.tokenizer.decode([[i] for i in best])
            tokens = [x.strip() or pieces[i] for i, x in zip(best, tokens, strict=True)]
            # A word and the end of a word may have the same text, but are different tokens.
            named = zip(best, tokens, strict=True)
            counts = Counter(tokens)
            tokens = [x if counts[x] == 1 else pieces[i] for i, x in named]
            scored = zip(tokens, row[best].tolist(), strict=True)
            results.append([Candidate(*fields) for fields in scored])
        return results

    def in_words(self, found: Sequence[Candidate]) -> str:
        """Return the candidates for a mask as a line of text, separated by tabs."""
        return "\t".join(x.token for x in found)

    def function(self) -> Callable:
        mask_id = self._mask_id

        def probabilities(inputs):
            place_B = ops.argmax(ops.equal(inputs["token_ids"], mask_id), axis=1)
            outputs = self.model(inputs)
            logits_BTV = outputs["masked_lm"] if isinstance(outputs, dict) else outputs
            logits_B1V = ops.take_along_axis(logits_BTV, place_B[:, None, None], axis=1)
            return ops.softmax(ops.cast(logits_B1V[:, 0], "float32"), axis=-1)

        return probabilities
