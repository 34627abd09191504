"""Train a language model on texts.

    python -m training.language_model --text shakespeare.txt --output saved_models/shakespeare

`keras-transformer train --task generate` does the same. The flow is in
`keras_transformer/training/language_model.py`.
"""

from keras_transformer.training.language_model import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
