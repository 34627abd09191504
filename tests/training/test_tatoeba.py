"""The script that makes the translator of six directions, on a few made-up words."""

import gzip
import random

import pytest

from keras_transformer.translate.translator import Translator
from training import tatoeba

WORDS = {
    "en": ["sun", "sea", "tree", "red", "house"],
    "de": ["Sonne", "Meer", "Baum", "rot", "Haus"],
    "es": ["sol", "mar", "árbol", "rojo", "casa"],
    "fr": ["soleil", "mer", "arbre", "rouge", "maison"],
}
TINY = (
    "vocab_size=512 warmup_steps=1 tokens_per_batch=256 num_buckets=1 model.d_model=8 "
    "model.d_ff=8 model.num_heads=2 model.num_encoder_layers=1 model.num_decoder_layers=1 "
    "epochs=1 beam_size=1 max_words=20"
).split()


@pytest.mark.once("training and saving are tested under each")
def test_its_runs_a_shortlist_and_eight_bits(tmp_path, capsys):
    choose = random.Random(0).choices
    for code in tatoeba.LANGUAGES:
        folder = tmp_path / "data" / f"tatoeba-en-{code}"
        folder.mkdir(parents=True)
        for part, count in (("train", 60), ("dev", 4)):
            rows = [choose(range(5), k=1 + i % 4) for i in range(count)]
            for x in ("en", code):
                with gzip.open(folder / f"{part}.{x}.gz", "wt", encoding="utf-8") as file:
                    file.writelines(" ".join(WORDS[x][i] for i in row) + "\n" for row in rows)
    for _ in range(2):  # the second call finds all done
        tatoeba.main(tmp_path / "data", tmp_path / "out", changes=TINY)
    assert "epoch 1" in capsys.readouterr().err
    made = Translator.load(tmp_path / "out", None, "de", "fr")
    assert made.middle == "en" and len(made.directions) == 6 and made.search == {"protect": True}
    assert made.model.saved_quantization == "int8" and made.shortlist is not None
    assert (tmp_path / "out-runs" / "third" / "metrics.json").is_file()
    options = dict(beam_size=1, max_extra_length=4)
    assert len(made.translate(["Sonne rot"], **options, shortlist=True)) == 1
