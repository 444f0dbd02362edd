package leaderboard;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Reads replies. RESP2 and RESP3, and both clients, differ in what a map is, and in whether a number is text. */
final class Replies {
    private Replies() {
    }

    private static IllegalStateException refused(Object reply, String what) {
        return new IllegalStateException("the server replied " + (reply == null ? "null" : reply.getClass().getSimpleName())
                + " instead of " + what);
    }

    static String text(Object reply) {
        if (reply instanceof byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
        if (reply instanceof Double number) {
            return BigDecimal.valueOf(number).stripTrailingZeros().toPlainString();
        }
        if (reply instanceof String || reply instanceof Long || reply instanceof Integer || reply instanceof BigInteger) {
            return reply.toString();
        }
        throw refused(reply, "text");
    }

    static long integer(Object reply) {
        try {
            return reply instanceof Long number ? number : Long.parseLong(text(reply));
        } catch (NumberFormatException error) {
            throw refused(reply, "an integer");
        }
    }

    static BigDecimal decimal(Object reply) {
        try {
            return new BigDecimal(text(reply));
        } catch (NumberFormatException error) {
            throw refused(reply, "a number");
        }
    }

    static BigInteger key(Object reply) {
        return decimal(reply).toBigIntegerExact();
    }

    static boolean flag(Object reply) {
        return reply instanceof Boolean bool ? bool : integer(reply) == 1;
    }

    static Instant moment(Object reply) {
        return Instant.ofEpochMilli(integer(reply));
    }

    static <T> T orNull(Object reply, Function<Object, T> read) {
        return reply == null ? null : read.apply(reply);
    }

    /** An array of so many at least. */
    static List<?> row(Object reply, int count) {
        if (!(reply instanceof List<?> found) || found.size() < count) {
            throw refused(reply, "an array of " + count);
        }
        return found;
    }

    static <T> List<T> list(Object reply, Function<Object, T> read) {
        List<?> all = row(reply, 0);
        List<T> found = new ArrayList<>(all.size());
        for (Object each : all) {
            found.add(orNull(each, read));
        }
        return Collections.unmodifiableList(found);
    }

    /** A map in RESP3, and names and values in RESP2. */
    static Map<String, Object> map(Object reply) {
        Map<String, Object> found = new LinkedHashMap<>();
        if (reply instanceof Map<?, ?> map) {
            map.forEach((name, value) -> found.put(text(name), value));
            return found;
        }
        List<?> all = row(reply, 0);
        if (all.size() % 2 != 0) {
            throw refused(reply, "names and values");
        }
        for (int i = 0; i < all.size(); i += 2) {
            found.put(text(all.get(i)), all.get(i + 1));
        }
        return found;
    }

    static Map<String, String> texts(Object reply) {
        Map<String, String> found = new LinkedHashMap<>();
        map(reply).forEach((name, value) -> found.put(name, text(value)));
        return Collections.unmodifiableMap(found);
    }

    static List<Long> integers(Object reply) {
        return list(reply, Replies::integer);
    }

    static Shapes.BoardInfo board(Object reply) {
        return Shapes.BoardInfo.of(reply);
    }

    static Shapes.LeagueInfo league(Object reply) {
        return Shapes.LeagueInfo.of(reply);
    }

    static List<Map<String, String>> tagsEach(Object reply) {
        return list(reply, Replies::texts);
    }

    static List<Cut> cuts(Object reply) {
        return list(reply, each -> new Cut(integer(row(each, 2).get(0)), key(row(each, 2).get(1))));
    }

    static List<ValueCount> counts(Object reply) {
        return list(reply, each -> {
            List<?> all = row(each, 1);
            int last = all.size() - 1;
            return new ValueCount(list(all.subList(0, last), Replies::text), integer(all.get(last)));
        });
    }

    private static <T> Step<T> step(Object reply, Function<Object, T> read) {
        return new Step<>(text(row(reply, 2).get(0)), list(row(reply, 2).get(1), read));
    }

    static Step<Shapes.BoardSummary> boards(Object reply) {
        return step(reply, Shapes.BoardSummary::of);
    }

    static Step<Ban> bans(Object reply) {
        return step(reply, each -> {
            List<?> all = row(each, 4);
            return new Ban(text(all.get(0)), text(all.get(1)), orNull(all.get(2), Replies::moment),
                    integer(all.get(3)) == 1);
        });
    }

    // What all nodes of a cluster have replied, as one reply.

    static long sumInteger(List<Long> all) {
        return all.stream().mapToLong(Long::longValue).sum();
    }

    static boolean sumFlag(List<Boolean> all) {
        return all.contains(true);
    }

    static List<Long> sumIntegers(List<List<Long>> all) {
        long[] sum = new long[all.get(0).size()];
        for (List<Long> each : all) {
            for (int i = 0; i < sum.length; i++) {
                sum[i] += each.get(i);
            }
        }
        return Arrays.stream(sum).boxed().toList();
    }

    static List<NamedRecord> sumBoardRecords(List<List<NamedRecord>> all) {
        return all.stream().flatMap(List::stream).toList();
    }
}
