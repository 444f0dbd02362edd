import java.util.*;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.*;

class Story {
    final StringRedisTemplate redis;

    Story(StringRedisTemplate redis) {
        this.redis = redis;
    }

// the page's lines

    public static void main(String[] none) throws InterruptedException {
        var factory = new LettuceConnectionFactory("localhost", 6379);
        factory.afterPropertiesSet();
        factory.start();
        var week = new Story(new StringRedisTemplate(factory));
        week.add("week:47", "zoe", 5);
        Thread.sleep(5);
        week.add("week:47", "ann", 10);
        Thread.sleep(5);
        week.add("week:47", "bob", 7);
        Thread.sleep(5);
        week.add("week:47", "zoe", 5);
        System.out.println(week.top("week:47", 10)); // [ann 10, zoe 10, bob 7]
        System.out.println(week.top("week:47", 1)); // [ann 10]
        factory.destroy();
    }
}
