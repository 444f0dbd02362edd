package leaderboard;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.function.Function;

/** Sends requests, again where that does no harm. */
abstract class Sending {
    /** For what is asked of many nodes at once. */
    private static final Executor THREADS = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "leaderboard");
        thread.setDaemon(true);
        return thread;
    });

    abstract Client client();

    abstract int retries();

    /** The board's key. */
    public abstract String key();

    /** The same board by another client. */
    abstract Sending by(Client client);

    /** The id of a result, drawn if it may have to be sent again. LB.ADD PACKED takes none. */
    final String idOf(Object own, boolean mayHave) {
        return own == null && mayHave && retries() > 0 ? UUID.randomUUID().toString() : (String) own;
    }

    private boolean mayBeSentAgain(RuntimeException error) {
        String replied = client().replied(error);
        return replied == null || Shapes.PASSING.stream().anyMatch(each -> replied.startsWith(each + " "));
    }

    private Object send(Request r) {
        int retries = r.isRead || r.id != null ? retries() : 0;
        for (long pauseMs = Shapes.PAUSE_MIN_MS;; pauseMs = Math.min(2 * pauseMs, Shapes.PAUSE_MAX_MS)) {
            try {
                return client().send(r.words, r.keyAt);
            } catch (RuntimeException error) {
                if (retries-- == 0 || !mayBeSentAgain(error)) {
                    throw error;
                }
                try {
                    Thread.sleep(pauseMs);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                    throw error;
                }
            }
        }
    }

    final <T> T on(Request r, Function<Object, T> read) {
        return read.apply(send(r));
    }

    final void create(Request r, boolean mayExist) {
        try {
            send(r);
        } catch (RuntimeException error) {
            String replied = client().replied(error);
            if (!mayExist || replied == null || !replied.startsWith("BUSYKEY")) {
                throw error;
            }
        }
    }

    final <T> T onAll(Request r, Function<Object, T> read, Function<List<T>, T> sum) {
        return sum.apply(together(client().nodes(), node -> by(node).on(r, read)));
    }

    final <T> T onOne(Request r, Function<Object, T> read) {
        List<Client> nodes = client().nodes();
        if (nodes.size() != 1) {
            throw new IllegalStateException("each node of a cluster has a cursor of its own: use boards() or banned()");
        }
        return by(nodes.get(0)).on(r, read);
    }

    /** Calls all at once. An error is that of the first one that failed, when all have ended. */
    static <F, T> List<T> together(List<F> from, Function<F, T> call) {
        if (from.size() == 1) {
            return Collections.singletonList(call.apply(from.get(0)));
        }
        List<CompletableFuture<T>> all = new ArrayList<>();
        for (F each : from) {
            all.add(CompletableFuture.supplyAsync(() -> call.apply(each), THREADS));
        }
        RuntimeException failed = null;
        List<T> found = new ArrayList<>();
        for (CompletableFuture<T> each : all) {
            try {
                found.add(each.join());
            } catch (CompletionException error) {
                RuntimeException cause = error.getCause() instanceof RuntimeException own ? own : error;
                failed = failed == null ? cause : failed;
            }
        }
        if (failed != null) {
            throw failed;
        }
        return found;
    }
}
