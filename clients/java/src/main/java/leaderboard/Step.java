package leaderboard;

import java.util.List;

/** A part of a walk. The next one begins at cursor, and "0" is the end. */
public record Step<T>(String cursor, List<T> items) {
}
