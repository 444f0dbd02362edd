package leaderboard;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.LongBinaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.RedisSentinelClient;

/**
 * Tests of clients/java, in the package's own package: each method whose name begins with "every" for all clients of a server,
 * with "cluster" for those of a cluster, with "once" alone. Arguments: the server's port, Sentinel's, those of the cluster, the
 * server's version.
 */
public final class Tests {
    private static final int PORT = Integer.getInteger("port");
    private static final int SENTINEL = Integer.getInteger("sentinel");
    private static final List<Integer> PORTS = Arrays.stream(System.getProperty("ports").split(",")).map(Integer::valueOf).toList();
    private static final boolean IS_SHORT = !List.of("", "0").contains(Objects.requireNonNullElse(System.getenv("LEADERBOARD_TEST_SHORT"), ""));
    private static final List<Runnable> ENDS = new ArrayList<>();

    private Tests() {
    }

    public static void main(String[] arguments) throws IOException {
        int failed = 0;
        int passed = 0;
        Map<String, Client> singles = singles();
        Map<String, Client> clusters = clusters();
        SplitBoard.limits = new SplitBoard.Limits(40, 5, 10); // so small that a few hundred members take all the rounds
        Method[] methods = Tests.class.getDeclaredMethods();
        Arrays.sort(methods, (a, b) -> a.getName().compareTo(b.getName()));
        for (Method method : methods) {
            String name = method.getName();
            Map<String, Client> clients = name.startsWith("every") ? singles : name.startsWith("cluster") && method.getParameterCount() == 2
                    ? clusters : name.startsWith("once") ? Map.of("", singles.get("Jedis with RESP3")) : Map.of();
            for (Map.Entry<String, Client> client : clients.entrySet()) {
                try {
                    method.invoke(null, client.getValue(), name + " " + client.getKey());
                    passed++;
                } catch (ReflectiveOperationException error) {
                    failed++;
                    System.out.println("FAIL " + name + ", " + client.getKey());
                    (error.getCause() == null ? error : error.getCause()).printStackTrace(System.out);
                }
            }
        }
        ENDS.forEach(Runnable::run);
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    // ---- clients ----

    private static Client lettuce(RedisURI address, boolean isNew) {
        RedisClient client = RedisClient.create(address);
        ENDS.add(client::shutdown);
        client.setOptions(io.lettuce.core.ClientOptions.builder().protocolVersion(isNew
                ? io.lettuce.core.protocol.ProtocolVersion.RESP3 : io.lettuce.core.protocol.ProtocolVersion.RESP2).build());
        return new LettuceClient(client.connect());
    }

    private static DefaultJedisClientConfig protocol(RedisProtocol protocol) {
        return DefaultJedisClientConfig.builder().protocol(protocol).build();
    }

    private static Client jedis(int port, RedisProtocol protocol) {
        var client = redis.clients.jedis.RedisClient.builder().hostAndPort("127.0.0.1", port).clientConfig(protocol(protocol)).build();
        ENDS.add(client::close);
        return new JedisClient(client);
    }

    private static Map<String, Client> singles() {
        Map<String, Client> found = new LinkedHashMap<>();
        found.put("Lettuce with RESP3", lettuce(RedisURI.create("127.0.0.1", PORT), true));
        found.put("Lettuce with RESP2", lettuce(RedisURI.create("127.0.0.1", PORT), false));
        found.put("Lettuce and Sentinel", lettuce(RedisURI.Builder.sentinel("127.0.0.1", SENTINEL, "boards").build(), true));
        found.put("Jedis with RESP3", jedis(PORT, RedisProtocol.RESP3));
        found.put("Jedis with RESP2", jedis(PORT, RedisProtocol.RESP2));
        var sentinel = RedisSentinelClient.builder().masterName("boards").sentinels(Set.of(new HostAndPort("127.0.0.1", SENTINEL))).build();
        ENDS.add(sentinel::close);
        found.put("Jedis and Sentinel", new JedisClient(sentinel));
        return found;
    }

    private static Map<String, Client> clusters() {
        Map<String, Client> found = new LinkedHashMap<>();
        RedisClusterClient lettuce = RedisClusterClient.create(PORTS.stream().map(port -> RedisURI.create("127.0.0.1", port)).toList());
        ENDS.add(lettuce::shutdown);
        found.put("Lettuce", new LettuceClient(lettuce.connect()));
        for (RedisProtocol protocol : List.of(RedisProtocol.RESP2, RedisProtocol.RESP3)) {
            var jedis = redis.clients.jedis.RedisClusterClient.builder().nodes(Set.of(new HostAndPort("127.0.0.1", PORTS.get(0))))
                    .clientConfig(protocol(protocol)).build();
            ENDS.add(jedis::close);
            found.put("Jedis with " + protocol, new JedisClient(jedis));
        }
        return found;
    }

    // ---- claims ----

    private static void same(Object wanted, Object found) {
        if (!Objects.deepEquals(wanted, found)) {
            throw new AssertionError("found  " + found + "\nwanted " + wanted);
        }
    }

    private static void fails(String with, Runnable run) {
        try {
            run.run();
        } catch (RuntimeException error) {
            if (!String.valueOf(error.getMessage()).contains(with)) {
                throw new AssertionError("not \"" + with + '"', error);
            }
            return;
        }
        throw new AssertionError("no error: " + with);
    }

    private static String names(Iterable<BoardRecord> records) {
        List<String> found = new ArrayList<>();
        records.forEach(each -> found.add(each == null ? null : each.member()));
        return String.join(" ", found);
    }

    private static <T> List<T> collected(Iterable<T> all) {
        List<T> found = new ArrayList<>();
        all.forEach(found::add);
        return found;
    }

    private static Object tell(Client client, String... words) {
        return client.send(List.of(words), words.length > 1 ? 1 : 0);
    }

    private static Options.Create laps() {
        return new Options.Create().fields("FIELD laps 10 FIELD ms 30 ASC TIME 24 M").tag("country", 4).tag("clan", 3);
    }

    // ---- commands ----

    static void everyRecordIsReadWhole(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        board.create(laps());
        Instant at = Instant.parse("2026-11-16T10:00:00Z");
        same(2L, board.add(List.of(Entry.of("ann", 9, 61500), Entry.of("bob", 9, 60900)), new Options.Add().at(at).tag("country", "DE")));
        same(2L, board.add(List.of(Entry.of("kim", 8, 59000), Entry.of("leo", 8, 59000)),
                new Options.Add().at(at.toEpochMilli()).tag("country", "FR")));
        BigInteger key = board.record("ann", new Options.Get().withkey()).key();
        same(Arrays.asList(new BoardRecord("ann", 1, at, List.of("9", "61500"), 75.0, key, Map.of("country", "DE"), null, null), null),
                board.get(List.of("ann", "nobody"), new Options.Get().pct().withkey().tags()));
        same("bob ann kim leo", names(board.range(0, -1)));
        same("leo", names(board.range(8, 8, new Options.Range().byscore().limit(1, 1))));
        same("leo", names(board.range(0, 0, new Options.Range().rev())));
        same("bob ann", names(board.around("ann", 5, new Options.Around().within("country"))));
        same("ann kim", names(board.around(null, 2, new Options.Around().score(8))));
        same("bob kim leo", names(board.quantile(List.of(1, 0.5, "0"))));
        same(List.of(2L, 2L), board.hist(9));
        List<BigInteger> keys = board.range(0, -1, new Options.Range().withkey()).stream().map(BoardRecord::key).toList();
        same(List.of(new Cut(0, keys.get(0)), new Cut(1, keys.get(1)), new Cut(3, keys.get(3))), board.cuts(3));
        same(List.of(new Cut(1, keys.get(1))), board.cuts(9, 1L, -1L, new Options.Cuts().where("country", "DE")));
        same(List.of(1L, 2L), board.above(List.of(key, "=" + key)));
        same(4L, board.count());
        same(2L, board.count(0, 2, new Options.Count().where("country", "DE", "FR").wherenot("country", "FR")));
        same(List.of(new ValueCount(List.of("DE"), 2), new ValueCount(List.of("FR"), 2)), board.countBy(List.of("country")));
        same(List.of(new ValueCount(Arrays.asList("DE", null), 2), new ValueCount(Arrays.asList("FR", null), 1)),
                board.countBy(List.of("country", "clan"), 0, 2));
    }

    static void everyNameOfWhatARankingNeeds(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        board.create(new Options.Create().fields("FIELD", "points", "20").tag("country", 8));
        fails("BUSYKEY", board::create);
        board.create(new Options.Create().existOk());
        fails("FIELD", () -> board.named("other").create(new Options.Create().fields("FIELD").existOk()));
        board.add(List.of(Entry.of("ann", 50), Entry.of("bob", 40), Entry.of("cid", 30)), new Options.Add().tag("country", "DE"));
        board.add(List.of(Entry.of("eve", 45)), new Options.Add().tag("country", "FR"));
        same("ann eve", names(board.top(2)));
        same(Map.of("country", "DE"), board.top(1, new Options.Range().tags()).get(0).tags());
        same(2L, board.record("bob").rank());
        same(1L, board.record("bob", new Options.Get().within("country")).rank());
        same(40L, board.record("bob").score());
        same(null, board.record("nobody"));
        same(2L, board.remove("ann", "x", "cid"));
        same("eve bob", names(board.range(0, -1)));
        same(true, board.delete());
        same(false, board.delete());
        fails("count: 0: a number from 1 on is allowed", () -> board.top(0));
    }

    static void everyMistakeIsRefusedAndNothingIsSent(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        board.add(List.of(Entry.of("ann", 5)));
        fails("field is needed", () -> board.submit("ann", null));
        fails("member is needed", () -> board.submit(null, 5));
        fails("tag is needed", () -> board.tag("ann", null));
        fails("none are given", () -> board.get(List.of()));
        fails("touch and keeptime exclude each other",
                () -> board.add(List.of(Entry.of("ann", 1)), new Options.Add().touch().keeptime()));
        fails("one of these is needed: results, packed", () -> board.add(null));
        fails("one of these is needed: member, score", () -> board.around(null, 5));
        fails("beyond what a double holds", () -> board.submit("ann", 1e17));
        fails("beyond what a double holds", () -> board.submit("ann", Double.NaN));
        fails("is no argument", () -> board.submit("ann", new Object()));
        fails("none are given", () -> board.submit("ann", 7, new Options.Submit().hset("run:*", Map.of())));
        fails("boards: none", () -> board.submit("ann", 7, new Options.Submit().boards()));
        fails("ERR ", () -> board.submit("ann", "x"));
        fails("a number from 0 on", () -> board.withRetries(-1));
        same(5L, board.record("ann").score());
    }

    static void everyHashAndRankOnAnotherBoard(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        board.add(List.of(Entry.of("ann", 5), Entry.of("bob", 4)));
        tell(client, "HSET", name + ":p:ann", "name", "Ann", "team", "x");
        same(Arrays.asList(Map.of("name", "Ann"), null), board.range(0, 1, new Options.Range().data(name + ":p:*").fields("name", "tier"))
                .stream().map(BoardRecord::data).toList());
        same(Map.of("name", "Ann", "team", "x"), board.record("ann", new Options.Get().data(name + ":p:*")).data());
        same(2L, board.roll(name + ":old"));
        board.add(List.of(Entry.of("bob", 7), Entry.of("kim", 6)));
        same(Arrays.asList(1L, null), board.range(0, -1, new Options.Range().since(name + ":old")).stream().map(BoardRecord::since).toList());
        board.submit("ann", 9, new Options.Submit().hset(name + ":p:*", Map.of("replay", "r/7")));
        same("r/7", Replies.text(tell(client, "HGET", name + ":p:ann", "replay")));
    }

    static void everyWrite(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        Placed placed = board.addWithrank(List.of(Entry.of("ann", 10))).get(0);
        same(new Placed(board.record("ann"), null, false), placed);
        Result result = board.submit("ann", 25, new Options.Submit().operator(Options.Operator.INCR)).get(0);
        same(List.of(name, 35L, 0L, true), List.of(result.board(), result.record().score(), result.before(), result.counts()));
        List<Result> both = board.submit("ann", 20, new Options.Submit().operator(Options.Operator.BEST).boards(name, name + ":week"));
        same(List.of(name, false, name + ":week", true),
                List.of(both.get(0).board(), both.get(0).counts(), both.get(1).board(), both.get(1).counts()));
        same(null, both.get(1).before());
        same(0L, board.add(List.of(Entry.of("ann", 1)), new Options.Add().condition(Options.Condition.NX)));
        BigInteger key = board.record("ann", new Options.Get().withkey()).key();
        same(1L, board.withRetries(3).add(null, new Options.Add().packed(List.of(Entry.of("bob", key)))));
        same(35L, board.record("bob").score());
        same(List.of(false, true), IntStream.range(0, 2).mapToObj(i ->
                board.submit("ann", 1, new Options.Submit().once("r1").withrepeat()).get(0).repeated()).toList());
    }

    static void everyTag(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        board.create(laps());
        board.add(List.of(Entry.of("ann", 1, 1), Entry.of("bob", 2, 2)), new Options.Add().tag("country", "DE"));
        Function<String, Boolean> join = clan -> board.tag("ann", Map.of("clan", clan), new Options.Tag().if_("clan", ""));
        same(List.of(true, false), List.of(join.apply("wolves"), join.apply("bears")));
        same(Arrays.asList(Map.of("country", "DE", "clan", "wolves"), Map.of("country", "DE"), null),
                board.tags(List.of("ann", "bob", "nobody")));
    }

    static void everyOptionOfABoard(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        board.create(new Options.Create().fields("FIELD score 33 TIME 31 S").period(Options.Period.WEEK).on("SAT").tz("+08:00")
                .archive(4).keep(Options.Keep.BEST).opens(Instant.ofEpochSecond(1)).settle(Options.Settle.YES)
                .stale(10, Options.StaleUnit.DAY));
        Shapes.BoardInfo info = board.info();
        same("FIELD score 33 TIME 31 S STA", info.layout().substring(0, 28));
        same(Arrays.asList("best", true, Instant.ofEpochSecond(1), null, null, new BigDecimal("8589934591"), 864000000L),
                Arrays.asList(info.keep(), info.created(), info.opens(), info.closes(), info.settled(), info.fields().get(0).highest(),
                        info.stale()));
        same(List.of("SAT", "+08:00", 4L, false), List.of(info.period().on(), info.period().tz(), info.period().archive(), info.period().copy()));
        same(true, info.period().end().isAfter(info.period().start()));
        board.alter(new Options.Alter().state(Options.State.FREEZE).stale("10 DAY"));
        fails("FROZEN", () -> board.add(List.of(Entry.of("ann", 1))));
        List<Shapes.BoardSummary> found = collected(board.boards(new Options.List().match(name)));
        same(List.of(1, name, true), List.of(found.size(), found.get(0).name(), found.get(0).frozen()));
        board.alter(new Options.Alter().state(Options.State.THAW).stale("NONE").period(Options.Period.NONE).cap("NONE"));
        same(null, board.info().period());
    }

    static void everyArchiveIsSettledOnce(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        board.add(List.of(Entry.of("ann", 1)));
        board.roll(name + ":1");
        List<Shapes.BoardSummary> found = collected(board.boards(new Options.List().unsettled().match(name + ":1")));
        same(List.of(1, name + ":1", false), List.of(found.size(), found.get(0).name(), found.get(0).settled()));
        same(List.of(true, false), List.of(board.settle(name + ":1"), board.settle(name + ":1")));
    }

    static void everyCommandAboutOnePlayer(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        String ann = name + " ann";
        String bob = name + " bob";
        board.add(List.of(Entry.of(ann, 7), Entry.of(bob, 5)));
        List<NamedRecord> found = board.where(ann);
        same(List.of(1, name, 7L), List.of(found.size(), found.get(0).board(), found.get(0).record().score()));
        same(List.of(1L, 0L), board.move(ann, bob, new Options.Move().match(name).mode(Options.Mode.SUM)));
        same(12L, board.record(bob).score());
        same(1L, board.ban(bob, new Options.Ban().match(name).ex(100)));
        List<Ban> bans = collected(board.banned(new Options.Bans().match(bob)));
        same(List.of(1, bob, name, true), List.of(bans.size(), bans.get(0).member(), bans.get(0).pattern(), bans.get(0).until().isAfter(Instant.now())));
        fails("BANNED", () -> board.add(List.of(Entry.of(bob, 1))));
        same(List.of(true, false), List.of(board.unban(bob), board.unban(bob)));
        board.add(List.of(Entry.of(bob, 1)));
        same(1L, board.forget(bob, new Options.Forget().data("a:*", "b:*")));
        same(true, board.list(new Options.List().count(1)).cursor() != null);
    }

    static void everyLeague(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        fails("room is needed", () -> board.leagueCreate(new Options.LeagueCreate().tiers(4).up(1).down(1)));
        board.leagueCreate(new Options.LeagueCreate().fields("FIELD points 22 TIME 31 S").period(Options.Period.WEEK)
                .room(3).tiers(4).up(1).down(1).idle(Options.Idle.STAY));
        LeaguePlace place = board.leagueAdd("ann", 30, new Options.LeagueAdd().operator(Options.Operator.INCR));
        same(Arrays.asList(1L, 1L, 30L, null, null), Arrays.asList(place.tier(), place.room(), place.record().score(), place.other(), place.outlook()));
        same("up", board.leagueGet("ann").outlook());
        same(null, board.leagueGet("nobody"));
        Options.LeagueAdd again = new Options.LeagueAdd().once("r1").withrepeat();
        same(List.of(false, true), List.of(board.leagueAdd("bob", 5, again).repeated(), board.leagueAdd("bob", 5, again).repeated()));
        board.leagueRemove("bob");
        same(null, board.leagueAdd("bob", 5, again));
        Shapes.LeagueInfo info = board.leagueInfo();
        same(List.of(1L, 4L, "stay", 4, 1L), List.of(info.members(), info.tiers(), info.idle(), info.list().size(), info.list().get(3).openRoomMembers()));
        same(List.of(true, true, false), List.of(board.leagueSet(3, "ann"), board.leagueRemove("ann"), board.leagueRemove("ann")));
    }

    static void everyNumberIsExact(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        board.create(new Options.Create().fields("FIELD coins 64"));
        BigInteger largest = new BigInteger("18446744073709551615");
        board.add(List.of(Entry.of("ann", 9007199254740993L), Entry.of("kim", largest)));
        board.submit("ann", 1, new Options.Submit().operator(Options.Operator.INCR));
        List<BoardRecord> found = board.range(0, -1, new Options.Range().withkey());
        same(9007199254740994L, found.get(1).score());
        same(List.of(new BigDecimal(largest), largest), List.of(found.get(0).decimal(), found.get(0).key()));
        try {
            found.get(0).score();
            throw new AssertionError("no error");
        } catch (ArithmeticException error) {
            same(new BigDecimal(largest), board.info().fields().get(0).highest());
        }
        Leaderboard euros = board.named(name + ":euros");
        euros.create(new Options.Create().fields("FIELD euros 64 SIGNED SCALE 2"));
        euros.add(List.of(Entry.of("ann", "9007199254740993.21"), Entry.of("bob", 0.25), Entry.of("cid", new BigDecimal("-3"))));
        found = euros.range(0, -1);
        same(List.of(new BigDecimal("9007199254740993.21"), new BigDecimal("0.25")), List.of(found.get(0).decimal(), found.get(1).decimal()));
        try {
            found.get(1).score();
            throw new AssertionError("no error");
        } catch (ArithmeticException error) {
            same(List.of("0.25"), found.get(1).values());
        }
    }

    static void everyPageAndIteration(Client client, String name) {
        Leaderboard board = new Leaderboard(client, name);
        board.create(new Options.Create().fields("FIELD score 40").tag("even", 1));
        List<String> all = IntStream.range(0, 25).mapToObj(i -> "m" + i).toList();
        board.add(IntStream.range(0, 25).mapToObj(i -> Entry.of(all.get(i), 100 - i)).toList());
        board.tag("m0", Map.of("even", "yes"));
        board.tag("m2", Map.of("even", "yes"));
        Page page = board.page(3, 10);
        same(List.of(3L, 3L, 25L, String.join(" ", all.subList(20, 25))), List.of(page.number(), page.pages(), page.count(), names(page.records())));
        Page group = board.page(1, 10, new Options.Range().where("even", "yes"));
        same(List.of(1L, 2L, "m0 m2"), List.of(group.pages(), group.count(), names(group.records())));
        fails("page: 0: a number from 1 on", () -> board.page(0, 10));
        fails("no options of pages", () -> board.page(1, 10, new Options.Range().byscore()));
        fails("batch: 0", () -> board.records(0, new Options.Range()));
        same(String.join(" ", all), names(board));
        for (int batch : new int[] {5, 7, 25}) {
            same(String.join(" ", all), names(board.records(batch, new Options.Range())));
        }
        List<String> backwards = new ArrayList<>(all);
        Collections.reverse(backwards);
        same(String.join(" ", backwards), names(board.records(7, new Options.Range().rev())));
    }

    static void onceTheVersionIsTheServers(Client client, String name) {
        same(System.getProperty("version"), Commands.VERSION);
    }

    // ---- retries ----

    /** Goes to the server; the replies to the next `lost` commands that have ONCE do not come back on it. */
    private static final class Way implements Runnable {
        private static final Pattern ID = Pattern.compile("\\$4\r\nONCE\r\n\\$\\d+\r\n([^\r]+)");
        private final ServerSocket listener;
        private final List<String> ids = new ArrayList<>();
        private int lost;

        Way() throws IOException {
            listener = new ServerSocket(0, 50, java.net.InetAddress.getByName("127.0.0.1"));
            start(this);
        }

        private static void start(Runnable work) {
            Thread thread = new Thread(work);
            thread.setDaemon(true);
            thread.start();
        }

        int port() {
            return listener.getLocalPort();
        }

        synchronized void lose(int count) {
            lost = count;
        }

        synchronized List<String> seen() {
            return List.copyOf(ids);
        }

        private synchronized boolean isLost(String bytes) {
            Matcher found = ID.matcher(bytes);
            if (!found.find()) {
                return false;
            }
            ids.add(found.group(1));
            return lost-- > 0;
        }

        @Override
        public void run() {
            while (true) {
                try {
                    Socket client = listener.accept();
                    start(() -> serve(client));
                } catch (IOException error) {
                    return;
                }
            }
        }

        private void serve(Socket client) {
            boolean[] isLost = {false};
            try (client; Socket there = new Socket("127.0.0.1", PORT)) {
                InputStream replies = there.getInputStream();
                OutputStream back = client.getOutputStream();
                start(() -> {
                    try (client) {
                        byte[] bytes = new byte[65536];
                        for (int count; (count = replies.read(bytes)) > 0;) {
                            synchronized (isLost) {
                                if (isLost[0]) {
                                    return;
                                }
                            }
                            back.write(bytes, 0, count);
                        }
                    } catch (IOException error) {
                        // It has ended.
                    }
                });
                byte[] bytes = new byte[65536];
                for (int count; (count = client.getInputStream().read(bytes)) > 0;) {
                    synchronized (isLost) {
                        isLost[0] |= isLost(new String(bytes, 0, count, StandardCharsets.ISO_8859_1));
                    }
                    there.getOutputStream().write(bytes, 0, count);
                }
            } catch (IOException error) {
                // It has ended.
            }
        }
    }

    /** Lettuce that does not send again by itself. */
    private static Client lettuceOnce(int port) {
        RedisClient client = RedisClient.create(RedisURI.create("127.0.0.1", port));
        ENDS.add(client::shutdown);
        // A command without a connection fails, and one that was sent is not sent again.
        client.setOptions(io.lettuce.core.ClientOptions.builder()
                .disconnectedBehavior(io.lettuce.core.ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .replayFilter(command -> true).build());
        return new LettuceClient(client.connect());
    }

    static void onceALostReplyIsAskedForAgain(Client unused, String name) throws IOException {
        Way way = new Way();
        for (Client client : List.of(jedis(way.port(), RedisProtocol.RESP2), jedis(way.port(), RedisProtocol.RESP3), lettuceOnce(way.port()))) {
            Leaderboard board = new Leaderboard(client, name + client).withRetries(100);
            String id = "match:4711:" + client;
            int begin = way.seen().size();
            way.lose(3);
            Result result = board.submit("ann", 25, new Options.Submit().operator(Options.Operator.INCR).once(id)).get(0);
            same(List.of(25L, false), List.of(result.record().score(), result.counts())); // the first try counted
            same(Collections.nCopies(4, id), way.seen().subList(begin, begin + 4));
            way.lose(1);
            Options.Add more = new Options.Add().operator(Options.Operator.INCR);
            same(0L, board.add(List.of(Entry.of("ann", 5)), more));
            same(30L, board.record("ann").score());
            board.add(List.of(Entry.of("ann", 5)), more);
            List<String> ids = way.seen().subList(begin, way.seen().size());
            same(List.of(7, true, false), List.of(ids.size(), ids.get(4).equals(ids.get(5)), ids.get(5).equals(ids.get(6))));
        }
    }

    static void onceAReplyIsAReplyAndTriesEnd(Client unused, String name) throws IOException {
        Way way = new Way();
        Leaderboard board = new Leaderboard(jedis(way.port(), RedisProtocol.RESP3), name).withRetries(2);
        fails("ERR", () -> board.submit("ann", "many", new Options.Submit().once("a")));
        same(1, way.seen().size());
        way.lose(100);
        fails("", () -> board.submit("ann", 1, new Options.Submit().once("b")));
        same(4, way.seen().size());
        same(1L, board.add(null, new Options.Add().packed(List.of(Entry.of("ann", 5))))); // has no id
        fails("", () -> board.withRetries(0).submit("ann", 1, new Options.Submit().once("c")));
        same(List.of("c"), way.seen().subList(4, way.seen().size()));
        board.withRetries(0).add(List.of(Entry.of("bob", 5)));
        same(5, way.seen().size());
    }

    // ---- the module in a cluster ----

    static void clusterBoards(Client client, String name) {
        int size = 30; // on three nodes
        List<Leaderboard> boards = IntStream.range(0, size)
                .mapToObj(i -> new Leaderboard(client, "{" + name + " " + i + "}day").withRetries(5)).toList();
        for (int i = 0; i < size; i++) {
            Leaderboard board = boards.get(i);
            board.create(new Options.Create().fields("FIELD score 40").tag("country", 8));
            board.add(List.of(Entry.of("ann", i), Entry.of("bob", 20)), new Options.Add().tag("country", "DE"));
            List<Result> results = board.submit("ann", 5, new Options.Submit().operator(Options.Operator.INCR)
                    .boards(board.key(), board.key().replace("day", "week")));
            same(List.of(i + 5L, 5L), results.stream().map(each -> each.record().score()).toList());
            BoardRecord record = board.around("ann", 1, new Options.Around().within("country").tags()).get(0);
            same(List.of(i + 5L, Map.of("country", "DE")), List.of(record.score(), record.tags()));
            same(2L, board.page(1, 20).count());
            same(2L, board.info().count());
        }
        Leaderboard first = boards.get(0);
        String match = "{" + name + " *day";
        Set<String> there = new TreeSet<>();
        first.boards(new Options.List().match(match)).forEach(each -> there.add(each.name()));
        same(new TreeSet<>(boards.stream().map(Leaderboard::key).toList()), there);
        fails("each node of a cluster has a cursor", first::list);
        same(size, first.where("bob", new Options.Where().match(match)).size());
        same(List.of((long) size, 0L), first.move("bob", "kim", new Options.Move().match(match)));
        same((long) size, first.ban("kim", new Options.Ban().match(match)));
        same(List.of("kim", "kim", "kim"), collected(first.banned(new Options.Bans().match("kim"))).stream().map(Ban::member).toList());
        same(List.of(true, false), List.of(first.unban("kim"), first.unban("kim")));
        same((long) size, first.forget("ann", new Options.Forget().match(match)));
        String key = "{" + name + "}";
        first.named(key).add(List.of(Entry.of("ann", 1)));
        first.named(key).roll(key + "1");
        same(List.of(true, false), List.of(first.settle(key + "1"), first.settle(key + "1")));
    }

    // ---- one board over many keys ----

    private static final long AT = 1700000000000L;
    private static final int MEMBERS = IS_SHORT ? 60 : 150;

    /** Words of a layout, and of each field the values of a member. */
    private record Layout(String fields, boolean hasTime, long[]... values) {
    }

    private static final List<Layout> LAYOUTS = List.of(
            new Layout("FIELD score 20", false, new long[] {0, 5}), // hardly anything but equal keys
            new Layout("FIELD score 20", false, new long[] {0, 1000000}),
            new Layout("FIELD ms 24 ASC TIME 30 MS START " + AT, true, new long[] {0, 30}),
            new Layout("FIELD level 8 FIELD ms 20 ASC", false, new long[] {0, 9}, new long[] {0, 40}),
            new Layout("FIELD score 64 SIGNED", false, new long[] {Long.MIN_VALUE / 2, Long.MAX_VALUE / 2 - 1}),
            new Layout("FIELD wins 10 ASC FIELD score 16 SIGNED TIME 32 S LATEST", true, new long[] {0, 3}, new long[] {-2, 2}));

    private static LongBinaryOperator drawer() {
        String given = System.getenv("LEADERBOARD_TEST_SEED");
        long seed = given == null ? new Random().nextInt(1 << 30) : Long.parseLong(given);
        System.out.println("LEADERBOARD_TEST_SEED=" + seed);
        Random random = new Random(seed);
        return (low, high) -> low + Math.floorMod(random.nextLong(), high - low + 1);
    }

    /** A split board and one board with the same members. */
    private record Both(SplitBoard board, Leaderboard one, Layout layout, LongBinaryOperator draw) {
        static Both begin(Client client, String name, Layout layout, int shards, LongBinaryOperator draw) {
            Both both = new Both(new SplitBoard(client, "split:" + name, shards).withRetries(3),
                    new Leaderboard(client, "split:one:" + name), layout, draw);
            Options.Create options = new Options.Create().fields(layout.fields()).tag("country", 4).tag("clan", 2);
            both.board.create(options);
            both.one.create(options);
            return both;
        }

        long draw(long low, long high) {
            return draw.applyAsLong(low, high);
        }

        void write(int count) {
            for (int i = 0; i < count; i++) {
                String member = "m" + draw(0, MEMBERS - 1);
                if (draw(0, 9) == 0) {
                    same(one.remove(member), board.remove(member));
                    continue;
                }
                List<Object> values = new ArrayList<>();
                for (long[] limits : layout.values()) {
                    values.add(draw(limits[0], limits[1]));
                }
                String country = List.of("DE", "FR", "").get((int) draw(0, 2));
                Options.Submit submit = new Options.Submit().tag("country", country);
                Options.Add add = new Options.Add().tag("country", country);
                if (layout.hasTime()) {
                    long at = AT + 1000 * draw(0, 100000);
                    submit.at(at);
                    add.at(at);
                }
                board.submit(member, values, submit);
                one.add(List.of(Entry.of(member, values.toArray())), add);
            }
        }

        private static List<BoardRecord> slice(List<BoardRecord> all, long first, long count) {
            return all.subList((int) Math.min(first, all.size()), (int) Math.min(first + count, all.size()));
        }

        /** Asks the split board for all that one board with the same members knows. */
        void compare(SplitOptions group) {
            SplitOptions shown = new SplitOptions().as(group, "where", "wherenot").tags();
            List<BoardRecord> all = new ArrayList<>(one.range(0, -1, new Options.Range().as(group, "where", "wherenot").withkey().tags()));
            int shards = board.boards().size();
            all.sort((a, b) -> a.key().equals(b.key()) ? SplitBoard.shardOf(a.member(), shards) - SplitBoard.shardOf(b.member(), shards)
                    : b.key().compareTo(a.key()));
            Map<String, BoardRecord> places = new HashMap<>();
            for (int i = 0; i < all.size(); i++) {
                all.set(i, all.get(i).at(i));
                places.put(all.get(i).member(), all.get(i));
            }
            long count = all.size();
            same(all, collected(board.records(shown)));
            for (long place : new long[] {0, 3, count / 2, Math.max(0, count - 3), count, count + 7, draw(0, count), draw(0, count)}) {
                long size = draw(1, 60);
                same(slice(all, place, size), board.range(place, place + size - 1, shown));
            }
            same(slice(all, 0, 7), board.top(7, shown));
            same(new Page(3, (count + 8) / 9, count, slice(all, 18, 9)), board.page(3, 9, shown));
            List<String> members = new ArrayList<>(List.of("nobody"));
            for (int i = 0; i < 6; i++) {
                members.add("m" + draw(0, MEMBERS - 1));
            }
            slice(all, 0, 2).forEach(each -> members.add(each.member()));
            slice(all, Math.max(0, count - 2), 2).forEach(each -> members.add(each.member()));
            same(members.stream().map(places::get).toList(), board.get(members, shown));
            List<BoardRecord> shared = one.get(members, new Options.Get().as(group, "where", "wherenot").comp());
            for (int i = 0; i < members.size(); i++) {
                String member = members.get(i);
                same(places.get(member), board.rank(member, shown));
                BoardRecord together = board.rank(member, new SplitOptions().as(group, "where", "wherenot").comp());
                same(shared.get(i) == null ? null : shared.get(i).rank(), together == null ? null : together.rank());
                long size = draw(1, 12);
                same(places.containsKey(member)
                        ? slice(all, Math.max(0, Math.min(places.get(member).rank() - size / 2, count - size)), size)
                        : List.of(), board.around(member, size, shown));
            }
            for (long thousandths : new long[] {0, 1000, 1, draw(0, 1000), draw(0, 1000)}) {
                same(count == 0 ? null : all.get((int) (count - Math.max(1, (thousandths * count + 999) / 1000))),
                        board.quantile(List.of(BigDecimal.valueOf(thousandths, 3)), shown).get(0));
            }
            same(count, board.count(null, null, group));
            long edge = draw(21, 50);
            if (!layout.fields().contains("64")) { // beyond what edges, which are doubles, can tell apart
                same(one.hist(List.of(2, edge), new Options.Hist().as(group, "where", "wherenot")), board.hist(List.of(2, edge), group));
            }
            same(one.count("-inf", "(" + edge, new Options.Count().as(group, "where", "wherenot").byscore()),
                    board.count(null, "(" + edge, group));
            same(one.countBy(List.of("country"), new Options.CountBy().as(group, "where", "wherenot")),
                    board.countBy(List.of("country"), null, null, group));
        }

        void compareAll() {
            compare(new SplitOptions());
            compare(new SplitOptions().where("country", List.of("DE", "", "nobody").get((int) draw(0, 2))));
            compare(new SplitOptions().wherenot("country", "DE", "FR"));
        }
    }

    static void onceASplitBoardAnswersAsOneBoard(Client jedis, String name) {
        LongBinaryOperator draw = drawer();
        Client lettuce = lettuce(RedisURI.create("127.0.0.1", PORT), true);
        for (int number = 0; number < LAYOUTS.size(); number++) {
            for (int shards : number % 2 == 0 ? new int[] {1, 5} : new int[] {2, (int) draw.applyAsLong(3, 7)}) {
                Both both = Both.begin((number + shards) % 2 == 0 ? jedis : lettuce, number + ":" + shards, LAYOUTS.get(number), shards, draw);
                both.compare(new SplitOptions()); // empty
                for (int writes : new int[] {5, MEMBERS}) { // at first so few that most shards are empty
                    both.write(writes);
                    both.compareAll();
                }
            }
        }
    }

    static void clusterSplitBoard(Client client, String name) {
        Both both = Both.begin(client, name.replace(' ', '-'), LAYOUTS.get(5), 6, drawer());
        both.write(MEMBERS);
        both.compareAll();
        both.board.submit("m5", List.of(1, 1));
        long before = both.board.rounds();
        both.board.rank("m5");
        both.board.around("m5", 9);
        same(4L, both.board.rounds() - before);
        same(6L, both.board.delete());
    }

    static void onceShardsAreByCrc32ForEver(Client client, String name) {
        Map<String, Long> known = Map.of("ann", 3877663347L, "bob", 4123767104L, "zoë", 3349081364L, "", 0L, "123456789", 0xcbf43926L,
                "日本", 3350711756L, "user:4711", 3287937155L, "😀", 88978756L);
        known.forEach((member, crc) -> same((int) (crc % 7), SplitBoard.shardOf(member, 7)));
        Map.of("ann", 3, "bob", 0, "zoë", 4, "日本", 12, "user:4711", 3).forEach((member, shard) ->
                tell(client, "LB.ADD", "split:fixed-java:{" + shard + "}", "7", member));
        SplitBoard board = new SplitBoard(client, "split:fixed-java", 16);
        same(5, board.get(List.of("ann", "bob", "zoë", "日本", "user:4711"), new SplitOptions()).stream().filter(Objects::nonNull).toList().size());
    }

    static void onceWithinIsTheGroupOfTheMember(Client client, String name) {
        Both both = Both.begin(client, "within-java", LAYOUTS.get(0), 3, drawer());
        both.write(MEMBERS);
        for (int i = 0; i < 20; i++) {
            String member = "m" + i;
            Map<String, String> tags = both.one.tags(List.of(member)).get(0);
            String country = tags == null ? "" : tags.getOrDefault("country", "");
            for (String[] within : new String[][] {{"country"}, {"COUNTRY"}, {"country", "country"}}) {
                same(both.board.rank(member, new SplitOptions().where("country", country)), both.board.rank(member, new SplitOptions().within(within)));
                same(both.board.around(member, 3, new SplitOptions().where("country", country)),
                        both.board.around(member, 3, new SplitOptions().within(within)));
            }
            same(null, both.board.rank(member, new SplitOptions().within("country").wherenot("country", country)));
        }
        same(List.of(), both.board.around("nobody", 3, new SplitOptions().within("clan")));
    }

    static void onceCreateCompletesWhatWasInterrupted(Client client, String name) {
        tell(client, "LB.CREATE", "split:create-java:{1}", "FIELD", "score", "20");
        SplitBoard board = new SplitBoard(client, "split:create-java", 4);
        board.create(new Options.Create().fields("FIELD score 20"));
        same(4L, Replies.integer(client.send(List.of("EXISTS", board.boards().get(0).key(), board.boards().get(1).key(),
                board.boards().get(2).key(), board.boards().get(3).key()), 1)));
        fails("BUSYKEY", () -> board.create(new Options.Create().fields("FIELD score 20")));
        tell(client, "DEL", "split:create-java:{2}");
        fails("different layouts: FIELD score 20, FIELD score 21", () -> board.create(new Options.Create().fields("FIELD score 21")));
        tell(client, "DEL", "split:create-java:{2}");
        fails("ERR", () -> board.create(new Options.Create().fields("FIELD score 999")));
    }

    static void onceWritesGoToTheirShardsExactly(Client client, String name) {
        SplitBoard board = new SplitBoard(client, "split:exact-java", 5).withRetries(2);
        board.create(new Options.Create().fields("FIELD coins 64 SIGNED").tag("country", 2));
        List<String> members = List.of("ann", "bob", "kim", "leo", "zoe");
        same(5L, board.add(IntStream.range(0, 5).mapToObj(i -> Entry.of(members.get(i), 9007199254740993L + i)).toList(),
                new Options.Add().tag("country", "DE")));
        same("zoe leo kim bob ann", names(board.top(9)));
        same(9007199254740997L, board.top(1).get(0).score());
        same(false, board.submit("ann", 5, new Options.Submit().operator(Options.Operator.BEST)));
        same(true, board.submit("ann", 1L << 62, new Options.Submit().operator(Options.Operator.BEST)));
        same(0L, board.rank("ann").rank());
        same(true, board.tag("zoe", Map.of("country", "FR"), new Options.Tag()));
        same(List.of(new ValueCount(List.of("DE"), 4), new ValueCount(List.of("FR"), 1)),
                board.countBy(List.of("country"), null, null, new SplitOptions()));
        same(0L, board.add(List.of()));
        fails("ERR", () -> board.add(List.of(Entry.of("eva", 1), Entry.of("mia", "many"), Entry.of("tom", 3))));
        fails("no other boards", () -> board.submit("ann", 1, new Options.Submit().boards("other")));
        for (Leaderboard shard : board.boards()) {
            shard.roll(shard.key() + "@2026-11-16");
        }
        board.submit("ann", 1);
        same("ann", names(board.archive("2026-11-16").withRetries(1).top(1)));
        same(0L, board.rank("ann").rank());
    }

    static void onceWhatIsNoPlaceIsRefused(Client client, String name) {
        SplitBoard board = new SplitBoard(client, "split:none-java", 3);
        fails("stop: -1", () -> board.range(0, -1));
        fails("start: -1", () -> board.range(-1, 3));
        fails("count: 0", () -> board.top(0));
        fails("page: 0", () -> board.page(0, 5));
        fails("count: 0", () -> board.around("ann", 0));
        fails("shards: 0", () -> new SplitBoard(client, "split:none-java", 0));
        fails("within is an option", () -> board.range(0, 1, new SplitOptions().within("country")));
        fails("comp is an option", () -> board.around("ann", 1, new SplitOptions().comp()));
        fails("quantile: 1.1", () -> board.quantile(List.of(new BigDecimal("1.1"))));
        fails("quantile: -0.5", () -> board.quantile(List.of(new BigDecimal("-0.5"))));
        same(List.of(), board.range(5, 3));
        same(List.of(), board.top(3));
        same(null, board.rank("ann"));
        same(List.of(), board.get(List.of(), new SplitOptions()));
        same(List.of(), board.around("ann", 3));
        same(Arrays.asList(null, null), board.quantile(List.of(new BigDecimal("0.5"), new BigDecimal("1e-7"))));
        same(List.of(0L, 0L), board.hist(5, new SplitOptions()));
        for (int shards : new int[] {1, 3}) {
            SplitBoard filled = new SplitBoard(client, "split:ten-java:" + shards, shards);
            filled.add(IntStream.range(0, 10).mapToObj(i -> Entry.of("m" + i, i)).toList());
            same("m0 m0 m1 m2 m9", names(filled.quantile(List.of(new BigDecimal("1e-7"), new BigDecimal("0.1"),
                    new BigDecimal("0.100000000000000001"), new BigDecimal("0.3"), BigDecimal.ONE))));
        }
    }

    static void onceRoundsAreAsManyAsPromised(Client client, String name) {
        SplitBoard.Limits small = SplitBoard.limits;
        SplitBoard.limits = SplitBoard.USUAL;
        SplitBoard board = new SplitBoard(client, "split:rounds-java", 16);
        LongBinaryOperator draw = drawer();
        for (int begin = 0; begin < 20000; begin += 5000) {
            board.add(IntStream.range(begin, begin + 5000).mapToObj(i -> Entry.of("m" + i, draw.applyAsLong(0, 3000))).toList());
        }
        Function<Runnable, Long> rounds = run -> {
            long before = board.rounds();
            run.run();
            return board.rounds() - before;
        };
        same(List.of(1L, 2L, 2L, 2L, 1L), List.of(rounds.apply(() -> board.top(100)), rounds.apply(() -> board.rank("m5")),
                rounds.apply(() -> board.get(List.of("m5", "m6", "m7"), new SplitOptions())), rounds.apply(() -> board.around("m5", 5)),
                rounds.apply(board::count)));
        same(true, rounds.apply(() -> board.range(10000, 10049)) <= 3);
        SplitBoard.limits = small;
    }

    static void onceAPageIsRightWhileOthersWrite(Client client, String name) throws InterruptedException {
        // Others take the best away all the time: what is read is in order and without a gap at some moment, or BoardChanged.
        SplitBoard board = new SplitBoard(client, "split:pages-java", 5);
        LongBinaryOperator draw = drawer();
        board.add(IntStream.range(0, 2000).mapToObj(i -> Entry.of("m" + i, draw.applyAsLong(0, 999))).toList());
        boolean[] isOver = {false};
        Thread other = new Thread(() -> {
            for (int i = 0; i < 600; i++) {
                synchronized (isOver) {
                    if (isOver[0]) {
                        return;
                    }
                }
                tell(client, "ZPOPMAX", board.boards().get(i % 5).key(), "1");
            }
        });
        other.start();
        for (int i = 0; i < 20; i++) {
            List<BoardRecord> found = board.range(100, 119);
            same(IntStream.range(100, 120).mapToObj(Long::valueOf).toList(), found.stream().map(BoardRecord::rank).toList());
            List<BigInteger> keys = found.stream().map(BoardRecord::key).toList();
            List<BigInteger> sorted = new ArrayList<>(keys);
            sorted.sort(Collections.reverseOrder());
            same(sorted, keys);
        }
        synchronized (isOver) {
            isOver[0] = true;
        }
        other.join();
    }
}
