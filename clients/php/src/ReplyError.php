<?php

declare(strict_types=1);

namespace Leaderboard;

/** An error that the server replied: its message is the server's text. */
final class ReplyError extends \RuntimeException
{
}
