<?php
// One client of phpredis that writes down what it is answered: see redis_py.py beside this.
const REGISTERS = 6, COUNTERS = 6, TIMEOUT_S = 1.0, PAUSE_AFTER_ERROR_US = 20000;
const REFUSALS = ["READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS", "MISCONF", "OOM"];
const OPERATIONS = ["set", "set", "set", "get", "get", "inc", "inc", "read", "read", "tie", "tie"];
const READS = ["get", "read"];

[, $first, , $pace, $kind, $list] = $argv;
$hosts = explode(",", $list);
$number = (int)$first;
$count = 0;
$db = null;
$operations = OPERATIONS;

/** A connection to the master, as the first Sentinel says that answers. */
function open_master(): Redis
{
    global $kind, $hosts;
    $address = [$hosts[0], 6379];
    if ($kind === "sentinel") {
        shuffle($hosts);
        $address = false;
        foreach ($hosts as $host) {
            try {
                $sentinel = new RedisSentinel($host, 26379, TIMEOUT_S / 2, null, 0, TIMEOUT_S / 2);
                $address = $sentinel->getMasterAddrByName("leaderboard");
            } catch (RedisException $error) {
                continue;
            }
            if ($address) {
                break;
            }
        }
        if (!$address) {
            throw new RedisException("LOADING no Sentinel answers");
        }
    }
    $db = new Redis();
    if (!@$db->connect($address[0], (int)$address[1], TIMEOUT_S, null, 0, TIMEOUT_S)) {
        throw new RedisException("LOADING nobody listens");
    }
    $db->setOption(Redis::OPT_MAX_RETRIES, 0);
    return $db;
}

function send(Redis $db, string $prefix, string $operation, string $member, int $argument): string
{
    $db->clearLastError();
    $answer = match ($operation) {
        "set" => $db->zAdd("$prefix:set", $argument, $member),
        "tie" => $db->zAdd("$prefix:tie", ["NX"], 0, $member),
        "inc" => $db->zIncrBy("$prefix:inc", 1, $member),
        "get" => $db->zScore("$prefix:set", $member),
        "read" => $db->zScore("$prefix:inc", $member),
    };
    if ($db->getLastError() !== null) {
        throw new RedisException($db->getLastError());
    }
    return $operation === "set" || $operation === "tie" || $answer === false ? "-" : (string)(int)$answer;
}

function perform(string $prefix): bool
{
    global $db, $number, $count, $operations;
    $operation = $operations[array_rand($operations)];
    $count++;
    $argument = $number * 10000000 + $count;
    $member = $operation === "tie" ? "$number:$count"
        : "m" . random_int(0, (in_array($operation, ["inc", "read"]) ? COUNTERS : REGISTERS) - 1);
    $outcome = "ok";
    $answer = "-";
    $start = hrtime(true);
    $is_sent = false;
    try {
        if ($db === null) {
            $db = open_master();
        }
        $is_sent = true;
        $answer = send($db, $prefix, $operation, $member, $argument);
    } catch (RedisException $error) {
        $is_refused = !$is_sent;
        foreach (REFUSALS as $word) {
            $is_refused = $is_refused || str_starts_with($error->getMessage(), $word);
        }
        $outcome = $is_refused ? "refused" : "unknown";
        $db = null; // and ask again who the master is
    }
    $end = hrtime(true);
    echo "$number $operation $member $argument $start $end $outcome $answer\n";
    return $outcome === "ok";
}

stream_set_blocking(STDIN, false);
$prefix = null;
while (true) {
    $ready = [STDIN];
    $none = null;
    if (stream_select($ready, $none, $none, $prefix === null ? 1 : 0, 0) > 0) {
        $line = fgets(STDIN);
        if ($line === false && feof(STDIN)) {
            break;
        }
        $words = explode(" ", trim((string)$line));
        if ($words[0] === "go") {
            $prefix = $words[1];
        } elseif ($words[0] === "reads" || $words[0] === "all") {
            $operations = $words[0] === "reads" ? READS : OPERATIONS;
        } elseif ($words[0] === "stop") {
            $prefix = null;
            echo "stopped\n";
        }
    }
    if ($prefix !== null) {
        $began = hrtime(true);
        if (!perform($prefix)) {
            usleep(PAUSE_AFTER_ERROR_US);
        }
        $pause = 1e6 / $pace * (0.5 + mt_rand() / mt_getrandmax()) - (hrtime(true) - $began) / 1000;
        usleep((int)max(0, $pause));
    }
}
