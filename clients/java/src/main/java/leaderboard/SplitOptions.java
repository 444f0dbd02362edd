package leaderboard;

/** Of which group the whole is, and what records have. */
public final class SplitOptions extends Given<SplitOptions> {
    public SplitOptions where(String name, Object... value) {
        return pair("where", name, value);
    }

    public SplitOptions wherenot(String name, Object... value) {
        return pair("wherenot", name, value);
    }

    /** The group of the member that is asked about: of rank and around. */
    public SplitOptions within(String... within) {
        return put("within", java.util.List.of(within));
    }

    /** With the members' tags. */
    public SplitOptions tags() {
        return put("tags", true);
    }

    /** Members with the same fields share the best rank: of rank and get. */
    public SplitOptions comp() {
        return put("comp", true);
    }
}
