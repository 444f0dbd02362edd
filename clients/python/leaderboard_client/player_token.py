"""What a player's token says. It is not verified here: the server does that."""

import base64
import json
from typing import Any


def token_of(client: Any) -> str:
    """The password of a client of redis-py."""
    pool = getattr(client, "connection_pool", None)
    options = client.get_connection_kwargs() if pool is None else pool.connection_kwargs
    return options.get("password") or ""


def member_of(token: str) -> str:
    """The player whose token it is."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        member = claims["sub"]
    except (IndexError, KeyError, TypeError, ValueError):
        member = None
    if not isinstance(member, str):
        raise ValueError(
            "not a player's token: header.claims.signature is expected, with the player as `sub`, as the client's "
            "password (Redis(username=\"player\", password=token)) or as token="
        )
    return member
