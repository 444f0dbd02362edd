/* hiredis: one leaderboard's life, in the client's default way. story_hiredis PORT [redis] */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static redisContext *client;

static void says(const char *sentence, bool claim) {
    printf("%s hiredis %d.%d.%d: %s\n", claim ? "ok" : "not ok", HIREDIS_MAJOR, HIREDIS_MINOR,
           HIREDIS_PATCH, sentence);
    if (!claim) {
        exit(1);
    }
}

/* One reply as text: elements of an array are parted by spaces. */
static void render(const redisReply *reply, char *out, size_t size) {
    size_t used = strlen(out);
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        snprintf(out + used, size - used, ":%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        snprintf(out + used, size - used, "nil");
        break;
    case REDIS_REPLY_ERROR:
        snprintf(out + used, size - used, "-%s", reply->str);
        break;
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < reply->elements; i++) {
            render(reply->element[i], out, size);
            if (i + 1 < reply->elements) {
                snprintf(out + strlen(out), size - strlen(out), " ");
            }
        }
        break;
    default:
        snprintf(out + used, size - used, "%s", reply->str);
    }
}

static bool is_reply(redisReply *reply, const char *expected) {
    static char text[65536];
    text[0] = '\0';
    if (reply) {
        render(reply, text, sizeof text);
        freeReplyObject(reply);
    }
    if (strncmp(text, expected, strlen(expected)) != 0 ||
        (expected[0] != '-' && strcmp(text, expected) != 0)) {
        printf("expected \"%s\", got \"%s\"\n", expected, text);
        return false;
    }
    return true;
}

static bool answers(const char *expected, const char *format, ...) {
    va_list values;
    va_start(values, format);
    redisReply *reply = redisvCommand(client, format, values);
    va_end(values);
    return is_reply(reply, expected);
}

static bool pipelines(void) {
    for (int i = 0; i < 1000; i++) {
        redisAppendCommand(client, "ZADD c:board %d player:%d", 1000 + i, i);
    }
    redisAppendCommand(client, "ZADD c:board nan x");
    redisAppendCommand(client, "ZCARD c:board");
    for (int i = 0; i < 1002; i++) {
        void *reply = NULL;
        const char *expected = i < 1000 ? ":1" : i == 1000 ? "-ERR" : ":1002";
        if (redisGetReply(client, &reply) != REDIS_OK || !is_reply(reply, expected)) {
            return false;
        }
    }
    return true;
}

static bool scans(void) {
    long long seen = 0;
    char cursor[32] = "0";
    do {
        redisReply *page =
            redisCommand(client, "ZSCAN c:board %s MATCH player:* COUNT 100", cursor);
        if (!page || page->type != REDIS_REPLY_ARRAY) {
            return false;
        }
        seen += (long long)page->element[1]->elements / 2;
        snprintf(cursor, sizeof cursor, "%s", page->element[0]->str);
        freeReplyObject(page);
    } while (strcmp(cursor, "0") != 0);
    return seen == 1000;
}

int main(int argc, char **argv) {
    bool is_redis = argc > 2 && strcmp(argv[2], "redis") == 0;
    client = redisConnect("127.0.0.1", argc > 1 ? atoi(argv[1]) : 0);
    if (!client || client->err) {
        says("connects", false);
    }
    says("connects and pings", answers("PONG", "PING"));
    says("adds players", answers(":3", "ZADD c:board 50 zoe 20 adam 7 carl"));
    says("adds nobody twice", answers(":0", "ZADD c:board 50 zoe"));
    says("counts changes", answers(":2", "ZADD c:board CH 60 zoe 1 bob"));
    says("increments", answers("100", "ZINCRBY c:board %d %s", 40, "zoe"));
    says("increments through ZADD", answers("100", "ZADD c:board INCR 80 adam"));
    says("ranks the first at a score first", answers("zoe adam", "ZREVRANGE c:board 0 1"));
    if (!is_redis) {
        says("ranks by arrival whatever the names are",
             answers(":1", "ZADD c:ties 5 adam") && answers(":1", "ZADD c:ties 5 zoe") &&
                 answers("adam zoe", "ZREVRANGE c:ties 0 -1") && answers(":1", "DEL c:ties"));
    }
    says("tells ranks",
         answers(":2", "ZREVRANK c:board carl") && answers("nil", "ZREVRANK c:board nobody"));
    says("tells scores", answers("100 nil", "ZMSCORE c:board zoe nobody"));
    says("lists the top with scores",
         answers("zoe 100 adam 100", "ZREVRANGE c:board 0 1 WITHSCORES"));
    says("lists a page", answers("carl bob", "ZREVRANGE c:board 2 3"));
    says("lists by score", answers("carl", "ZRANGEBYSCORE c:board (1 +inf LIMIT 0 1"));
    says("keeps big scores exact", answers(":1", "ZADD c:board 4294967295 max") &&
                                       answers("4294967295", "ZSCORE c:board max"));
    says("pops the best", answers("max 4294967295", "ZPOPMAX c:board"));
    says("pops the last", answers("bob 1", "ZPOPMIN c:board 1"));
    says("takes binary names", answers(":1", "ZADD c:board 1 %b", "a\0\r\nb", (size_t)5) &&
                                   answers("1", "ZSCORE c:board %b", "a\0\r\nb", (size_t)5));
    says("removes", answers(":2", "ZREM c:board carl nobody %b", "a\0\r\nb", (size_t)5));
    says("pipelines, in step behind an error", pipelines());
    says("scans members", scans());
    says("reports errors", answers("-ERR value is not a valid float", "ZADD c:board many x") &&
                               answers("-ERR wrong number of arguments", "ZADD c:board") &&
                               answers("-ERR unknown command", "NONSENSE"));
    says("renames", answers("OK", "RENAME c:board c:old") && answers(":0", "EXISTS c:board") &&
                        answers("zset", "TYPE c:old"));
    says("expires", answers(":1", "PEXPIRE c:old 60"));
    usleep(150000);
    says("has expired", answers(":0", "EXISTS c:old"));
    redisFree(client);
    return 0;
}
