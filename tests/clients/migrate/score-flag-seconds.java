import java.util.*;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.util.SafeEncoder;

class Story {
    static final long END = 1861891200; // 2029-01-01T00:00:00+08:00
    final Jedis redis = new Jedis("localhost", 6379);

// the page's lines

    public static void main(String[] none) {
        var story = new Story();
        story.add("contest", "ann", 200);
        story.add("contest", "bob", 150);
        story.add("contest", "cid", 300);
        System.out.println(story.top("contest", 10)); // [cid 300 0, ann 200 0, bob 150 0]
        story.add("contest", "bob", 50);
        story.pay("contest", "bob");
        System.out.println(story.top("contest", 10)); // [cid 300 0, bob 200 1, ann 200 0]
    }
}
