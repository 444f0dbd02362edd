package leaderboard;

import java.math.BigInteger;

/** A rank, and the packed key of the member there: larger is better. */
public record Cut(long rank, BigInteger key) {
}
