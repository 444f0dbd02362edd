package leaderboard;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Options by name. */
public abstract class Given<T extends Given<T>> {
    private final Map<String, Object> given = new LinkedHashMap<>();

    Given() {
    }

    Object get(String name) {
        return given.get(name);
    }

    @SuppressWarnings("unchecked")
    private T self() {
        return (T) this;
    }

    T put(String name, Object value) {
        given.put(name, value);
        return self();
    }

    /** Values of a name, behind those that it has. */
    @SuppressWarnings("unchecked")
    T pair(String option, String name, Object... values) {
        Map<String, List<Object>> pairs = (Map<String, List<Object>>) given.computeIfAbsent(option, each -> new LinkedHashMap<>());
        pairs.computeIfAbsent(name, each -> new ArrayList<>()).addAll(Arrays.asList(values));
        return self();
    }

    /** The syntax of a command: one text with blanks, or its words. */
    static List<String> words(String... words) {
        return words.length == 1 ? List.of(words[0].trim().split(" +")) : List.of(words);
    }

    /** The same options as another's, as far as it has them. */
    T as(Given<?> other, String... names) {
        for (String name : names) {
            if (other.get(name) != null) {
                given.put(name, other.get(name));
            }
        }
        return self();
    }
}
