package leaderboard;

import java.util.List;

/** The client that a program has: {@link LettuceClient}, {@link JedisClient}, or one of your own. */
public interface Client {
    /**
     * Sends a command, and waits for its reply: null, a Long, Double, Boolean, BigInteger, String, byte[] (UTF-8), a List or a
     * Map of these.
     *
     * @param words the command and its arguments
     * @param keyAt the place of the key among the words, by which a cluster finds the node; 0: it has none
     */
    Object send(List<String> words, int keyAt);

    /** A client for each node that has keys, in a cluster its masters. */
    List<Client> nodes();

    /** The text of the server's reply, if the error is one; null: the reply was lost. */
    String replied(RuntimeException error);
}
