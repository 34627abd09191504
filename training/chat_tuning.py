"""Train a language model on dialogues, so that it replies to messages.

    python -m training.chat_tuning --start-from saved_models/gpt2 --data dialogues.jsonl \\
        --output saved_models/assistant

`keras-transformer train --task chat` does the same. The flow is in
`keras_transformer/training/chat_tuning.py`.
"""

from keras_transformer.training.chat_tuning import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
