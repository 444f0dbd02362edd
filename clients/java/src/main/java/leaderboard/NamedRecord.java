package leaderboard;

/** A member's record on one of its boards. */
public record NamedRecord(String board, BoardRecord record) {
}
