"""Pretrain a small BERT on texts by masking tokens.

    python -m training.masked_language_model --text train.txt --validation dev.txt \\
        --output saved_models/small-bert

`keras-transformer train --task fill` does the same. The flow is in
`keras_transformer/training/masked_language_model.py`.
"""

from keras_transformer.training.masked_language_model import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
