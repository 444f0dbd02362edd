package leaderboard;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.BaseRedisCommands;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;

/** Lettuce: a connection to a server, one that follows Sentinel, or one to a cluster. */
public final class LettuceClient implements Client {
    private final BaseRedisCommands<String, String> commands;
    private final Supplier<List<Client>> nodes;

    public LettuceClient(StatefulRedisConnection<String, String> connection) {
        commands = connection.sync();
        nodes = () -> List.of(this);
    }

    public LettuceClient(StatefulRedisClusterConnection<String, String> connection) {
        commands = connection.sync();
        nodes = () -> {
            List<Client> found = new ArrayList<>();
            for (RedisClusterNode node : connection.getPartitions()) {
                if (node.getRole().isUpstream() && !node.getSlots().isEmpty()) {
                    found.add(new LettuceClient(connection.getConnection(node.getNodeId())));
                }
            }
            return found;
        };
    }

    private record Keyword(String word) implements ProtocolKeyword {
        @Override
        public byte[] getBytes() {
            return word.getBytes(StandardCharsets.US_ASCII);
        }

        @Override
        public String toString() {
            return word;
        }
    }

    /** Any reply. Maps are lists of names and values. */
    private static final class Reply extends CommandOutput<String, String, Object> {
        /** A list that is being read, and how many of its elements are to come. */
        private static final class Part {
            final List<Object> list = new ArrayList<>();
            int left;
        }

        private final Deque<Part> open = new ArrayDeque<>();

        Reply() {
            super(StringCodec.UTF8, null);
        }

        private void add(Object value) {
            Object each = value;
            for (Part part = open.peek(); part != null; part = open.peek()) {
                part.list.add(each);
                if (--part.left > 0) {
                    return;
                }
                each = open.pop().list;
            }
            output = each;
        }

        @Override
        public void multi(int count) {
            if (count <= 0) {
                add(count < 0 ? null : new ArrayList<>());
                return;
            }
            Part part = new Part();
            part.left = count;
            open.push(part);
        }

        @Override
        public void set(long number) {
            add(number);
        }

        @Override
        public void set(double number) {
            add(number);
        }

        @Override
        public void set(boolean value) {
            add(value);
        }

        @Override
        public void set(ByteBuffer bytes) {
            add(bytes == null ? null : StringCodec.UTF8.decodeValue(bytes));
        }

        @Override
        public void setSingle(ByteBuffer bytes) {
            set(bytes);
        }

        @Override
        public void setBigNumber(ByteBuffer bytes) {
            set(bytes);
        }
    }

    @Override
    public Object send(List<String> words, int keyAt) {
        CommandArgs<String, String> rest = new CommandArgs<>(StringCodec.UTF8);
        for (int i = 1; i < words.size(); i++) {
            if (i == keyAt) {
                rest.addKey(words.get(i));
            } else {
                rest.add(words.get(i));
            }
        }
        return commands.dispatch(new Keyword(words.get(0)), new Reply(), rest);
    }

    @Override
    public List<Client> nodes() {
        return nodes.get();
    }

    @Override
    public String replied(RuntimeException error) {
        return error instanceof RedisCommandExecutionException ? error.getMessage() : null;
    }
}
