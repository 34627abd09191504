"""Train a small model that speaks digits, and measure it with a recognizer.

    python -m training.speech_synthesis --data-folder data --recognizer saved_models/digits

`keras-transformer train --task speak` does the same. The flow is in
`keras_transformer/training/speech_synthesis.py`.
"""

from keras_transformer.training.runs import main
from keras_transformer.training.speech_synthesis import train

if __name__ == "__main__":
    main(train)
