import java.util.*;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.resps.Tuple;
import redis.clients.jedis.util.SafeEncoder;

class Story {
    public static void main(String[] none) {
        try (var redis = new Jedis("localhost", 6379)) {
// the page's lines
            for (Object each : top) {
                System.out.println(each instanceof Tuple pair
                        ? pair.getElement() + " " + pair.getScore() : told((List<?>) each));
            }
            System.out.println(told(record));
        }
    }

    static String told(List<?> record) {
        var words = new StringJoiner(" ");
        record.forEach(word -> words.add(String.valueOf(word)));
        return words.toString();
    }
}
