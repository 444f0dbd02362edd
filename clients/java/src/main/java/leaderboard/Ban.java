package leaderboard;

import java.time.Instant;

/** A ban of a member on boards whose names match the pattern; until null: for ever. */
public record Ban(String member, String pattern, Instant until) {
}
