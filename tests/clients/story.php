<?php
// phpredis: one leaderboard's life, in the client's default way. story.php PORT
$board = 'php:board';
$is_redis = ($argv[2] ?? '') === 'redis';
$client = new Redis();
$client->connect('127.0.0.1', (int)$argv[1]);

function says(string $sentence, bool $claim): void {
    echo $claim ? 'ok' : 'not ok', ' phpredis ', phpversion('redis'), ": $sentence\n";
    if (!$claim) {
        exit(1);
    }
}

$client->del($board);
says('connects and pings', $client->ping() === true);
says('adds players', $client->zAdd($board, 50, 'zoe', 20, 'adam', 7, 'carl') === 3);
says('adds nobody twice', $client->zAdd($board, 50, 'zoe') === 0);
says('counts changes', $client->zAdd($board, ['CH'], 60, 'zoe', 1, 'bob') === 2);
says('increments', $client->zIncrBy($board, 40, 'zoe') === 100.0);
// This version's zAdd expects an integer behind INCR, which no server answers.
says('increments through ZADD',
    $client->rawCommand('ZADD', $board, 'INCR', '80', 'adam') === '100');
says('ranks the first at a score first', $client->zRevRange($board, 0, 1) === ['zoe', 'adam']);
if (!$is_redis) {
    $client->zAdd("$board:ties", 5, 'adam');
    $client->zAdd("$board:ties", 5, 'zoe');
    says('ranks by arrival whatever the names are',
        $client->zRevRange("$board:ties", 0, -1) === ['adam', 'zoe']);
    $client->del("$board:ties");
}
says('tells ranks', $client->zRevRank($board, 'zoe') === 0
    && $client->zRevRank($board, 'carl') === 2 && $client->zRevRank($board, 'nobody') === false);
says('tells scores', $client->zScore($board, 'zoe') === 100.0
    && $client->zScore($board, 'nobody') === false);
says('lists the top with scores',
    $client->zRevRange($board, 0, 1, true) === ['zoe' => 100.0, 'adam' => 100.0]);
says('lists a page', $client->zRevRange($board, 2, 3) === ['carl', 'bob']);
says('lists by score',
    $client->zRangeByScore($board, '(1', '+inf', ['limit' => [0, 1]]) === ['carl']);
says('counts by score', $client->zCount($board, '7', 'inf') === 3);
if (!$is_redis) {
    // This client sends doubles with 17 digits: 0.1 as 0.10000000000000001.
    $client->rawCommand('LB.CREATE', "$board:money", 'FIELD', 'score', '40', 'SIGNED', 'SCALE', '2');
    says('writes decimals', $client->zAdd("$board:money", 0.1, 'zoe', 8.14, 'ann', -2.67, 'bob') === 3
        && $client->rawCommand('ZSCORE', "$board:money", 'zoe') === '0.1');
    says('increments by decimals', $client->zIncrBy("$board:money", 0.2, 'zoe') === 0.3
        && $client->rawCommand('ZSCORE', "$board:money", 'zoe') === '0.3');
    says('counts between decimals', $client->zCount("$board:money", '0.29999999999999999',
        '8.1400000000000006') === 2);
    $client->del("$board:money");
    $client->rawCommand('LB.CREATE', "$board:times", 'LAYOUT', 'seconds');
    $now = microtime(true);
    says('schedules by time', $client->zAdd("$board:times", $now, 'job') === 1
        && $client->zScore("$board:times", 'job') === $now);
    $client->del("$board:times");
}
says('keeps big scores exact', $client->zAdd($board, 4294967295, 'max') === 1
    && $client->zScore($board, 'max') === 4294967295.0);
says('pops the best', $client->zPopMax($board) === ['max' => 4294967295.0]);
says('pops the last', $client->zPopMin($board, 1) === ['bob' => 1.0]);
says('removes', $client->zRem($board, 'carl', 'nobody') === 1 && $client->zCard($board) === 2);
$pipeline = $client->multi(Redis::PIPELINE);
for ($i = 0; $i < 1000; $i++) {
    $pipeline->zAdd($board, $i + 1000, "player:$i");
}
$answers = $pipeline->zCard($board)->exec();
says('pipelines', $answers === [...array_fill(0, 1000, 1), 1002]);
$client->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
$seen = [];
$cursor = null;
while (($page = $client->zScan($board, $cursor, 'player:*', 100)) !== false) {
    $seen += $page;
}
says('scans members', count($seen) === 1000 && $seen['player:7'] === 1007.0);
$keys = [];
$cursor = null;
while (($page = $client->scan($cursor, 'php:*')) !== false) {
    $keys = array_merge($keys, $page);
}
says('scans keys', in_array($board, $keys, true));
says('reports errors', $client->rawCommand('ZADD', $board, 'many', 'x') === false
    && str_starts_with($client->getLastError(), 'ERR value is not a valid float'));
$client->clearLastError();
$answers = $client->multi(Redis::PIPELINE)->zAdd($board, 1, 'late')
    ->rawCommand('ZADD', $board, 'nan', 'x')->zCard($board)->exec();
says('keeps a pipeline in step behind an error', $answers === [1, false, 1003]);
says('renames', $client->rename($board, "$board:old") && $client->exists($board) === 0
    && $client->type("$board:old") === Redis::REDIS_ZSET);
says('expires', $client->pExpire("$board:old", 60) && $client->pttl("$board:old") <= 60);
usleep(150000);
says('has expired', $client->exists("$board:old") === 0);
says('names itself', $client->client('setname', 'php') && $client->client('getname') === 'php');
says('reads INFO', $client->info('server')['redis_mode'] === 'standalone');
says('reads CONFIG', $client->config('GET', 'databases') === ['databases' => '16']);
