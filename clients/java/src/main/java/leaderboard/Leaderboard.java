package leaderboard;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.function.BiFunction;

/**
 * One board. Commands without a key are about its database, in a cluster about all nodes. Many threads may use it at once, as
 * far as they may use the client.
 */
public final class Leaderboard extends Commands implements Iterable<BoardRecord> {
    private static final int BATCH = 500;

    private final Client client;
    private final String key;
    private final int retries;

    public Leaderboard(Client client, String key) {
        this(client, key, 0);
    }

    private Leaderboard(Client client, String key, int retries) {
        this.client = Objects.requireNonNull(client, "client");
        this.key = Objects.requireNonNull(key, "key");
        this.retries = retries;
    }

    /**
     * The same board, whose results get an id (ONCE), and are sent again with it up to so many times while there is no reply,
     * with pauses of 10 ms to 1 s: a result counts once. What reads is sent again, too.
     */
    public Leaderboard withRetries(int retries) {
        if (retries < 0) {
            throw new IllegalArgumentException("retries: " + retries + ": a number from 0 on is allowed");
        }
        return new Leaderboard(client, key, retries);
    }

    /** Another board, by the same client and retries. */
    public Leaderboard named(String key) {
        return new Leaderboard(client, key, retries);
    }

    @Override
    Client client() {
        return client;
    }

    @Override
    int retries() {
        return retries;
    }

    @Override
    public String key() {
        return key;
    }

    @Override
    Leaderboard by(Client client) {
        return new Leaderboard(client, key, retries);
    }

    static void needFrom(long least, String name, long value) {
        if (value < least) {
            throw new IllegalArgumentException(name + ": " + value + ": a number from " + least + " on is allowed");
        }
    }

    /** The best. */
    public List<BoardRecord> top(long count) {
        return top(count, new Options.Range());
    }

    /** The best, with the options of range. */
    public List<BoardRecord> top(long count, Options.Range options) {
        needFrom(1, "count", count);
        return range(0, count - 1, options);
    }

    /** A member's record; null: it is not there. */
    public BoardRecord record(String member) {
        return record(member, new Options.Get());
    }

    /** A member's record, with the options of get; null: it is not there. */
    public BoardRecord record(String member, Options.Get options) {
        return get(List.of(member), options).get(0);
    }

    /** How many were there. By ZREM: in the module a `board` line must match the board's name. */
    public long remove(String... members) {
        Request r = new Request(false, "ZREM");
        r.board(key);
        r.values(null, List.of(members));
        return on(r, Replies::integer);
    }

    /** Was there a board? */
    public boolean delete() {
        Request r = new Request(false, "UNLINK");
        r.board(key);
        return on(r, Replies::flag);
    }

    /** The first page is 1. */
    public Page page(long number, long size) {
        return page(number, size, new Options.Range());
    }

    /** Two commands: a result that comes in between is in one of them. */
    public Page page(long number, long size, Options.Range options) {
        refuseScores(options);
        return pageOf(number, size, (start, stop) -> range(start, stop, options),
                () -> count(new Options.Count().as(options, "where", "wherenot")));
    }

    interface Counting {
        long count();
    }

    static Page pageOf(long number, long size, BiFunction<Long, Long, List<BoardRecord>> read, Counting counting) {
        needFrom(1, "page", number);
        needFrom(1, "size", size);
        List<BoardRecord> records = read.apply((number - 1) * size, number * size - 1);
        long count = counting.count();
        return new Page(number, (count + size - 1) / size, count, records);
    }

    private static void refuseScores(Options.Range options) {
        if (options.get("byscore") != null || options.get("limit") != null) {
            throw new IllegalArgumentException("byscore and limit are no options of pages");
        }
    }

    /** All records, the best first, read 500 ranks at a time: one that moves meanwhile may be missed or come twice. */
    @Override
    public Iterator<BoardRecord> iterator() {
        return records(BATCH, new Options.Range()).iterator();
    }

    /** All records, read batch ranks at a time. */
    public Iterable<BoardRecord> records(int batch, Options.Range options) {
        refuseScores(options);
        return recordsOf(batch, (start, stop) -> range(start, stop, options));
    }

    static Iterable<BoardRecord> recordsOf(int batch, BiFunction<Long, Long, List<BoardRecord>> range) {
        needFrom(1, "batch", batch);
        return () -> new Parts<>() {
            private long start;

            @Override
            List<BoardRecord> read() {
                List<BoardRecord> found = range.apply(start, start + batch - 1);
                start += batch;
                isLast = found.size() < batch;
                return found;
            }
        };
    }

    /** All boards of the database, in a cluster those of one node after another. A cursor of the options is not used. */
    public Iterable<Shapes.BoardSummary> boards(Options.List options) {
        return steps((board, cursor) -> board.list(new Options.List().as(options, "match", "count", "unsettled").cursor(cursor)));
    }

    /** All bans of the database. */
    public Iterable<Ban> banned(Options.Bans options) {
        return steps((board, cursor) -> board.bans(new Options.Bans().as(options, "match", "count").cursor(cursor)));
    }

    private <T> Iterable<T> steps(BiFunction<Leaderboard, String, Step<T>> next) {
        return () -> new Parts<>() {
            private final List<Client> nodes = new ArrayList<>(client.nodes());
            private String cursor = "0";

            @Override
            List<T> read() {
                Step<T> step = next.apply(by(nodes.get(0)), cursor);
                cursor = step.cursor();
                if (cursor.equals("0")) {
                    nodes.remove(0);
                }
                isLast = nodes.isEmpty();
                return step.items();
            }
        };
    }

    /** What comes in parts, each of which is asked for when the one before has been read. */
    private abstract static class Parts<T> implements Iterator<T> {
        boolean isLast;
        private Iterator<T> part;

        abstract List<T> read();

        @Override
        public boolean hasNext() {
            while (part == null || (!part.hasNext() && !isLast)) {
                part = read().iterator();
            }
            return part.hasNext();
        }

        @Override
        public T next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            return part.next();
        }
    }
}
