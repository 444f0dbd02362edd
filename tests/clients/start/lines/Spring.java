import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import java.util.*;
import org.springframework.data.redis.connection.lettuce.*;
import org.springframework.data.redis.core.StringRedisTemplate;

class Story {
    public static void main(String[] none) {
        var factory = new LettuceConnectionFactory("localhost", 6379);
        factory.afterPropertiesSet();
        factory.start();
        var redis = new StringRedisTemplate(factory);
// the page's lines
        for (var each : top) {
            System.out.println(each.getValue() + " " + each.getScore());
        }
        var words = new StringJoiner(" ");
        record.forEach(word -> words.add(String.valueOf(word)));
        System.out.println(words);
        factory.destroy();
    }
}
