"""Train a language model to translate.

    python -m training.prompted_translation --corpus grammar --output saved_models/grammar-lm

`keras-transformer train --task translate-lm` does the same. The flow is in
`keras_transformer/training/prompted_translation.py`.
"""

from keras_transformer.training.prompted_translation import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
