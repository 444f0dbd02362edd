package leaderboard;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** The words of a command. What is null has none. */
final class Request {
    private static final double EXACT_MAX = 1L << 53;

    final boolean isRead;
    final List<String> words = new ArrayList<>();
    List<String> keys = List.of(); // in a cluster by the first one
    int keyAt;
    String id; // of the result, if it has one

    private record Counted(Object value) {
    }

    Request(boolean isRead, String... name) {
        this.isRead = isRead;
        words.addAll(List.of(name));
    }

    void word(String word) {
        words.add(word);
    }

    void board(String key) {
        keyAt = words.size();
        keys = List.of(key);
        word(key);
    }

    void boards(String own, Object given) {
        List<String> found = new ArrayList<>();
        for (List<String> each : given == null ? List.of(List.of(own)) : groups(given)) {
            found.addAll(each);
        }
        if (found.isEmpty()) {
            throw new IllegalArgumentException("boards: none");
        }
        word(Integer.toString(found.size()));
        keyAt = words.size();
        keys = found;
        words.addAll(found);
    }

    void flag(Object isGiven, String token) {
        if (isGiven != null) {
            word(token);
        }
    }

    /** The token, if there is one, and the parts. */
    void values(String token, Object... parts) {
        List<String> found = new ArrayList<>();
        for (Object part : parts) {
            if (part == null) {
                return;
            }
            Object value = part instanceof Counted counted ? counted.value() : part;
            List<List<String>> groups = groups(value);
            if (part instanceof Counted) {
                if (groups.isEmpty()) {
                    throw new IllegalArgumentException("none are given where one at least is needed");
                }
                found.add(Integer.toString(groups.size()));
            }
            groups.forEach(found::addAll);
        }
        if (token != null) {
            word(token);
        }
        words.addAll(found);
    }

    /** The token before each. */
    void each(String token, Object part) {
        if (part != null) {
            for (List<String> group : groups(part)) {
                word(token);
                words.addAll(group);
            }
        }
    }

    static Object counted(Object value) {
        return value == null ? null : new Counted(value);
    }

    /** One of the values of an option. */
    static Object at(Object values, int place) {
        return values == null ? null : ((List<?>) values).get(place);
    }

    static Object needed(String name, Object value) {
        if (value == null) {
            throw new IllegalArgumentException(name + " is needed");
        }
        return value;
    }

    /** Names and values, of which one may be given, or must. */
    static void alternatives(boolean isNeeded, Object... namesAndValues) {
        List<String> names = new ArrayList<>();
        List<String> given = new ArrayList<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            names.add((String) namesAndValues[i]);
            if (namesAndValues[i + 1] != null) {
                given.add((String) namesAndValues[i]);
            }
        }
        if (given.size() > 1) {
            throw new IllegalArgumentException(String.join(" and ", given) + " exclude each other");
        }
        if (isNeeded && given.isEmpty()) {
            throw new IllegalArgumentException("one of these is needed: " + String.join(", ", names));
        }
    }

    /** One value or several, each a group; of names and values a group for each pair. */
    private static List<List<String>> groups(Object part) {
        List<List<String>> found = new ArrayList<>();
        if (part instanceof Map<?, ?> map) {
            map.forEach((name, values) -> {
                for (Object value : values instanceof Collection<?> several ? several : List.of(values)) {
                    found.add(List.of(text(name), text(value)));
                }
            });
        } else if (part instanceof Collection<?> several) {
            several.forEach(value -> found.add(group(value)));
        } else {
            found.add(group(part));
        }
        return found;
    }

    private static List<String> group(Object value) {
        if (!(value instanceof Entry entry)) {
            return List.of(text(value));
        }
        List<String> found = new ArrayList<>();
        entry.values().forEach(each -> found.add(text(each)));
        found.add(entry.member());
        return found;
    }

    /** An argument, exactly. */
    private static String text(Object value) {
        if (value instanceof Double || value instanceof Float) {
            double number = ((Number) value).doubleValue();
            if (!(Math.abs(number) <= EXACT_MAX)) {
                throw new IllegalArgumentException(value + " is beyond what a double holds exactly: give a long, a BigDecimal or a String");
            }
            return new BigDecimal(value.toString()).toPlainString();
        }
        if (value instanceof BigDecimal decimal) {
            return decimal.toPlainString();
        }
        if (value instanceof Instant moment) {
            return Long.toString(moment.toEpochMilli());
        }
        if (value instanceof Enum<?> choice) {
            return choice.name();
        }
        if (value instanceof CharSequence || value instanceof Long || value instanceof Integer || value instanceof Short
                || value instanceof Byte || value instanceof BigInteger) {
            return value.toString();
        }
        throw new IllegalArgumentException((value == null ? "null" : value.getClass().getName())
                + " is no argument: a String, a number, an Instant or an enum is");
    }
}
