// The load of ladder.py: matches of a seed, each by the next client that is free. Prints what they cost as JSON.
import { Redis } from "ioredis";
import { ordinal, rate, rating } from "openskill";

const TRIES = 20;
const asked = JSON.parse(process.argv[2]);
const openskill = { tau: 25 / 300 };
let state = 1;
const random = (below) => { // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let z = Math.imul(state ^ (state >>> 15), state | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return Math.floor(((z ^ (z >>> 14)) >>> 0) / 4294967296 * below);
};

const matches = Array.from({ length: asked.matches }, () => {
    const players = new Set();
    while (players.size < asked.teams * asked.size) {
        players.add(`player:${random(asked.players)}`);
    }
    const names = [...players];
    return Array.from({ length: asked.teams }, (_, i) => names.slice(i * asked.size, (i + 1) * asked.size));
});
const counts = { trips: 0, retries: 0, given_up: 0 };

// One try. false: somebody has changed a player meanwhile.
async function tryRedis(client, teams, watches) {
    const names = teams.flat();
    const read = client.pipeline(); // one round trip
    if (watches) {
        read.watch(...names);
    }
    names.forEach((name) => read.hmget(name, "mu", "sigma", "games"));
    const replies = (await read.exec()).slice(watches ? 1 : 0).map(([, reply]) => reply);
    const players = replies.map(([mu, sigma]) => (mu === null ? rating() : rating({ mu: Number(mu), sigma: Number(sigma) })));
    let at = 0;
    const after = rate(teams.map((team) => players.slice(at, at += team.length)), openskill).flat();
    const write = client.multi();
    names.forEach((name, i) => {
        write.hset(name, "mu", after[i].mu, "sigma", after[i].sigma, "games", Number(replies[i][2] ?? 0) + 1);
        write.zadd("ladder", ordinal(after[i]), name);
    });
    names.forEach((name) => write.zrevrank("ladder", name)); // LB.MATCH replies ranks, too
    counts.trips += 2;
    return await write.exec() !== null;
}

async function play(client, teams) {
    if (asked.way === "LB.MATCH") {
        counts.trips++;
        await client.call("LB.MATCH", "ladder", ...teams.flatMap((team) => ["TEAM", team.length, ...team]));
        return;
    }
    for (let tries = 0; !await tryRedis(client, teams, asked.way === "WATCH"); tries++) {
        if (tries === TRIES) {
            counts.given_up++;
            return;
        }
        counts.retries++;
    }
}

const clients = Array.from({ length: asked.clients }, () => new Redis(asked.port));
await Promise.all(clients.map((client) => client.ping()));
const before = process.cpuUsage();
let next = 0;
await Promise.all(clients.map(async (client) => {
    while (next < matches.length) {
        await play(client, matches[next++]);
    }
}));
const { user, system } = process.cpuUsage(before);

// What came of it, behind all that is counted: games that players have, and where they stand.
const [client] = clients;
const names = Array.from({ length: asked.players }, (_, i) => `player:${i}`);
const records = asked.way === "LB.MATCH" ? await client.call("LB.RATING", "ladder", ...names)
    : await Promise.all(names.map((name) => client.hmget(name, "mu", "sigma", "games")));
const parts = records.map((record) => (record === null || record[0] === null ? null
    : asked.way === "LB.MATCH" ? { mu: record[2], sigma: record[3], games: record[5] }
        : { mu: record[0], sigma: record[1], games: record[2] }));
const games = parts.reduce((sum, part) => sum + Number(part?.games ?? 0), 0);
const expected = (matches.length - counts.given_up) * asked.teams * asked.size;
const share = (count) => 100 * count / matches.length;
console.log(JSON.stringify({
    client_us: (user + system) / matches.length, trips: counts.trips / matches.length, retries: share(counts.retries),
    given_up: share(counts.given_up), lost: share(expected - games),
    ordinals: parts.map((part) => (part === null ? 0 : Number(part.mu) - 3 * Number(part.sigma))),
}));
clients.forEach((each) => each.disconnect());
