"""From values to the words of a request."""

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, Iterable, List, Mapping, Optional, Tuple, TypeVar, Union

Name = Union[str, bytes]
Number = Union[int, Decimal, float, str]
Word = Union[str, bytes, int, Decimal, float]
#: Unix milliseconds, or a moment.
Time = Union[int, datetime]

T = TypeVar("T")
V = TypeVar("V")
#: One value, or several.
Several = Union[T, Iterable[T]]
#: What each member gets; pairs, if the order counts or a member comes twice.
Results = Union[Mapping[Any, V], Iterable[Tuple[Any, V]]]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def encode(word: Word) -> bytes:
    """A word as it is sent. A number keeps all its digits. What is no word, as None, is an error, not its name."""
    if isinstance(word, str):
        return word.encode("utf-8", "surrogateescape")
    if isinstance(word, (bytes, bytearray, memoryview)):
        return bytes(word)
    if isinstance(word, Decimal):
        return format(word, "f").encode()
    if isinstance(word, float):
        return float.__repr__(word).encode()
    if isinstance(word, bool) or not hasattr(word, "__index__"):
        raise TypeError(f"{word!r} is neither text, bytes nor a number")
    return str(int(word)).encode()


def decode(word: Any) -> str:
    """The text of a reply; bytes that are not UTF-8 come back as they were when they are sent again."""
    return word.decode("utf-8", "surrogateescape") if isinstance(word, bytes) else str(word)


def milliseconds(time: Time) -> int:
    """Unix milliseconds. A moment without a time zone is an error."""
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        raise ValueError("the time needs a time zone")
    since = time - EPOCH
    return since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000


def several(values: Any, token: Optional[str] = None, counted: bool = False) -> List[Word]:
    """One value or many, the token before each, or their number before all."""
    single = isinstance(values, (str, bytes, bytearray, int, float, Decimal)) or hasattr(values, "__index__")
    given: List[Word] = [values] if single else list(values)
    if not given:
        raise ValueError("at least one value is needed")
    words: List[Word] = [len(given)] if counted else []
    for value in given:
        words += [value] if token is None else [token, value]
    return words


def pairs(values: Mapping[str, Any], token: Optional[str] = None, counted: bool = False) -> List[Word]:
    """Names and values; with a token one name may have several values."""
    if not values:
        raise ValueError("at least one name with a value is needed")
    words: List[Word] = [len(values)] if counted else []
    for name, value in values.items():
        if token is None:
            words += [name, value]
        else:
            for each in several(value):
                words += [token, name, each]
    return words


def groups(values: Iterable[Any], token: str) -> List[Word]:
    """Teams: before the members of each the token, and their number. A team of one may be its member alone."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{values!r} is one member, where a list of teams is needed")
    return [word for each in values for word in (token, *several(each, counted=True))]


def results(values: Any) -> List[Word]:
    """For each member its values, and then the member."""
    words: List[Word] = []
    for member, value in values.items() if isinstance(values, Mapping) else values:
        words += [*several(value), member]
    if not words:
        raise ValueError("at least one result is needed")
    return words


def split(values: Any) -> List[Word]:
    """Words, from a text with blanks between them or a list."""
    return list(values.split()) if isinstance(values, str) else several(values)


def alternatives(*, required: bool, **given: Any) -> None:
    """At most one of these is given; one, if required."""
    names = [name for name, value in given.items() if value is not None and value is not False]
    if len(names) > 1 or (required and not names):
        raise TypeError(f"{'exactly' if required else 'at most'} one of {', '.join(given)} is to be given")


def page_ranks(number: int, size: int) -> Tuple[int, int]:
    """The first and last rank of a page, the first being 1."""
    if number < 1 or size < 1:
        raise ValueError("pages begin with 1, and have at least one record")
    return (number - 1) * size, number * size - 1
