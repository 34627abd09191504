"""Train a small BERT, or a pretrained encoder, to predict a number for each word.

    python -m training.token_regression --train times.tsv --test times.test.tsv \\
        --output saved_models/reading-times

`keras-transformer train --task regress` does the same. The flow is in
`keras_transformer/training/token_regression.py`.
"""

from keras_transformer.training.runs import main
from keras_transformer.training.token_regression import train

if __name__ == "__main__":
    main(train)
