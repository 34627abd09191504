"""Gender bias of translations, scored as WinoMT does (Stanovsky et al. 2019, section 3)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from keras_transformer.config import require


def gender_of(text: str, forms: Mapping[str, str | Collection[str]]) -> str | None:
    """Return the gender of a noun in a translation, by the form that the translation contains.

    Args:
        text: Translation.
        forms: Form of the noun for each gender, or several forms: {"male": "Arzt", "female":
            "Ärztin"}. Whole words count, in any case.

    Returns:
        A key of `forms`; None if the text has forms of no gender or of several.
    """
    words = {*re.findall(r"[\w-]+", text.casefold())}
    genders = []
    for gender, spellings in forms.items():
        spellings = [spellings] if isinstance(spellings, str) else spellings
        if words & {x.casefold() for x in spellings}:
            genders.append(gender)
    return genders[0] if len(genders) == 1 else None


def gender_scores(
    found: Sequence[str | None],
    expected: Sequence[str],
    stereotypes: Sequence[str],
    genders: tuple[str, str] = ("male", "female"),
) -> dict[str, float]:
    """Return the accuracy of genders, and how it depends on the gender and on the stereotype.

    Args:
        found: Gender of each translated noun, from `gender_of`; None is wrong.
        expected: Right gender of each.
        stereotypes: Gender that a stereotype would give to each.
        genders: The two genders; a `delta_g` above 0 favours the first.

    Returns:
        In percent, the `accuracy`, the F1 of each gender as `f1_` with its name, and `unknown`, the
        share of None. In points, `delta_g`, the F1 of the first gender minus that of the second,
        and `delta_s`, the mean F1 of both genders where the right gender is the stereotype, minus
        that where it is not. For an unbiased translator both are 0.

    Raises:
        ValueError: If the lengths differ, there is no sentence with and against the stereotype, or
            a gender is unknown.
    """
    counts = len(found), len(expected), len(stereotypes)
    require(len({*counts}) == 1, "found, expected, stereotypes", counts, "of the same length")
    unknown = {*expected, *stereotypes} - {*genders} | {*found} - {*genders, None}
    require(not unknown, "genders of the sentences", unknown, f"one of {genders}")
    with_it = [x == y for x, y in zip(expected, stereotypes, strict=True)]
    accepted = "some with and some against the stereotype"
    require(any(with_it) and not all(with_it), "sentences", counts[0], accepted)
    rows = [*zip(found, expected, strict=True)]
    f1 = [_f1(rows, gender) for gender in genders]
    halves = [[row for row, x in zip(rows, with_it, strict=True) if x == side] for side in (1, 0)]
    pro, anti = (sum(_f1(half, gender) for gender in genders) / 2 for half in halves)
    return {
        "accuracy": 100.0 * sum(x == y for x, y in rows) / len(rows),
        **{f"f1_{gender}": x for gender, x in zip(genders, f1, strict=True)},
        "unknown": 100.0 * sum(x is None for x, _ in rows) / len(rows),
        "delta_g": f1[0] - f1[1],
        "delta_s": pro - anti,
    }


def _f1(rows, gender):
    """Return the F1 of a gender in percent; 0 if it is neither found nor expected."""
    right = sum(x == y == gender for x, y in rows)
    total = sum((x == gender) + (y == gender) for x, y in rows)
    return 200.0 * right / max(total, 1)
