"""Train an ESM-2 that predicts the secondary structure of proteins.

    python -m training.protein --structures splits.zip --output saved_models/protein

`keras-transformer train --task protein` does the same. The flow is in
`keras_transformer/training/protein.py`.
"""

from keras_transformer.training.protein import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
