"""Quality and latency of live translation by each policy, beside the offline translation.

    python -m benchmarks.live FOLDER [FOLDER ...] --data DATA [--sentences 500 100]
        [--engine ctranslate2] [--save]

Each FOLDER is a translator from English to German, such as `tatoeba`; DATA the folder of
`tatoeba-en-de` and `iwslt16-ted-de-en`. Of the `dev` file of the first and of `dev2010` of the
second, so many sentences are taken, at equal distances. Each word is one chunk. Search is greedy.
AL, LAAL and AP are means over the sentences, in source words, by the definitions of SimulEval:
`keras_transformer.evaluation.latency`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import contest, machine
from benchmarks.scaling import pyplot

SETS = {
    "Tatoeba": "tatoeba-en-de/dev.{}.gz",
    "TED": "iwslt16-ted-de-en/IWSLT16.TED.dev2010.de-en.{}.gz",
}
SIZES = {"wait-k": (1, 3, 5, 7, 9), "align-att": tuple(range(1, 9)), "local-agreement": (2,)}
HEADER = ("translator", "text", "policy", "k", "BLEU", "chrF", "AL", "LAAL", "AP")


class Remembering:
    """A translator that remembers its drafts: the first ones are the same for all policies.

    Args:
        translator: The translator.
    """

    def __init__(self, translator: Any):
        self._translator, self._drafts = translator, {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._translator, name)

    def hypotheses(self, request: Any, search: Any) -> Any:
        """Return the hypotheses of the translator for a request of one text."""
        key = request.texts[0], request.prefixes[0]
        if key not in self._drafts:
            self._drafts[key] = self._translator.hypotheses(request, search)
        return self._drafts[key]


def spaced(pairs: Sequence[Any], count: int) -> list[Any]:
    """Return `count` of the pairs, at equal distances; all if there are no more."""
    count = min(count, len(pairs))
    return [pairs[i * len(pairs) // count] for i in range(count)]


def translate_words(translator: Any, source: str, policy: Any) -> tuple[str, list[int]]:
    """Translate a sentence word by word; return the translation and the delay of each word."""
    from keras_transformer.translate.live import translate_live

    text, delays = "", []
    for commit in translate_live(translator, source.split(), policy):
        text += commit.text + " " * commit.ends_sentence
        delays += [commit.num_read] * len(commit.words)
    return text.strip(), delays


def scores(
    pairs: Sequence[tuple[str, str]], translations: Sequence[str], delays: Sequence[list[int]]
) -> list[str]:
    """Return the cells of a row from BLEU on; a sentence without any word has no latency."""
    from keras_transformer.evaluation.latency import latency, mean_latency
    from keras_transformer.evaluation.scores import evaluate

    sources, references = zip(*pairs, strict=True)
    quality = evaluate(translations, references, language="de")
    lags = mean_latency(
        [
            latency(row, len(source.split()), len(reference.split()))
            for row, source, reference in zip(delays, sources, references, strict=True)
            if row
        ]
    )
    cells = quality["bleu"], quality["chrf"], lags["al"], lags["laal"], lags["ap"]
    return [f"{x:.{digits}f}" for x, digits in zip(cells, (1, 1, 2, 2, 2), strict=True)]


def rows_of(folder: str, engine: str, sets: dict[str, list[tuple[str, str]]]) -> list[list[str]]:
    """Return the rows of one translator."""
    from keras_transformer import Translator
    from keras_transformer.translate.live import policy_named

    languages = dict(source_language="en", target_language="de")
    translator, rows = Translator.load(folder, engine=engine, **languages), []
    for name, pairs in sets.items():
        label = [Path(folder).name, name]
        sources = [source for source, _ in pairs]
        whole = translator.translate(sources, beam_size=1, protect=False)
        delays = [[len(x.split())] * len(y.split()) for x, y in zip(sources, whole, strict=True)]
        rows.append([*label, "offline", "", *scores(pairs, whole, delays)])
        print(*rows[-1], flush=True)
        live = Remembering(translator)
        for policy, sizes in SIZES.items():
            for size in sizes:
                chosen = policy_named(policy, size)
                results = [translate_words(live, x, chosen) for x in sources]
                rows.append([*label, policy, str(size), *scores(pairs, *zip(*results))])  # noqa: B905
                print(*rows[-1], flush=True)
    return rows


def picture(rows: Sequence[list[str]], path: Path) -> None:
    """Plot BLEU over LAAL, a panel for each text."""
    plt = pyplot()
    names = list(dict.fromkeys(row[1] for row in rows))
    figure, panels = plt.subplots(1, len(names), figsize=(5 * len(names), 4), squeeze=False)
    for panel, name in zip(panels[0], names, strict=True):
        for key in dict.fromkeys((row[0], row[2]) for row in rows):
            curve = [x for x in rows if x[1] == name and (x[0], x[2]) == key]
            points = [(float(x[7]), float(x[4])) for x in curve]
            panel.plot(*zip(*points, strict=True), marker="o", label=", ".join(key))
        panel.set(title=name, xlabel="LAAL, source words", ylabel="BLEU")
        panel.grid(color="0.9")
    panels[0, 0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Translate, score and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument(
        "--sentences", type=int, nargs=2, default=[500, 100], help="of each text; 0: none"
    )
    parser.add_argument("--engine", default="ctranslate2", help="of the drafts")
    parser.add_argument("--save", action="store_true", help="write table and plot to results/")
    options = parser.parse_args()

    from keras_transformer.data.text_files import read_pairs

    if options.save:
        pyplot()  # raises here if matplotlib is missing, not after the work
    sets = {}
    for (name, file), count in zip(SETS.items(), options.sentences, strict=True):
        sides = (options.data / file.format(code) for code in ("en", "de"))
        if count:
            sets[name] = spaced(read_pairs(*sides), count)
    rows = [row for folder in options.folders for row in rows_of(folder, options.engine, sets)]
    parts = [contest.table(HEADER, rows), "Sentences: " + ", ".join(map(str, options.sentences))]
    if options.save:
        picture(rows, machine.results_folder() / "live.svg")
        parts.append("![BLEU over LAAL](live.svg)")
    contest.report("live", "Live translation: quality and latency", parts, options.save)


if __name__ == "__main__":
    main()
