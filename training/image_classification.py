"""Train a small ViT on MNIST or CIFAR-10.

    python -m training.image_classification --dataset mnist --data-folder data

`keras-transformer train --task see` does the same. The flow is in
`keras_transformer/training/image_classification.py`.
"""

from keras_transformer.training.image_classification import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
