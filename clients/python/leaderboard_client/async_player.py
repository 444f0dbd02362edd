"""A player who writes the own results, with a token of the player's."""
# docs/write makes player.py of this file.  # async

from typing import Any, List, Optional

from .async_board import AsyncLeaderboard
from .player_token import member_of, token_of
from .records import OwnRecords, Record, Sent
from .words import Name, Word


class AsyncPlayer(AsyncLeaderboard):
    """A board as one of its players has it: reads it, and writes the player's own results.

        player = AsyncPlayer(client, "high")  # client: Redis(username="player", password=token)
        await player.begin_run()  # where the board has TICKETS
        await player.end_run(800)

    The member is the token's `sub`. Without token= the token is the client's password. What refuses a result, the
    server says (ResponseError): LIMIT, TOOSOON, TICKET; a ticket that was not used is kept.
    """

    def __init__(self, client: Any, name: Name, *, token: Optional[str] = None, retries: int = 0) -> None:
        super().__init__(client, name, retries=retries)
        self.member: str = member_of(token_of(client) if token is None else token)
        self.run_ticket: Optional[str] = None

    async def begin_run(self, *, for_: Optional[int] = None) -> str:
        """A ticket for a run that begins now, for so many seconds; end_run sends it. It is returned, too."""
        self.run_ticket = await self.ticket(self.member, for_=for_)
        return self.run_ticket

    async def end_run(self, *values: Word, **options: Any) -> Sent:
        """The result of a run, a value for each field of the board, with the options of add."""
        if self.run_ticket is not None:
            options.setdefault("ticket", self.run_ticket)
        changed, held = await self.add_withheld({self.member: values}, **options)
        self.run_ticket = None
        return Sent(changed > 0, held > 0)

    async def own(self, **options: Any) -> OwnRecords:
        """The player's record, None without one, and what is held of the player, with the options of get."""
        return await self.get_withheld(self.member, **options)

    async def near(self, count: int, **options: Any) -> List[Record]:
        """The records around the player, with the options of around."""
        return await self.around(self.member, count, **options)
