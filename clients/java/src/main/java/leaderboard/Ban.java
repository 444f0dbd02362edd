package leaderboard;

import java.time.Instant;

/** A ban of a member on boards whose names match the pattern; until null: for ever. With a shadow
 * the player goes on, and sees the own entry. */
public record Ban(String member, String pattern, Instant until, boolean shadow) {
}
