"""Glossaries: source terms, and the target terms that translations must use for them."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from keras_transformer.config import require
from keras_transformer.text.pieces import has_words
from keras_transformer.text.tokenizer import Tokenizer, checked_texts

# Tags that `tagged` writes into a source text, around a term and its translation.
TERM_TAGS = ("<term>", "<is>", "</term>")
# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Chinese and Japanese. Korean is
# included because it adds particles to words without a space.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_WORD = rf"[^\W{_UNSPACED}]"


def is_unspaced(text: str) -> bool:
    """Return whether a text begins with a letter of a script without spaces, or of Korean."""
    return re.match(f"[{_UNSPACED}]", text) is not None


def goes_on(text: str) -> bool:
    """Return whether a text that follows a word directly continues this word.

    U+FFFD counts as a letter: an incomplete character of a byte-level vocabulary is decoded to it.
    """
    return re.match(rf"{_WORD}|\ufffd", text) is not None


def tagged(term: str, form: str) -> str:
    """Return a source term and its translation between tags, as `Glossary.inlined` writes them."""
    begin, middle, end = TERM_TAGS
    return f"{begin} {term} {middle} {form} {end}"


def spaced(source: str) -> str:
    """Return a source with white space around its tagged terms, so that each tag is one piece."""
    source = re.sub(rf"(?<=\S){TERM_TAGS[0]}", f" {TERM_TAGS[0]}", source)
    return re.sub(rf"{TERM_TAGS[2]}(?=\S)", f"{TERM_TAGS[2]} ", source)


def reads_terms(tokenizer: Tokenizer) -> bool:
    """Return whether `TERM_TAGS` are pieces of a tokenizer's source vocabulary."""
    return has_words(tokenizer, TERM_TAGS)


def without_tags(texts: Iterable[str], name: str) -> None:
    """Check that no text contains a tag of terms.

    Args:
        texts: The texts.
        name: Name of the argument in error messages.

    Raises:
        ValueError: If a text is not a string, or contains a tag.
    """
    for text in checked_texts(texts, name):
        tag = next((x for x in TERM_TAGS if x in text), None)
        require(tag is None, name, f"{text:.80}", f"text without {tag}")


class Glossary:
    """Source terms and the target terms that their translations must contain.

    ```python
    glossary = Glossary({"dog": ["Hund", "Hunde", "Hunden"], "couch": ["Sofa"]})
    translator.translate(["A dog sleeps on the couch ."], constraint=glossary)
    ```

    A term matches whole words of a source, in any case. Of overlapping terms, the one that begins
    first counts; of those that begin together, the longest. The translation must contain one of the
    term's forms as whole words, unchanged or with its first letter capitalized; once is enough,
    however often the term occurs. A word ends where no letter or digit follows; vowel signs of
    Indic scripts do not count as letters. In Korean and scripts without spaces, such as Chinese, a
    term matches anywhere.

    Args:
        terms: For each source term, the accepted target terms (forms), such as inflections.

    Raises:
        ValueError: If there are no terms, a term or a form is empty or not a string, or forms are
            not a list.
    """

    def __init__(self, terms: Mapping[str, Sequence[str]]):
        has_terms = isinstance(terms, Mapping) and len(terms) > 0
        require(has_terms, "terms", terms, "one or more source terms with their forms")
        self._terms: dict[str, list[str]] = {}
        self._spelled: dict[str, None] = {}  # source terms in their original case
        for term, forms in terms.items():
            is_list = isinstance(forms, Sequence) and not isinstance(forms, str)
            require(is_list, f"forms of {term!r}", forms, "a list of texts")
            every = checked_texts([term, *forms], "a term and its forms")
            sides = [" ".join(x.split()) for x in every]
            has_forms = all(sides) and len(sides) > 1
            require(has_forms, "a term", tuple(every), "a source and its forms, none of them empty")
            self._spelled[sides[0]] = None
            known = self._terms.setdefault(sides[0].casefold(), [])
            known += [x for x in dict.fromkeys(sides[1:]) if x not in known]

    @classmethod
    def read(cls, path: str | os.PathLike) -> Glossary:
        """Read a text file with a term per line: the source term and its forms, separated by tabs.

        Empty lines and lines that begin with "#" are skipped.

        Raises:
            ValueError: If the file is not UTF-8 or has no terms, or a line has no form or an empty
                field.
        """
        terms: dict[str, list[str]] = {}
        try:
            lines = Path(path).read_text("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be UTF-8 text ({error})") from error
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            source, *forms = (x.strip() for x in line.rstrip().split("\t"))
            if not source or not forms or not all(forms):
                raise ValueError(
                    f"{path}, line {number}: must have a source term, a tab and a target term, "
                    f"none of them empty, got {line!r:.80}"
                )
            terms.setdefault(source, []).extend(forms)
        require(bool(terms), "the terms", 0, f"at least one in {path}")
        return cls(terms)

    def __len__(self) -> int:
        """Return the number of source terms."""
        return len(self._terms)

    def __repr__(self) -> str:
        return f"a glossary of {len(self)} terms"

    def forms(self) -> list[str]:
        """Return the forms of all terms, each once."""
        return list(dict.fromkeys(form for row in self._terms.values() for form in row))

    def terms_in(self, source: str) -> list[tuple[str, ...]]:
        """Return the forms of each term that occurs in a source, in order, each term once.

        Args:
            source: A source text.
        """
        return [tuple(self._terms[term]) for term in self._spelled_in(source)]

    def pairs_in(self, source: str) -> list[tuple[str, str]]:
        """Return each term that occurs in a source, as spelled there, with its first form."""
        spelled = self._spelled_in(source)
        return [(text, self._terms[term][0]) for term, text in spelled.items()]

    def _spelled_in(self, source):
        """Return the terms in a source, as first spelled there, by their keys in `_terms`."""
        spelled: dict[str, str] = {}
        for match in self._pattern.finditer(source):
            text = " ".join(match.group().split())
            if text.casefold() in self._terms:
                spelled.setdefault(text.casefold(), text)
        return spelled

    def inlined(self, source: str) -> str:
        """Return a source with the first form of each term written after it, between tags.

        "A dog sleeps." becomes "A <term> dog <is> Hund </term> sleeps." It is the input of models
        that were trained with such texts, see `training.terms.with_terms`.

        Args:
            source: A source text.

        Raises:
            ValueError: If the source is not a string, or contains one of the tags already.
        """
        without_tags([source], "source")

        def with_form(match):
            forms = self._terms.get(" ".join(match.group().split()).casefold())
            return tagged(match.group(), forms[0]) if forms else match.group()

        return spaced(self._pattern.sub(with_form, source))

    @functools.cached_property
    def _pattern(self):
        longest_first = sorted(self._spelled, key=len, reverse=True)
        return re.compile("|".join(map(_whole, longest_first)), re.IGNORECASE)


def is_kept(forms: Sequence[str], translation: str) -> bool:
    """Return whether a translation contains one of the forms of a term.

    Args:
        forms: The forms of the term.
        translation: The translation.
    """
    return any(re.search(_whole(x), translation) for form in forms for x in spellings(form))


def spellings(form: str) -> list[str]:
    """Return a form unchanged, and with a capital first letter if that differs."""
    return list(dict.fromkeys([form, form[:1].upper() + form[1:]]))


def _whole(term):
    """Return a regular expression that matches a term as whole words."""
    words = r"\s+".join(map(re.escape, term.split()))
    before = f"(?<!{_WORD})" if re.match(_WORD, term[0]) else ""
    after = f"(?!{_WORD})" if re.match(_WORD, term[-1]) else ""
    return f"{before}{words}{after}"
