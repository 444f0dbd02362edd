"""What may be sent again, and when; both halves share it."""

import uuid
from typing import Any, Dict, Iterator, List, Optional, Sequence

from redis.exceptions import ConnectionError, ReadOnlyError, RedisClusterException, ResponseError, TimeoutError

from .records import Page
from .shapes import PASSING, PAUSES_MS
from .words import Word, encode

#: Errors of a try that was not answered, beside answers that begin with one of PASSING.
UNANSWERED = (ConnectionError, TimeoutError, ReadOnlyError)

#: What pipelines have, of clients and of clusters, in all versions of redis-py from 4.3 on.
PIPELINE_MARKS = ("command_stack", "_command_stack", "pipeline_execute_command", "_execution_strategy")


def pauses(count: int) -> Iterator[float]:
    """How long to wait before each further try."""
    for index in range(count):
        yield min(PAUSES_MS[1], PAUSES_MS[0] * 2.0**index) / 1000


def may_be_again(error: Exception) -> bool:
    """Is it right to send the request again?"""
    return isinstance(error, UNANSWERED) or (
        isinstance(error, ResponseError) and str(error).split(" ", 1)[0] in PASSING
    )


def is_there_already(error: ResponseError) -> bool:
    """Is there a key of this name?"""
    return str(error).startswith("BUSYKEY")


def command_words(request: Sequence[Word]) -> List[Any]:
    """The words to send. Names of commands and of their subcommands stay texts, by which cluster clients look them up."""
    return [word if isinstance(word, str) and word.isascii() else encode(word) for word in request]


def merge(replies: List[Any]) -> Any:
    """What all nodes of a cluster replied, as if one had."""
    first = replies[0]
    if len(replies) > 1 and isinstance(first, Page):
        raise ValueError("in a cluster each node has a cursor of its own: use the iterator")
    if isinstance(first, bool):
        return any(replies)
    if isinstance(first, int):
        return sum(replies)
    if isinstance(first, list) and first and isinstance(first[0], int):
        return [sum(column) for column in zip(*replies)]
    return [each for reply in replies for each in reply] if isinstance(first, list) else first


class SenderBase:
    """What clients of boards and of databases share: the redis-py client, and how often to try again."""

    def __init__(self, client: Any, retries: int) -> None:
        if any(hasattr(client, name) for name in PIPELINE_MARKS):
            raise TypeError(
                "a pipeline has no answers before execute(): give the board its client, or send LB. commands "
                'yourself, as in pipeline.execute_command("LB.ADD", "arena", 500, "ann")'
            )
        self.client = client
        self.retries = retries

    def _once(self, once: Optional[Word], packed: object = None) -> Optional[Word]:
        """The id of a result: the given one, or a random one if the result may be sent again."""
        is_needed = once is None and packed is None and self.retries > 0
        return uuid.uuid4().hex if is_needed else once

    def _key(self, request: Sequence[Word]) -> Optional[Word]:
        """The key by which a cluster finds the node; None: the cluster client finds it."""
        return None

    def _route(self, request: Sequence[Word]) -> Dict[str, Any]:
        """Where to send a request in a cluster. Left to itself redis-py asks the server for the keys of each request
        that may have an option with a key, and in its version 4.3 asyncio does not find those of subcommands."""
        key = self._key(request)
        if key is None or not hasattr(self.client, "keyslot"):
            return {}
        return {"target_nodes": self.client.nodes_manager.get_node_from_slot(self.client.keyslot(encode(key)))}


def pause_after(error: Exception, route: Dict[str, Any], waits: Iterator[float], moves: Iterator[float]) -> float:
    """How long to wait before the next try. Raises the error if there is none. A board that has moved to another
    node is looked for again: redis-py has noted where it is, but gives up where it does not find the key itself."""
    has_moved = bool(route) and isinstance(error, RedisClusterException)
    pause = next(moves if has_moved else waits, None) if has_moved or may_be_again(error) else None
    if pause is None:
        raise error
    return pause


def key_of(request: Sequence[Word], name: Word) -> Word:
    """The first key of a request about a board: with a count of keys in front the first one named, else the board's."""
    return request[2] if isinstance(request[1], int) else name
