package leaderboard;

/** A board changed faster than a place on it could be found. */
public final class BoardChanged extends RuntimeException {
    private static final long serialVersionUID = 1;

    BoardChanged(String board, String sought) {
        super('"' + board + "\" changes too fast: no " + sought);
    }
}
