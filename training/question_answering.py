"""Train a BERT that finds answers in passages.

    python -m training.question_answering --questions squad.json.gz --split split.tsv \\
        --output saved_models/squad

`keras-transformer train --task answer` does the same. The flow is in
`keras_transformer/training/question_answering.py`.
"""

from keras_transformer.training.question_answering import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
