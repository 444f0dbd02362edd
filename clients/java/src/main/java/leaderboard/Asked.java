package leaderboard;

import java.math.BigInteger;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads records, by what they were asked for. options null: nothing. */
record Asked(Given<?> options, Request request) {
    private boolean has(String name) {
        return options != null && options.get(name) != null;
    }

    /** [member, rank, time, values ..., percent, key, tags, data, rank on another board], the last five if they were asked for. */
    private BoardRecord recordOf(Object reply) {
        List<Object> rest = new ArrayList<>(Replies.row(reply, 4));
        Long since = has("since") ? Replies.orNull(pop(rest), Replies::integer) : null;
        Map<String, String> data = has("data") ? Replies.orNull(pop(rest), this::dataOf) : null;
        Map<String, String> tags = has("tags") ? Replies.orNull(pop(rest), Replies::texts) : null;
        BigInteger key = has("withkey") ? Replies.orNull(pop(rest), Replies::key) : null;
        Double percent = has("pct") ? Replies.orNull(pop(rest), each -> Replies.decimal(each).doubleValue()) : null;
        Replies.row(rest, 4);
        Instant time = Replies.orNull(rest.get(2), Replies::moment);
        return new BoardRecord(Replies.text(rest.get(0)), Replies.integer(rest.get(1)), time,
                Replies.list(rest.subList(3, rest.size()), Replies::text), percent, key, tags, data, since);
    }

    private static Object pop(List<Object> rest) {
        return rest.remove(rest.size() - 1);
    }

    /** All of a hash, or the fields asked for that it has. */
    private Map<String, String> dataOf(Object reply) {
        if (!has("fields")) {
            return Replies.texts(reply);
        }
        List<?> names = (List<?>) options.get("fields");
        List<?> values = Replies.row(reply, names.size());
        Map<String, String> found = new LinkedHashMap<>();
        for (int i = 0; i < names.size(); i++) {
            if (values.get(i) != null) {
                found.put((String) names.get(i), Replies.text(values.get(i)));
            }
        }
        return found;
    }

    List<BoardRecord> records(Object reply) {
        return Replies.list(reply, this::recordOf);
    }

    List<BoardRecord> recordsOrNone(Object reply) {
        return records(reply);
    }

    private static boolean repeated(List<?> row, int place) {
        return row.size() > place && row.get(place) != null && Replies.flag(row.get(place));
    }

    List<Placed> placed(Object reply) {
        return Replies.list(reply, each -> {
            List<?> row = Replies.row(each, 2);
            return new Placed(Replies.orNull(row.get(0), this::recordOf), Replies.orNull(row.get(1), Replies::integer), repeated(row, 2));
        });
    }

    List<Result> results(Object reply) {
        List<?> all = Replies.row(reply, request.keys.size());
        List<Result> found = new ArrayList<>();
        for (int i = 0; i < request.keys.size(); i++) {
            List<?> row = Replies.row(all.get(i), 3);
            found.add(new Result(request.keys.get(i), Replies.orNull(row.get(0), this::recordOf),
                    Replies.orNull(row.get(1), Replies::integer), Replies.flag(row.get(2)), repeated(row, 3)));
        }
        return found;
    }

    List<NamedRecord> boardRecords(Object reply) {
        return Replies.list(reply, each ->
                new NamedRecord(Replies.text(Replies.row(each, 2).get(0)), recordOf(Replies.row(each, 2).get(1))));
    }

    LeaguePlace leaguePlace(Object reply) {
        if (reply == null || Replies.row(reply, 1).get(0) == null) {
            return null;
        }
        List<?> row = Replies.row(reply, 4);
        // The last one is a word of LB.LEAGUE GET, or what withrepeat asks LB.LEAGUE ADD for.
        Object last = row.size() > 4 ? row.get(4) : null;
        String word = last == null || last instanceof Boolean ? "" : Replies.text(last);
        boolean isOutlook = List.of("up", "stay", "down").contains(word);
        return new LeaguePlace(Replies.integer(row.get(0)), Replies.orNull(row.get(1), Replies::integer),
                Replies.orNull(row.get(2), this::recordOf), Replies.orNull(row.get(3), Replies::integer), isOutlook ? word : null,
                !isOutlook && repeated(row, 4));
    }
}
