package leaderboard;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.zip.CRC32;

/**
 * One board over the keys name:{0} to name:{shards - 1}, wherever they are. docs/scale/one-board.md says what it promises.
 * Ranks are those in the whole, and records have their key.
 *
 * <p>A member's board is that of shard crc32(name) % shards, for ever. The whole is in the order of packed key (larger is
 * better), then shard, then rank in the shard. Places are found by cuts:
 *
 * <pre>
 * shard 0   90 - - - 70 - - - 40 - - - 10       LB.CUTS: ranks and packed keys, of the whole shard first,
 * shard 1   95 - - - 80 - - - 30 - - - 20       then of what is left of it
 *                        [ rank 6? ]            at most 3 + 1 members of each are before 40, at least 2 + 1
 * </pre>
 *
 * <p>What is read in the end is checked: records of each shard without a gap, and beyond them nothing that belongs in between.
 * A round is one request for each shard, all sent at once.
 */
public final class SplitBoard implements Iterable<BoardRecord> {
    /**
     * For tests, which make them small. cuts: of the first round, all shards together; of a later one four times as many at
     * most. few: places from the top that are read without cuts. many: records that are read beside those asked for rather than
     * another round taken.
     */
    record Limits(long cuts, long few, long many) {
    }

    static final Limits USUAL = new Limits(2048, 128, 512);
    static Limits limits = USUAL;

    private static final int SHARDS_MAX = 16384;
    private static final long CUTS_MAX = 10000; // that a shard takes
    private static final int WALKED = 5000; // records at a time, by whoever wants all
    private static final int ROUNDS_MAX = 40;
    private static final long PAD_MIN = 2; // records read beyond what is sought, on either side
    private static final long PAD_MAX = 1000;
    private static final long UNKNOWN = -1; // the end of a shard

    private final Client client;
    private final String name;
    private final String end; // of the shards' keys
    private final int retries;
    private final List<Leaderboard> boards;
    private final AtomicLong rounds = new AtomicLong();

    /** For ever of so many shards. */
    public SplitBoard(Client client, String name, int shards) {
        this(client, name, shards, "", 0);
    }

    private SplitBoard(Client client, String name, int shards, String end, int retries) {
        if (shards < 1 || shards > SHARDS_MAX) {
            throw new IllegalArgumentException("shards: " + shards + ": 1 to " + SHARDS_MAX + " are allowed");
        }
        this.client = client;
        this.name = Objects.requireNonNull(name, "name");
        this.end = end;
        this.retries = retries;
        boards = IntStream.range(0, shards)
                .mapToObj(shard -> new Leaderboard(client, name + ":{" + shard + "}" + end).withRetries(retries)).toList();
    }

    /** The same board, whose results and reads are sent again as by a Leaderboard. */
    public SplitBoard withRetries(int retries) {
        return new SplitBoard(client, name, boards.size(), end, retries);
    }

    /** The board of an earlier period (PERIOD): {@code archive("2026-11-16")}. */
    public SplitBoard archive(String period) {
        return new SplitBoard(client, name, boards.size(), "@" + period, retries);
    }

    /** The shards. */
    public List<Leaderboard> boards() {
        return boards;
    }

    /** How many rounds there were. */
    public long rounds() {
        return rounds.get();
    }

    /** The shard of a member: crc32 as in zip and PNG, of the name in UTF-8, modulo shards. */
    public static int shardOf(String member, int shards) {
        CRC32 sum = new CRC32();
        sum.update(member.getBytes(StandardCharsets.UTF_8));
        return (int) (sum.getValue() % shards);
    }

    private int shardOf(String member) {
        return shardOf(member, boards.size());
    }

    /** The shard in which the member is, or would be. Ranks that it replies are those in the shard. */
    public Leaderboard boardOf(String member) {
        return boards.get(shardOf(member));
    }

    // ---- asking shards ----

    private <F, T> List<T> ask(List<F> from, Function<F, T> call) {
        if (from.isEmpty()) {
            return List.of();
        }
        rounds.incrementAndGet();
        return Sending.together(from, call);
    }

    private <T> List<T> askAll(BiFunction<Integer, Leaderboard, T> call) {
        return ask(IntStream.range(0, boards.size()).boxed().toList(), shard -> call.apply(shard, boards.get(shard)));
    }

    private long total(Function<Leaderboard, Long> call) {
        return Replies.sumInteger(askAll((shard, board) -> call.apply(board)));
    }

    /** Items by the shard of their member. */
    private record Group<T>(int shard, List<T> items) {
    }

    private <T> List<Group<T>> byShard(Collection<T> items, Function<T, String> member) {
        Map<Integer, List<T>> found = new TreeMap<>();
        items.forEach(each -> found.computeIfAbsent(shardOf(member.apply(each)), shard -> new ArrayList<>()).add(each));
        return found.entrySet().stream().map(each -> new Group<>(each.getKey(), each.getValue())).toList();
    }

    // ---- writing ----

    /** Makes every shard. What was interrupted is completed by the same call again. */
    public void create(Options.Create options) {
        List<RuntimeException> errors = new ArrayList<>();
        List<RuntimeException> all = askAll((shard, board) -> {
            try {
                board.create(options);
                return null;
            } catch (RuntimeException error) {
                return error;
            }
        });
        for (RuntimeException error : all) {
            if (error == null) {
                continue;
            }
            String replied = client.replied(error);
            if (replied == null || !replied.startsWith("BUSYKEY")) {
                throw error;
            }
            errors.add(error);
        }
        if (errors.size() == boards.size()) {
            throw errors.get(0);
        }
        List<String> layouts = errors.isEmpty() ? List.of() : askAll((shard, board) -> board.info().layout());
        List<String> different = layouts.stream().distinct().sorted().toList();
        if (different.size() > 1) {
            throw new IllegalStateException("shards of \"" + name + "\" have different layouts: " + String.join(", ", different));
        }
    }

    /** Does the result count? */
    public boolean submit(String member, Object field, Options.Submit options) {
        if (options.get("boards") != null) {
            throw new IllegalArgumentException("a result of a SplitBoard has no other boards");
        }
        rounds.incrementAndGet();
        return boardOf(member).submit(member, field, options).get(0).counts();
    }

    /** Does the result count? */
    public boolean submit(String member, Object field) {
        return submit(member, field, new Options.Submit());
    }

    /** Each shard writes its own as a whole or not at all; an error comes when all have replied. */
    public long add(List<Entry> results, Options.Add options) {
        if (options.get("packed") != null) {
            throw new IllegalArgumentException("a SplitBoard takes no packed keys");
        }
        return Replies.sumInteger(ask(byShard(results, Entry::member),
                group -> boards.get(group.shard()).add(group.items(), options)));
    }

    /** Each shard writes its own as a whole or not at all. */
    public long add(List<Entry> results) {
        return add(results, new Options.Add());
    }

    /** Tags of a member that is there; did that change one? */
    public boolean tag(String member, Map<String, ?> tag, Options.Tag options) {
        rounds.incrementAndGet();
        return boardOf(member).tag(member, tag, options);
    }

    /** How many were there. By ZREM: in the module a `board` line must match the shards' names. */
    public long remove(String... members) {
        return Replies.sumInteger(ask(byShard(List.of(members), each -> each),
                group -> boards.get(group.shard()).remove(group.items().toArray(String[]::new))));
    }

    /** All shards. How many there were. */
    public long delete() {
        return total(board -> board.delete() ? 1L : 0L);
    }

    // ---- reading ----

    private static void refuse(SplitOptions options, String option, String methods) {
        if (options.get(option) != null) {
            throw new IllegalArgumentException(option + " is an option of " + methods);
        }
    }

    /** Members from their shards in one round, with ranks in the shards. null: it is not there. */
    private List<BoardRecord> readOwn(List<String> members, Options.Get options) {
        BoardRecord[] found = new BoardRecord[members.size()];
        List<Group<Integer>> groups = byShard(IntStream.range(0, found.length).boxed().toList(), members::get);
        List<List<BoardRecord>> lists = ask(groups, group ->
                boards.get(group.shard()).get(group.items().stream().map(members::get).toList(), options));
        for (int i = 0; i < lists.size(); i++) {
            for (int j = 0; j < lists.get(i).size(); j++) {
                found[groups.get(i).items().get(j)] = lists.get(i).get(j);
            }
        }
        return new ArrayList<>(java.util.Arrays.asList(found));
    }

    private static Options.Get shown(SplitOptions options) {
        return new Options.Get().as(options, "where", "wherenot", "tags", "comp").withkey();
    }

    /** The options with the group of within as where: a round, if there is one. null: the member is not in the group. */
    private SplitOptions within(String member, SplitOptions options) {
        List<?> within = (List<?>) options.get("within");
        if (within == null) {
            return options;
        }
        BoardRecord record = readOwn(List.of(member), new Options.Get().as(options, "where", "wherenot", "within").tags()).get(0);
        if (record == null) {
            return null;
        }
        Map<String, Object> where = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        if (options.get("where") instanceof Map<?, ?> given) {
            given.forEach((tag, values) -> where.put((String) tag, values));
        }
        Map<String, String> tags = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        tags.putAll(record.tags());
        within.forEach(tag -> where.put((String) tag, List.of(tags.getOrDefault((String) tag, ""))));
        return new SplitOptions().as(options, "wherenot", "tags", "comp").put("where", where);
    }

    /**
     * The packed key that has in this shard all that is before the member above it: of lower shards those with the same key,
     * too.
     */
    private String at(String member, BigInteger key, int shard, boolean isComp) {
        return shard < shardOf(member) && !isComp ? "=" + key : key.toString();
    }

    /** The member's record; null: it is not there. */
    public BoardRecord rank(String member) {
        return rank(member, new SplitOptions());
    }

    /** The member's record; null: it is not there, or not in the group. Two rounds, three with within. */
    public BoardRecord rank(String member, SplitOptions options) {
        SplitOptions found = within(member, options);
        return found == null ? null : get(List.of(member), found).get(0);
    }

    /** The records of many, in two rounds; null: it is not there. */
    public List<BoardRecord> get(List<String> members, SplitOptions options) {
        refuse(options, "within", "rank and around");
        List<BoardRecord> found = readOwn(members, shown(options));
        boolean isComp = options.get("comp") != null;
        List<Group<Integer>> others = new ArrayList<>();
        for (int shard = 0; shard < boards.size(); shard++) {
            int own = shard;
            List<Integer> asked = IntStream.range(0, members.size())
                    .filter(i -> found.get(i) != null && shardOf(members.get(i)) != own).boxed().toList();
            if (!asked.isEmpty()) {
                others.add(new Group<>(shard, asked));
            }
        }
        List<List<Long>> counts = ask(others, group -> boards.get(group.shard()).above(
                group.items().stream().map(i -> at(members.get(i), found.get(i).key(), group.shard(), isComp)).toList(),
                new Options.Above().as(options, "where", "wherenot", "comp")));
        for (int i = 0; i < others.size(); i++) {
            for (int j = 0; j < counts.get(i).size(); j++) {
                int place = others.get(i).items().get(j);
                found.set(place, found.get(place).at(found.get(place).rank() + counts.get(i).get(j)));
            }
        }
        return found;
    }

    /** A place in the order of the whole. */
    private record Place(BigInteger key, int shard, long rank, BoardRecord record) implements Comparable<Place> {
        private static final Comparator<Place> ORDER = Comparator.comparing(Place::key).reversed()
                .thenComparingInt(Place::shard).thenComparingLong(Place::rank);

        @Override
        public int compareTo(Place other) {
            return ORDER.compare(this, other);
        }
    }

    private static List<Place> placesOf(int shard, List<BoardRecord> records) {
        return records.stream().map(each -> new Place(each.key(), shard, each.rank(), each)).toList();
    }

    private static <T> T last(List<T> list) {
        return list.get(list.size() - 1);
    }

    /**
     * The records at the places first .. first + count - 1, or as many as there are; null: others may be in between.
     *
     * @param lists of each shard records without a gap
     * @param ends is the last of them the shard's last?
     */
    private static List<BoardRecord> merge(List<List<Place>> lists, boolean[] ends, long first, long count) {
        long begin = first;
        List<Place> heads = new ArrayList<>();
        List<Place> tails = new ArrayList<>();
        List<Place> all = new ArrayList<>();
        for (int shard = 0; shard < lists.size(); shard++) {
            List<Place> own = lists.get(shard);
            all.addAll(own);
            if (!own.isEmpty() && own.get(0).rank() > 0) {
                heads.add(own.get(0));
                begin -= own.get(0).rank();
            }
            if (!own.isEmpty() && !ends[shard]) {
                tails.add(last(own));
            }
        }
        if (begin < 0 || (!tails.isEmpty() && begin + count > all.size())) {
            return null;
        }
        all.sort(null);
        List<Place> wanted = all.subList((int) Math.min(begin, all.size()), (int) Math.min(begin + count, all.size()));
        if (!wanted.isEmpty() && (heads.stream().anyMatch(head -> head.compareTo(wanted.get(0)) > 0)
                || tails.stream().anyMatch(tail -> tail.compareTo(last(wanted)) < 0))) {
            return null;
        }
        List<BoardRecord> found = new ArrayList<>();
        for (Place each : wanted) {
            found.add(each.record().at(first + found.size()));
        }
        return found;
    }

    /** count records with the member in the middle. */
    public List<BoardRecord> around(String member, long count) {
        return around(member, count, new SplitOptions());
    }

    /**
     * count records with the member in the middle; at the ends of the board, the count that are there. Two rounds, three with
     * within.
     */
    public List<BoardRecord> around(String member, long count, SplitOptions options) {
        refuse(options, "comp", "rank and get");
        Leaderboard.needFrom(1, "count", count);
        SplitOptions group = within(member, options);
        if (group == null) {
            return List.of();
        }
        long size = 2 * (count + 1);
        int own = shardOf(member);
        BoardRecord record = readOwn(List.of(member), shown(group)).get(0);
        for (int round = 0; record != null && round < ROUNDS_MAX; round++) {
            BigInteger key = record.key();
            List<List<Place>> lists = askAll((shard, board) -> {
                Options.Around asked = new Options.Around().as(group, "where", "wherenot", "tags").withkey();
                return placesOf(shard, shard == own ? board.around(member, size, asked)
                        : board.around(null, size, asked.packed(at(member, key, shard, false))));
            });
            Place found = lists.get(own).stream().filter(each -> each.record().member().equals(member)).findFirst().orElse(null);
            if (found != null && found.key().equals(key)) { // else it has moved
                List<BoardRecord> records = aroundOf(lists, found, size, count);
                if (records != null) {
                    return records;
                }
            }
            record = found == null ? null : found.record();
        }
        if (record != null) {
            throw new BoardChanged(name, "records around \"" + member + '"');
        }
        return List.of();
    }

    /** The place is in the middle but where the board ends. */
    private static List<BoardRecord> aroundOf(List<List<Place>> lists, Place middle, long size, long count) {
        boolean[] ends = new boolean[lists.size()];
        long first = 0;
        long before = 0;
        long all = 0;
        for (int shard = 0; shard < lists.size(); shard++) {
            List<Place> list = lists.get(shard);
            long own = list.stream().filter(each -> each.compareTo(middle) < 0).count();
            ends[shard] = list.size() < size || own > size / 2;
            before += own;
            all += list.size();
            first += list.isEmpty() ? 0 : list.get(0).rank();
        }
        return merge(lists, ends, Math.max(0, first + Math.min(before - count / 2, all - count)), count);
    }

    /** The records at the places start .. stop. */
    public List<BoardRecord> range(long start, long stop) {
        return range(start, stop, new SplitOptions());
    }

    /**
     * The records at the places start .. stop, which are 0 or more. Three rounds; one near the top; four with 64 shards, or a
     * billion members.
     */
    public List<BoardRecord> range(long start, long stop, SplitOptions options) {
        refuse(options, "within", "rank and around");
        refuse(options, "comp", "rank and get");
        Leaderboard.needFrom(0, "start", start);
        Leaderboard.needFrom(0, "stop", stop);
        return stop < start ? List.of() : find(new Search(start, stop - start + 1, boards.size()), options, 1);
    }

    /** The best. */
    public List<BoardRecord> top(long count) {
        return top(count, new SplitOptions());
    }

    /** The best. */
    public List<BoardRecord> top(long count, SplitOptions options) {
        Leaderboard.needFrom(1, "count", count);
        return range(0, count - 1, options);
    }

    /** A page, the first is 1, and how many there are. */
    public Page page(long number, long size, SplitOptions options) {
        return Leaderboard.pageOf(number, size, (start, stop) -> range(start, stop, options),
                () -> count(null, null, new SplitOptions().as(options, "where", "wherenot")));
    }

    /** A page, the first is 1, and how many there are. */
    public Page page(long number, long size) {
        return page(number, size, new SplitOptions());
    }

    /** All, the best first: one that moves meanwhile may be missed or come twice. */
    public Iterable<BoardRecord> records(SplitOptions options) {
        return Leaderboard.recordsOf(WALKED, (start, stop) -> range(start, stop, options));
    }

    @Override
    public Iterator<BoardRecord> iterator() {
        return records(new SplitOptions()).iterator();
    }

    /** What may be sought in a shard: its members before first are better than all that are sought, those from end on are worse. */
    private record Span(long first, long end) {
    }

    private static long sizeOf(List<Place> cuts) {
        return cuts.isEmpty() ? 0 : last(cuts).rank() + 1;
    }

    /** For the count places from first on. */
    private static final class Search {
        private final long first;
        private final long count;
        private long pad = PAD_MIN;
        private boolean isNarrow;
        private Span[] shards;

        Search(long first, long count, int shards) {
            this.first = first;
            this.count = count;
            begin(shards);
        }

        /** At the beginning, or again. */
        private void begin(int size) {
            isNarrow = size == 1 || first + count <= limits.few();
            shards = new Span[size];
            java.util.Arrays.fill(shards, new Span(size == 1 ? first : 0, isNarrow ? first + count : UNKNOWN));
        }

        /** How many members; UNKNOWN: all. */
        long left() {
            long sum = 0;
            for (Span each : shards) {
                if (each.end() == UNKNOWN) {
                    return UNKNOWN;
                }
                sum += each.end() - each.first();
            }
            return sum;
        }

        /** Cuts of what is left of each shard. */
        void takeCuts(List<List<Place>> lists) {
            long before = left();
            long[] ends = new long[shards.length];
            long all = 0;
            for (int shard = 0; shard < ends.length; shard++) {
                ends[shard] = shards[shard].end() == UNKNOWN ? sizeOf(lists.get(shard)) : shards[shard].end();
                all += ends[shard];
            }
            narrow(lists, ends, Math.min(first + count, all) - 1);
            isNarrow = left() <= count + limits.many() || (before != UNKNOWN && left() >= before);
        }

        /**
         * Leaves of each shard what may be at the places first .. last. Each cut is before all that follow in the order, so of
         * each shard it is known how many members are before it: at least, and at most.
         */
        private void narrow(List<List<Place>> lists, long[] ends, long last) {
            int size = shards.length;
            int[] passed = new int[size];
            long[] least = new long[size];
            long[] most = new long[size];
            long[] low = new long[size];
            long[] high = null;
            long leastSum = 0;
            long mostSum = 0;
            List<Place> all = new ArrayList<>();
            for (int shard = 0; shard < size; shard++) {
                all.addAll(lists.get(shard));
                least[shard] = shards[shard].first();
                low[shard] = least[shard];
                most[shard] = rankAt(lists.get(shard), 0, ends[shard]);
                leastSum += least[shard];
                mostSum += most[shard];
            }
            all.sort(null);
            for (Place cut : all) {
                int own = cut.shard();
                if (mostSum <= first) { // what is surely before this one is before all that are sought
                    low = least.clone();
                    low[own] = cut.rank();
                }
                if (high == null && leastSum - least[own] + cut.rank() >= last) {
                    high = most.clone();
                    high[own] = cut.rank() + 1;
                }
                if (high != null && mostSum > first) {
                    break;
                }
                long following = rankAt(lists.get(own), ++passed[own], ends[own]);
                leastSum += cut.rank() + 1 - least[own];
                mostSum += following - most[own];
                least[own] = cut.rank() + 1;
                most[own] = following;
            }
            for (int shard = 0; shard < size; shard++) {
                shards[shard] = new Span(low[shard], Math.max(low[shard], (high == null ? ends : high)[shard]));
            }
        }

        private static long rankAt(List<Place> cuts, int place, long end) {
            return place < cuts.size() ? cuts.get(place).rank() : end;
        }

        /** The first and the last of the records to read: with some on either side, which show that nothing is missing. */
        Span range(int shard) {
            long more = shards.length == 1 ? 0 : pad;
            return new Span(Math.max(0, shards[shard].first() - more), shards[shard].end() - 1 + more);
        }

        /** Those sought, from those of these ranges; null: the board has changed meanwhile. */
        List<BoardRecord> records(List<List<Place>> lists) {
            if (lists.size() == 1) {
                return lists.get(0).stream().map(Place::record).toList();
            }
            boolean[] ends = new boolean[lists.size()];
            for (int shard = 0; shard < ends.length; shard++) {
                Span own = range(shard);
                ends[shard] = lists.get(shard).size() < own.end() + 1 - own.first();
                if (own.first() > 0 && lists.get(shard).isEmpty()) {
                    return null;
                }
            }
            return merge(lists, ends, first, count);
        }

        /** After a change: reads more on either side, or begins again. */
        void widen() {
            pad *= 8;
            if (pad > PAD_MAX) {
                pad = PAD_MIN;
                begin(shards.length);
            }
        }
    }

    /**
     * A round: cuts of what is left. c of them in each shard leave about 2 / c of it, and limits.many may remain.
     *
     * @param searches how many there are at once
     */
    private List<List<Place>> cuts(Search search, int searches, SplitOptions options) {
        int size = boards.size();
        long left = search.left();
        long most = left == UNKNOWN ? limits.cuts() / size
                : Math.min(4 * limits.cuts() / ((long) size * searches), 3 * left / limits.many() + 2);
        long count = Math.max(2, Math.min(CUTS_MAX, most));
        return askAll((shard, board) -> {
            Span own = search.shards[shard];
            if (own.end() == own.first()) {
                return List.of();
            }
            Options.Cuts asked = new Options.Cuts().as(options, "where", "wherenot");
            List<Cut> found = own.end() == UNKNOWN ? board.cuts(count, asked) : board.cuts(count, own.first(), own.end() - 1, asked);
            return found.stream().map(each -> new Place(each.key(), shard, each.rank(), null)).toList();
        });
    }

    private List<BoardRecord> find(Search search, SplitOptions options, int searches) {
        for (int round = 0; round < ROUNDS_MAX; round++) {
            if (!search.isNarrow) {
                search.takeCuts(cuts(search, searches, options));
                continue;
            }
            List<BoardRecord> found = search.records(askAll((shard, board) -> placesOf(shard, board.range(search.range(shard).first(),
                    search.range(shard).end(), new Options.Range().as(options, "where", "wherenot", "tags").withkey()))));
            if (found != null) {
                return found;
            }
            search.widen();
        }
        throw new BoardChanged(name, "place " + search.first);
    }

    /** A record for each quantile from 0, the worst, to 1, the best; null: nobody is there. */
    public List<BoardRecord> quantile(List<BigDecimal> quantiles) {
        return quantile(quantiles, new SplitOptions());
    }

    /** A record for each quantile from 0, the worst, to 1, the best; null: nobody is there. Rounds as of a page, together. */
    public List<BoardRecord> quantile(List<BigDecimal> quantiles, SplitOptions options) {
        refuse(options, "within", "rank and around");
        refuse(options, "comp", "rank and get");
        for (BigDecimal each : quantiles) {
            if (each.signum() < 0 || each.compareTo(BigDecimal.ONE) > 0) {
                throw new IllegalArgumentException("quantile: " + each + ": decimals from 0 to 1 are allowed");
            }
        }
        Search whole = new Search(0, 1, boards.size());
        java.util.Arrays.fill(whole.shards, new Span(0, UNKNOWN));
        List<List<Place>> cuts = cuts(whole, 1, options);
        long total = cuts.stream().mapToLong(SplitBoard::sizeOf).sum();
        return quantiles.isEmpty() ? List.of() : Sending.together(quantiles, each -> {
            long fromWorst = each.multiply(BigDecimal.valueOf(total)).setScale(0, RoundingMode.CEILING).longValueExact();
            Search search = new Search(Math.max(0, total - Math.max(1, fromWorst)), 1, boards.size());
            if (!search.isNarrow) {
                search.takeCuts(cuts);
            }
            List<BoardRecord> found = find(search, options, quantiles.size());
            return found.isEmpty() ? null : found.get(0);
        });
    }

    private static Object orInfinite(Object score, Object other, String infinite) {
        return score == null && other != null ? infinite : score;
    }

    /** How many members there are. */
    public long count() {
        return count(null, null, new SplitOptions());
    }

    /** How many members, or with scores from start to stop ("(5": without 5 itself; null: no limit). One round. */
    public long count(Object start, Object stop, SplitOptions options) {
        refuse(options, "within", "rank and around");
        Options.Count asked = new Options.Count().as(options, "where", "wherenot");
        if (start != null || stop != null) {
            asked.byscore();
        }
        return total(board -> board.count(orInfinite(start, stop, "-inf"), orInfinite(stop, start, "+inf"), asked));
    }

    /** The same by the values of one tag or two, most first. */
    public List<ValueCount> countBy(List<String> by, Object start, Object stop, SplitOptions options) {
        refuse(options, "within", "rank and around");
        Options.CountBy asked = new Options.CountBy().as(options, "where", "wherenot");
        if (start != null || stop != null) {
            asked.byscore();
        }
        Map<List<String>, Long> rows = new LinkedHashMap<>();
        askAll((shard, board) -> board.countBy(by, orInfinite(start, stop, "-inf"), orInfinite(stop, start, "+inf"), asked))
                .forEach(list -> list.forEach(row -> rows.merge(row.values(), row.count(), Long::sum)));
        Comparator<ValueCount> order = Comparator.comparingLong(ValueCount::count).reversed();
        return rows.entrySet().stream().map(each -> new ValueCount(each.getKey(), each.getValue()))
                .sorted(order.thenComparing(SplitBoard::bytesOf, java.util.Arrays::compareUnsigned)).toList();
    }

    private static byte[] bytesOf(ValueCount row) {
        return String.join("\0", row.values().stream().map(each -> each == null ? "" : each).toList()).getBytes(StandardCharsets.UTF_8);
    }

    /** Members below the first edge, between edges, and from the last one up. One round. */
    public List<Long> hist(Object edge, SplitOptions options) {
        refuse(options, "within", "rank and around");
        return Replies.sumIntegers(askAll((shard, board) -> board.hist(edge, new Options.Hist().as(options, "where", "wherenot"))));
    }
}
