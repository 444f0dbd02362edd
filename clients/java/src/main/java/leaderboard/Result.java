package leaderboard;

/**
 * A member's record after a write on one of several boards; null: it is not there.
 *
 * @param before its rank before; null: none
 * @param counts was the result written there?
 * @param repeated with withrepeat: did the id of once come before?
 */
public record Result(String board, BoardRecord record, Long before, boolean counts, boolean repeated) {
}
