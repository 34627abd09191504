"""Pretrain a small T5 on text by span corruption.

    python -m training.span_corruption --text english.txt --output saved_models/t5

`keras-transformer train --task span-corruption` does the same. The flow is in
`keras_transformer/training/span_corruption.py`.
"""

from keras_transformer.training.runs import main
from keras_transformer.training.span_corruption import train

if __name__ == "__main__":
    main(train)
