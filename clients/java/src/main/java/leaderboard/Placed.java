package leaderboard;

/**
 * A member's record after a write; null: it is not on the board.
 *
 * @param before its rank before; null: none
 * @param repeated with withrepeat: did the id of once come before?
 */
public record Placed(BoardRecord record, Long before, boolean repeated) {
}
