package leaderboard;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.util.KeyValue;

/** Jedis: a RedisClient, a RedisSentinelClient or a RedisClusterClient. */
public final class JedisClient implements Client {
    private final Function<CommandArguments, Object> execute;
    private final Supplier<List<Client>> nodes;

    public JedisClient(UnifiedJedis jedis) {
        execute = jedis::executeCommand;
        nodes = jedis instanceof RedisClusterClient cluster ? () -> nodesOf(cluster) : () -> List.of(this);
    }

    /** The node that has the slot. */
    private JedisClient(RedisClusterClient cluster, int slot) {
        execute = command -> {
            try (Connection connection = cluster.getConnectionFromSlot(slot)) {
                return connection.executeCommand(command);
            }
        };
        nodes = () -> List.of(this);
    }

    private static List<Client> nodesOf(RedisClusterClient cluster) {
        // Rows of a range of slots, and its nodes, of which the first is the master: [address, port, id, ...].
        Object reply = cluster.executeCommand(new CommandArguments(keyword("CLUSTER")).add("SLOTS"));
        Map<String, Client> found = new LinkedHashMap<>();
        for (Object row : Replies.row(plain(reply), 0)) {
            List<?> range = Replies.row(row, 3);
            String id = Replies.text(Replies.row(range.get(2), 3).get(2));
            found.computeIfAbsent(id, each -> new JedisClient(cluster, (int) Replies.integer(range.get(0))));
        }
        return new ArrayList<>(found.values());
    }

    private static ProtocolCommand keyword(String name) {
        byte[] bytes = name.getBytes(StandardCharsets.US_ASCII);
        return () -> bytes;
    }

    @Override
    public Object send(List<String> words, int keyAt) {
        CommandArguments command = new CommandArguments(keyword(words.get(0)));
        for (int i = 1; i < words.size(); i++) {
            if (i == keyAt) {
                command.key(words.get(i));
            } else {
                command.add(words.get(i));
            }
        }
        return plain(execute.apply(command));
    }

    /** Maps of RESP3, which Jedis gives as lists of names and values. */
    private static Object plain(Object reply) {
        if (!(reply instanceof List<?> list)) {
            return reply;
        }
        if (!list.isEmpty() && list.get(0) instanceof KeyValue<?, ?>) {
            Map<Object, Object> map = new LinkedHashMap<>();
            for (Object each : list) {
                KeyValue<?, ?> pair = (KeyValue<?, ?>) each;
                map.put(Replies.text(pair.getKey()), plain(pair.getValue()));
            }
            return map;
        }
        List<Object> found = new ArrayList<>(list.size());
        for (Object each : list) {
            found.add(plain(each));
        }
        return found;
    }

    @Override
    public List<Client> nodes() {
        return nodes.get();
    }

    @Override
    public String replied(RuntimeException error) {
        return error instanceof JedisDataException ? error.getMessage() : null;
    }
}
