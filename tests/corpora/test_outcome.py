"""What a job has done, how fast, and what is left."""

from keras_transformer.corpora.outcome import Outcome, ShardError
from keras_transformer.corpora.shards import Shard


def test_answers_are_counted():
    outcome = Outcome(shards=3, lines=30, left=30)
    assert outcome.rate == 0 and outcome.seconds_left is None
    shards = [Shard(i, 10 * i, 10, (("a", ("text",), 0),)) for i in range(3)]
    outcome.add(shards[0], {"warnings": 2, "warning": "first"})
    outcome.add(shards[2], {"warnings": 1, "warning": "second"})
    outcome.seconds = 5.0
    assert outcome.rate == 4 and outcome.seconds_left == 2.5
    assert (outcome.done, outcome.warnings, outcome.warning) == (2, 3, "first")
    outcome.add(shards[1], {"error": "no memory"})
    assert outcome.seconds_left == 0 and outcome.done == 2
    assert str(ShardError(outcome)) == (
        "1 of 3 shards failed, the others are done: shard-00000001 (lines 11 to 20 of a): no memory"
    )
