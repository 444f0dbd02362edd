package leaderboard;

import java.util.List;

/** How many members have these values of the tags asked for; null: none. */
public record ValueCount(List<String> values, long count) {
}
