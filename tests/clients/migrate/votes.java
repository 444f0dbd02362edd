import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import java.util.*;
import java.util.concurrent.*;
import org.springframework.data.redis.connection.lettuce.*;
import org.springframework.data.redis.core.*;

class Story {
    static final long END = 1804262399000L; // 2027-03-05T23:59:59+08:00
    static LettuceConnectionFactory factory;
    final StringRedisTemplate redis;

    Story(StringRedisTemplate redis) {
        this.redis = redis;
    }

// the page's lines

    List<String> top(int count) {
        var lines = new ArrayList<String>();
        for (var candidate : redis.opsForZSet().reverseRange("poll", 0, count - 1)) {
            lines.add(candidate + " " + points("poll", candidate));
        }
        return lines;
    }

    /** Rank from 1, -1 if absent: the same before and after. */
    long rank(String candidate) {
        Long rank = redis.opsForZSet().reverseRank("poll", candidate);
        return rank == null ? -1 : rank + 1;
    }

    /** How many of 200 votes by 8 voters at once have got true; all of those count. */
    int crowd(String candidate) throws Exception {
        var voters = Executors.newFixedThreadPool(8);
        var ballots = new ArrayList<Callable<Boolean>>();
        for (int i = 0; i < 200; i++) {
            ballots.add(() -> vote("poll", candidate));
        }
        int counted = 0;
        for (var ballot : voters.invokeAll(ballots)) {
            counted += ballot.get() ? 1 : 0;
        }
        voters.shutdown();
        return counted;
    }

    public static void main(String[] none) throws Exception {
        factory = new LettuceConnectionFactory("localhost", 6379);
        factory.afterPropertiesSet();
        factory.start();
        var poll = new Story(new StringRedisTemplate(factory));
        for (var candidate : List.of("zoe", "ann", "ann", "bob", "zoe")) {
            System.out.println(poll.vote("poll", candidate)); // true
            //                                                   true
            //                                                   true
            //                                                   true
            //                                                   true
            Thread.sleep(5);
        }
        System.out.println(poll.top(10)); // [ann 2, zoe 2, bob 1]
        System.out.println(poll.points("poll", "ann") + " " + poll.points("poll", "nobody")); // 2 0
        System.out.println(poll.rank("zoe") + " " + poll.rank("nobody")); // 2 -1
        long ago = System.currentTimeMillis() - poll.reached("poll", "zoe");
        System.out.println(ago >= 0 && ago < 60000); // true
        int counted = poll.crowd("eve");
        System.out.println(counted > 0 && poll.points("poll", "eve") == counted); // true
        factory.destroy();
    }
}
