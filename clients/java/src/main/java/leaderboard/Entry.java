package leaderboard;

import java.util.List;

/** A result: the values of a member, one for each field of the board. */
public record Entry(String member, List<Object> values) {
    public Entry {
        values = List.copyOf(values);
    }

    /** {@code of("ann", 500)}. */
    public static Entry of(String member, Object... values) {
        return new Entry(member, List.of(values));
    }
}
