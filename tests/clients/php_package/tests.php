<?php

// Tests of clients/php: each function for all clients of a server ("every"), for those of a cluster ("cluster"), or alone
// ("once"). The environment's PLACES has the ports. The last line is "N passed, M failed".

declare(strict_types=1);

use Leaderboard\{Commands, Leaderboard, PhpRedisClient, PredisClient, Record, ReplyError};

spl_autoload_register(function (string $name) {
    if (str_starts_with($name, 'Leaderboard\\')) {
        require getenv('CLIENT') . '/src/' . substr($name, strlen('Leaderboard\\')) . '.php';
    }
});

// Every warning is an error, but of Predis 1.1, which is older than PHP 8.2.
error_reporting(E_ALL);
set_error_handler(function (int $level, string $text, string $file, int $line) {
    if ($level === E_DEPRECATED && str_contains($file, '/Predis/')) {
        return true;
    }
    throw new ErrorException($text, 0, $level, $file, $line);
});

require 'Predis/autoload.php';

$places = json_decode(getenv('PLACES'), true, 512, JSON_THROW_ON_ERROR);

function phpRedis(int $port): PhpRedisClient
{
    $redis = new Redis();
    $redis->connect('127.0.0.1', $port);
    return new PhpRedisClient($redis);
}

function predis(int $port, bool $throws = true): PredisClient
{
    return new PredisClient(new Predis\Client("tcp://127.0.0.1:$port", ['exceptions' => $throws]));
}

$singles = [
    'phpredis' => phpRedis($places['port']),
    'Predis' => predis($places['port']),
    'Predis without exceptions' => predis($places['port'], false),
    'Predis and Sentinel' => new PredisClient(new Predis\Client(
        ["tcp://127.0.0.1:{$places['sentinel']}"],
        ['replication' => 'sentinel', 'service' => 'boards']
    )),
];
$nodes = array_map(fn (int $port) => "127.0.0.1:$port", $places['ports']);
$clusters = [
    'phpredis' => new PhpRedisClient(new RedisCluster(null, $nodes)),
    'Predis' => new PredisClient(new Predis\Client(array_map(fn (string $node) => "tcp://$node", $nodes), ['cluster' => 'redis'])),
];

function same(mixed $wanted, mixed $found): void
{
    if (var_export($wanted, true) !== var_export($found, true)) {
        throw new Exception('found ' . var_export($found, true) . "\nwanted " . var_export($wanted, true));
    }
}

function fails(string $with, callable $run): void
{
    try {
        $run();
    } catch (Throwable $error) {
        if (!str_contains($error->getMessage(), $with)) {
            throw $error;
        }
        return;
    }
    throw new Exception("no error: $with");
}

/** @param iterable<?Record> $records */
function names(iterable $records): string
{
    $found = [];
    foreach ($records as $record) {
        $found[] = $record?->member;
    }
    return implode(' ', $found);
}

const LAPS = ['fields' => 'FIELD laps 10 FIELD ms 30 ASC TIME 24 M', 'tag' => ['country' => 4, 'clan' => 3]];

function everyRecordIsReadWhole($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    $board->create(...LAPS);
    $at = new DateTimeImmutable('@' . strtotime('2026-11-16T10:00:00Z'));
    same(2, $board->add(['ann' => [9, 61500], 'bob' => [9, 60900]], at: $at, tag: ['country' => 'DE']));
    same(2, $board->add(['12' => [8, 59000], '3' => [8, 59000]], at: $at->getTimestamp() * 1000, tag: ['country' => 'FR']));
    $key = $board->record('ann', withkey: true)->key;
    $ann = new Record('ann', 1, $at, [9, 61500], 75.0, $key, ['country' => 'DE']);
    same([$ann, null], $board->get(['ann', 'nobody'], pct: true, withkey: true, tags: true));
    same('bob ann 12 3', names($board->range(0, -1)));
    same('3', names($board->range(8, 8, byscore: true, limit: [1, 1])));
    same('3', names($board->range(0, 0, rev: true)));
    same('bob ann', names($board->around('ann', 5, within: 'country')));
    same('ann 12', names($board->around(null, 2, score: 8)));
    same('bob 12 3', names($board->quantile([1, 0.5, '0'])));
    same([2, 2], $board->hist(9));
    $keys = array_map(fn (Record $record) => $record->key, $board->range(0, -1, withkey: true));
    same([['rank' => 0, 'key' => $keys[0]], ['rank' => 1, 'key' => $keys[1]], ['rank' => 3, 'key' => $keys[3]]], $board->cuts(3));
    same([['rank' => 1, 'key' => $keys[1]]], $board->cuts(9, 1, -1, where: ['country' => 'DE']));
    same([1, 2], $board->above([$key, "=$key"]));
    same(4, $board->count());
    same(2, $board->count(0, 2, where: ['country' => ['DE', 'FR']], wherenot: ['country' => 'FR']));
    same([['values' => ['DE'], 'count' => 2], ['values' => ['FR'], 'count' => 2]], $board->countBy('country'));
    same([['values' => ['DE', null], 'count' => 2], ['values' => ['FR', null], 'count' => 1]], $board->countBy(['country', 'clan'], 0, 2));
}

function everyNameOfWhatARankingNeeds($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    $board->create(fields: ['FIELD', 'points', 20], tag: ['country' => 8]);
    fails('BUSYKEY', fn () => $board->create());
    $board->create(existOk: true);
    fails('FIELD', fn () => $board->named('other')->create(fields: 'FIELD', existOk: true));
    $board->add(['ann' => 50, 'bob' => 40, 'cid' => 30], tag: ['country' => 'DE']);
    $board->add(['eve' => 45], tag: ['country' => 'FR']);
    same('ann eve', names($board->top(2)));
    same(['country' => 'DE'], $board->top(1, tags: true)[0]->tags);
    same(2, $board->record('bob')->rank);
    same(1, $board->record('bob', within: 'country')->rank);
    same(40, $board->record('bob')->score);
    same(null, $board->record('nobody'));
    same(2, $board->remove('ann', 'x', 'cid'));
    same('eve bob', names($board->range(0, -1)));
    same(true, $board->delete());
    same(false, $board->delete());
    fails('count: 0: a number from 1 on', fn () => $board->top(0));
}

function everyMistakeIsRefusedAndNothingIsSent($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    $board->add(['ann' => 5]);
    fails('none are given', fn () => $board->get([]));
    fails('touch and keeptime exclude each other', fn () => $board->add(['ann' => 1], touch: true, keeptime: true));
    fails('one of these is needed: results, packed', fn () => $board->add());
    fails('one of these is needed: member, score', fn () => $board->around(null, 5));
    fails('Unknown named parameter $operater', fn () => $board->submit('ann', 5, operater: 'INCR'));
    fails('beyond what a float holds', fn () => $board->submit('ann', 1e17));
    fails('beyond what a float holds', fn () => $board->submit('ann', NAN));
    fails('is no argument', fn () => $board->submit('ann', [[1]]));
    fails('value 2 of an option is missing', fn () => $board->submit('ann', 7, hset: ['run:*']));
    fails('none are given', fn () => $board->submit('ann', 7, hset: ['run:*', []]));
    fails('boards: none', fn () => $board->submit('ann', 7, boards: []));
    fails('must be of type', fn () => $board->around('ann', 'five'));
    try {
        $board->submit('ann', 'x');
        throw new Exception('no error');
    } catch (ReplyError $error) {
        same(true, str_starts_with($error->getMessage(), 'ERR '));
    }
    same(5, $board->record('ann')->score);
}

function everyHashAndRankOnAnotherBoard($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    $board->add(['ann' => 5, 'bob' => 4]);
    $client->send(['HSET', "$name:p:ann", 'name', 'Ann', 'team', 'x'], 1);
    same([['name' => 'Ann', 'tier' => null], null], array_map(fn (Record $record) => $record->data,
        $board->range(0, 1, data: "$name:p:*", fields: ['name', 'tier'])));
    same(['name' => 'Ann', 'team' => 'x'], $board->record('ann', data: "$name:p:*")->data);
    same(2, $board->roll("$name:old"));
    $board->add(['bob' => 7, 'kim' => 6]);
    same([1, null], array_map(fn (Record $record) => $record->since, $board->range(0, -1, since: "$name:old")));
    $board->submit('ann', 9, hset: ["$name:p:*", ['replay' => 'r/7']]);
    same('r/7', $client->send(['HGET', "$name:p:ann", 'replay'], 1));
}

function everyWrite($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    [$placed] = $board->addWithrank(['ann' => 10]);
    same([$board->record('ann'), null, false], [$placed->record, $placed->before, $placed->repeated]);
    [$result] = $board->submit('ann', 25, operator: 'INCR');
    same([$name, 35, 0, true], [$result->board, $result->record->score, $result->before, $result->counts]);
    [$own, $other] = $board->submit('ann', 20, operator: 'BEST', boards: [$name, "$name:week"]);
    same([$name, false, "$name:week", true, null], [$own->board, $own->counts, $other->board, $other->counts, $other->before]);
    same(0, $board->add(['ann' => 1], condition: 'NX'));
    $key = $board->record('ann', withkey: true)->key;
    same(1, (new Leaderboard($client, $name, retries: 3))->add(packed: ['bob' => $key]));
    same(35, $board->record('bob')->score);
    $repeat = fn () => $board->submit('ann', 1, once: 'r1', withrepeat: true)[0]->repeated;
    same([false, true], [$repeat(), $repeat()]);
}

function everyTag($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    $board->create(...LAPS);
    $board->add(['ann' => [1, 1], 'bob' => [2, 2]], tag: ['country' => 'DE']);
    same(true, $board->tag('ann', ['clan' => 'wolves'], if: ['clan' => '']));
    same(false, $board->tag('ann', ['clan' => 'bears'], if: ['clan' => '']));
    same([['country' => 'DE', 'clan' => 'wolves'], ['country' => 'DE'], null], $board->tags(['ann', 'bob', 'nobody']));
}

function everyOptionOfABoard($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    $board->create(fields: 'FIELD score 33 TIME 31 S', period: 'WEEK', on: 'SAT', tz: '+08:00', archive: 4, keep: 'BEST',
        opens: new DateTimeImmutable('@1'), settle: 'YES', stale: [10, 'DAY']);
    $info = $board->info();
    same('FIELD score 33 TIME 31 S STA', substr($info['layout'], 0, 28));
    same(['best', true, new DateTimeImmutable('@1'), null, null, 8589934591, 864000000],
        [$info['keep'], $info['created'], $info['opens'], $info['closes'], $info['settled'], $info['fields'][0]['highest'], $info['stale']]);
    same(['SAT', '+08:00', 4, false], [$info['period']['on'], $info['period']['tz'], $info['period']['archive'], $info['period']['copy']]);
    same(true, $info['period']['end'] > $info['period']['start']);
    $board->alter(state: 'FREEZE', stale: '10 DAY');
    fails('FROZEN', fn () => $board->add(['ann' => 1]));
    $found = iterator_to_array($board->boards(match: $name));
    same([1, $name, true], [count($found), $found[0]['name'], $found[0]['frozen']]);
    $board->alter(state: 'THAW', stale: 'NONE', period: 'NONE', cap: 'NONE');
    same(null, $board->info()['period']);
}

function everyArchiveIsSettledOnce($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    $board->add(['ann' => 1]);
    $board->roll("$name:1");
    $found = iterator_to_array($board->boards(unsettled: true, match: "$name:1"));
    same([1, "$name:1", false], [count($found), $found[0]['name'], $found[0]['settled']]);
    same([true, false], [$board->settle("$name:1"), $board->settle("$name:1")]);
}

function everyCommandAboutOnePlayer($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    [$ann, $bob] = ["$name ann", "$name bob"];
    $board->add([$ann => 7, $bob => 5]);
    $found = $board->where($ann);
    same([1, $name, 7], [count($found), $found[0]['board'], $found[0]['record']->score]);
    same([1, 0], $board->move($ann, $bob, match: $name, mode: 'SUM'));
    same(12, $board->record($bob)->score);
    same(1, $board->ban($bob, match: $name, ex: 100));
    $bans = iterator_to_array($board->banned(match: $bob));
    same([1, $bob, $name, true], [count($bans), $bans[0]->member, $bans[0]->pattern, $bans[0]->until > new DateTimeImmutable()]);
    fails('BANNED', fn () => $board->add([$bob => 1]));
    same([true, false], [$board->unban($bob), $board->unban($bob)]);
    $board->add([$bob => 1]);
    same(1, $board->forget($bob, data: ['a:*', 'b:*']));
    same(['cursor', 'items'], array_keys($board->list(count: 1)));
}

function everyLeague($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    $board->leagueCreate(fields: 'FIELD points 22 TIME 31 S', period: 'WEEK', room: 3, tiers: 4, up: 1, down: 1, idle: 'STAY');
    $place = $board->leagueAdd('ann', 30, operator: 'INCR');
    same([1, 1, 30, null, null], [$place->tier, $place->room, $place->record->score, $place->other, $place->outlook]);
    same('up', $board->leagueGet('ann')->outlook);
    same(null, $board->leagueGet('nobody'));
    $again = fn () => $board->leagueAdd('bob', 5, once: 'r1', withrepeat: true);
    same([false, true], [$again()->repeated, $again()->repeated]);
    $board->leagueRemove('bob');
    same(null, $again());
    $info = $board->leagueInfo();
    same([1, 4, 'stay', 4, 1], [$info['members'], $info['tiers'], $info['idle'], count($info['list']), $info['list'][3]['open-room-members']]);
    same([true, true, false], [$board->leagueSet(3, 'ann'), $board->leagueRemove('ann'), $board->leagueRemove('ann')]);
}

function everyNumberIsExact($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    $board->create(fields: 'FIELD coins 64');
    $board->add(['ann' => 9007199254740993, 'kim' => '18446744073709551615']);
    $board->submit('ann', 1, operator: 'INCR');
    $found = $board->range(0, -1, withkey: true);
    same('18446744073709551615', $found[0]->score);
    same('18446744073709551615', (string) $found[0]->key);
    same(9007199254740994, $found[1]->score);
    same('18446744073709551615', $board->info()['fields'][0]['highest']);
    $euros = $board->named("$name:euros");
    $euros->create(fields: 'FIELD euros 64 SIGNED SCALE 2');
    $euros->add(['ann' => '9007199254740993.21', 'bob' => 0.25, 'cid' => -3, 'dan' => 1e-2]);
    same(['9007199254740993.21', '0.25', '0.01', -3], array_map(fn (Record $record) => $record->score, $euros->range(0, -1)));
}

function everyPageAndIteration($client, string $name): void
{
    $board = new Leaderboard($client, $name);
    $board->create(fields: 'FIELD score 40', tag: ['even' => 1]);
    $all = array_map(fn (int $i) => "m$i", range(0, 24));
    $board->add(array_combine($all, range(100, 76)));
    $board->tag('m0', ['even' => 'yes']);
    $board->tag('m2', ['even' => 'yes']);
    $page = $board->page(3, 10);
    same([3, 3, 25, 'm20 m21 m22 m23 m24'], [$page->number, $page->pages, $page->count, names($page->records)]);
    $group = $board->page(1, 10, where: ['even' => 'yes']);
    same([1, 2, 'm0 m2'], [$group->pages, $group->count, names($group->records)]);
    fails('page: 0: a number from 1 on', fn () => $board->page(0));
    fails('no options of pages', fn () => $board->page(1, byscore: true));
    fails('batch: 0', fn () => iterator_to_array($board->records(0)));
    same(implode(' ', $all), names($board));
    foreach ([5, 7, 25] as $batch) {
        same(implode(' ', $all), names($board->records($batch)));
    }
    same(implode(' ', array_reverse($all)), names($board->records(7, rev: true)));
}

function onceTheVersionIsTheServers(array $places): void
{
    same(1, preg_match('/^leaderboard-server ' . preg_quote(Commands::VERSION) . '\b/', shell_exec($places['server'] . ' --version')));
}

function onceAMultiIsRefused(array $places): void
{
    $redis = new Redis();
    $redis->connect('127.0.0.1', $places['port']);
    $redis->multi();
    fails('in a MULTI', fn () => (new Leaderboard(new PhpRedisClient($redis), 'a'))->count());
}

function onceALostReplyIsAskedForAgain(array $places): void
{
    foreach (['phpredis' => phpRedis($places['way']), 'Predis' => predis($places['way'])] as $name => $client) {
        $server = phpRedis($places['port']);
        $tries = fn (string $id) => (int) $server->send(['ZSCORE', 'seen', $id], 1);
        $board = new Leaderboard($client, "once $name", retries: 20);
        [$result] = $board->submit('lose-3', 25, operator: 'INCR', once: "match:$name");
        same([25, false, 4], [$result->record->score, $result->counts, $tries("match:$name")]); // the first try counted
        same(0, $board->add(['lose-1' => 5], operator: 'INCR')); // with an id that was drawn
        same(5, $board->record('lose-1')->score);
        fails('ERR', fn () => $board->submit('ann', 'many', once: "bad:$name"));
        same(1, $tries("bad:$name"));
        $few = new Leaderboard($client, "once $name", retries: 2);
        fails('', fn () => $few->submit('lose-100', 1, once: "ends:$name"));
        same(3, $tries("ends:$name"));
        $hasty = new Leaderboard($client, "once $name");
        fails('', fn () => $hasty->submit('lose-100', 1, once: "hasty:$name"));
        same(1, $tries("hasty:$name"));
    }
}

function clusterBoards($client, string $name): void
{
    $size = 30; // on three nodes
    $boards = array_map(fn (int $i) => new Leaderboard($client, "{{$name} $i}day", retries: 5), range(0, $size - 1));
    foreach ($boards as $i => $board) {
        $board->create(fields: 'FIELD score 40', tag: ['country' => 8]);
        $board->add(['ann' => $i, 'bob' => 20], tag: ['country' => 'DE']);
        $results = $board->submit('ann', 5, operator: 'INCR', boards: [$board->key, str_replace('day', 'week', $board->key)]);
        same([$i + 5, 5], [$results[0]->record->score, $results[1]->record->score]);
        [$record] = $board->around('ann', 1, within: 'country', tags: true);
        same([$i + 5, ['country' => 'DE']], [$record->score, $record->tags]);
        same([2, 2], [$board->page(1)->count, $board->info()['count']]);
    }
    $match = "{{$name} *day";
    $there = array_column(iterator_to_array($boards[0]->boards(match: $match), false), 'name');
    $keys = array_map(fn (Leaderboard $board) => $board->key, $boards);
    sort($there);
    sort($keys);
    same($keys, $there);
    fails('each node of a cluster has a cursor', fn () => $boards[0]->list());
    same($size, count($boards[0]->where('bob', match: $match)));
    same([$size, 0], $boards[0]->move('bob', 'kim', match: $match));
    same($size, $boards[0]->ban('kim', match: $match));
    $bans = iterator_to_array($boards[0]->banned(match: 'kim'), false);
    same(['kim', 'kim', 'kim'], array_column($bans, 'member'));
    same([true, false], [$boards[0]->unban('kim'), $boards[0]->unban('kim')]);
    same($size, $boards[0]->forget('ann', match: $match));
    $board = $boards[0]->named("{{$name}}");
    $board->add(['ann' => 1]);
    $board->roll("{{$name}}1");
    same([true, false], [$board->settle("{{$name}}1"), $board->settle("{{$name}}1")]);
}

[$passed, $failed] = [0, 0];
foreach (get_defined_functions()['user'] as $test) {
    $kind = preg_match('/^(every|cluster|once)(?=[a-z])/', $test, $found) ? $found[1] : null;
    foreach (['every' => $singles, 'cluster' => $clusters, 'once' => ['' => $places]][$kind] ?? [] as $name => $client) {
        try {
            $kind === 'once' ? $test($client) : $test($client, "php $test $name");
            $passed++;
        } catch (Throwable $error) {
            echo "FAIL $test, $name: ", get_class($error), ': ', $error->getMessage(), "\n", $error->getFile(), ':', $error->getLine(), "\n",
                $error->getTraceAsString(), "\n";
            $failed++;
        }
    }
}
echo "$passed passed, $failed failed\n";
exit($failed === 0 ? 0 : 1);
