package leaderboard;

import java.util.List;

/** A page, the first is 1, and how many pages and records there are. */
public record Page(long number, long pages, long count, List<BoardRecord> records) {
}
