"""Train the translator `saved_models/tatoeba` on everyday sentences of Tatoeba.

    python -m training.tatoeba --data-folder DATA

DATA has the folders `tatoeba-en-de`, `tatoeba-en-es` and `tatoeba-en-fr` of the recipe `tatoeba`.
The first run trains on their unchanged text. The second starts from the first, and the third from
the second; both train on text with noise, with a learning rate that falls to zero. The same command
resumes. It takes hours on two CPU cores. `--set` changes options of all runs, such as
tokens_per_batch on a GPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keras_transformer import Translator
from keras_transformer.data.text_files import read_pairs
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.text.marian_tokenizer import tag_of
from keras_transformer.training import runs
from keras_transformer.training.translation import train

LANGUAGES = ("de", "es", "fr")  # besides English
# The encoder is deep, since it runs once per sentence; the decoder, which runs once per token, is
# shallow (Kasai et al. 2021, "Deep Encoder, Shallow Decoder").
SIZES = ["model.d_model=192", "model.d_ff=768", "model.num_heads=6", "vocab_size=8000"]
SIZES += ["model.num_encoder_layers=6", "model.num_decoder_layers=2"]
SIZES += ["num_buckets=14", "average_last=1", "protect=true"]
RUNS = {
    "first": "epochs=5 peak_learning_rate=0.003 warmup_steps=1500 decay=inverse_sqrt",
    "second": "epochs=2 peak_learning_rate=0.0015 warmup_steps=100 decay=linear noise=0.15 "
    "model.dropout=0.05",
    "third": "epochs=4 peak_learning_rate=0.002 warmup_steps=300 decay=linear noise=0.1 "
    "model.dropout=0.05",
}
PAIRS = 30_000  # approximate number of pairs per language that the shortlist is trained on
PER_PIECE, FREQUENT = 50, 300  # options of `Shortlist.train`


def shortlist_of(translator: Translator, data_folder: Path) -> Shortlist:
    """Return the shortlist of a translator of six directions.

    Args:
        translator: The translator, whose sources begin with the tag of the target language.
        data_folder: Folder of the training text.
    """
    sources, targets = list[str](), list[str]()
    for code in LANGUAGES:
        files = (data_folder / f"tatoeba-en-{code}" / f"train.{x}.gz" for x in ("en", code))
        pairs = read_pairs(*files)
        for source, target in pairs[:: max(1, len(pairs) // PAIRS)]:
            sources += [f"{tag_of(code)} {source}", f"{tag_of('en')} {target}"]
            targets += [target, source]
    tokenizer = translator.tokenizer.between(None, None)
    options = dict(per_piece=PER_PIECE, frequent=FREQUENT)
    return Shortlist.train(tokenizer, sources, targets, **options)


def main(
    data_folder: Annotated[Path, typer.Option(help="Folder of the three text folders.")],
    output: Annotated[Path, typer.Option(help="Folder to write.")] = Path("saved_models/tatoeba"),
    work: Annotated[
        Path | None,
        typer.Option(help="Folder of the runs.  [default: OUTPUT-runs]"),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change an option of all runs, such as epochs=1."),
    ] = None,
) -> None:
    """Train the translator in three runs, learn its shortlist, and save it with int8 weights."""
    work = work or output.with_name(f"{output.name}-runs")
    start: Path | None = None
    for name, options in RUNS.items():
        folder = work / name
        settings = [*SIZES, *options.split(), *(changes or ())]
        train("tatoeba", folder, data_folder, start_from=start, changes=settings)
        start = folder
    translator = Translator.load(folder, "int8")
    translator.shortlist = shortlist_of(translator, data_folder)
    translator.save(output)
    print(output)


if __name__ == "__main__":
    runs.main(main)
