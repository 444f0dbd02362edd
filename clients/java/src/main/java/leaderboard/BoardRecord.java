package leaderboard;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * What a board has of a member.
 *
 * @param rank 0 is the best
 * @param time when the values were reached; null on boards without TIME
 * @param values all digits, in the order of the layout
 * @param percent with pct
 * @param key with withkey: the packed key
 * @param tags with tags
 * @param data with data: the member's hash, or the fields asked for that it has; null: there is no hash
 * @param since with since: the rank on the other board; null: it was not there
 */
public record BoardRecord(String member, long rank, Instant time, List<String> values, Double percent, BigInteger key,
        Map<String, String> tags, Map<String, String> data, Long since) {
    /** The first value, or an ArithmeticException: it is never rounded. */
    public long score() {
        return value(0);
    }

    /** The first value with its decimals. */
    public BigDecimal decimal() {
        return decimal(0);
    }

    /** A value, or an ArithmeticException: it is never rounded. */
    public long value(int field) {
        return decimal(field).longValueExact();
    }

    /** A value with its decimals. */
    public BigDecimal decimal(int field) {
        return new BigDecimal(values.get(field));
    }

    BoardRecord at(long place) {
        return new BoardRecord(member, place, time, values, percent, key, tags, data, since);
    }
}
