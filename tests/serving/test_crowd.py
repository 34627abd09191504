"""How connections are shared among clients."""

import pytest

from keras_transformer.serving.crowd import Crowd

pytestmark = pytest.mark.once("connections: no tensor is read")


class Connection:
    """A connection that notes whether it was closed."""

    def __init__(self, owner, idle=True):
        self.owner, self.idle, self.transport, self.closed = owner, idle, self, False

    def is_idle(self):
        return self.idle

    def abort(self):
        self.closed = True


def crowd_of(most, *connections):
    """A crowd whose connections came one a second."""
    crowd = Crowd(most)
    for second, one in enumerate(connections):
        crowd.note(one, second)
    return crowd


def test_a_client_has_half():
    busy, first, second = Connection("a", False), Connection("a"), Connection("a")
    crowd = crowd_of(6, busy, first, second)
    assert crowd.has_room("b", 10) and not first.closed
    assert crowd.has_room("a", 10) and first.closed and not (busy.closed or second.closed)
    assert crowd.has_room("a", 10) and not second.closed  # the room is still there
    crowd.note(Connection("a", False), 10)
    assert crowd.has_room("a", 10) and second.closed


def test_the_client_with_most_makes_room():
    members = [Connection(x) for x in "abbcd"]
    crowd = crowd_of(5, *members)
    crowd.note(members[1], 9)  # it moved after the other of its client
    assert (
        crowd.has_room("e", 20)
        and [x.closed for x in members] == [False] * 2 + [True] + [False] * 2
    )


def test_nobody_who_waits_for_the_server_or_has_just_moved_makes_room():
    members = [Connection("a", False), Connection("b")]
    crowd = crowd_of(2, *members)
    assert not crowd.has_room("c", 1.5) and not any(x.closed for x in members)
    assert not crowd.has_room("a", 20)
    crowd.leave(members[0])
    assert crowd.has_room("a", 1.5)
