// The clients that the package is tested with, and what tests share.
"use strict";
const { createRequire } = require("node:module");
const path = require("node:path");

const home = path.resolve(__dirname, "../../../clients/node");
const requireThere = createRequire(path.join(home, "index.js"));
const { Leaderboard, Player, SplitBoard, BoardChanged, shardOf } = requireThere("leaderboard-client");

// name: how it is made, by what it is asked of the server, and how it ends.
const made = (name, make, end) => ({ name, make, end });
const nodeRedis = (name, version, options = {}) => made(name, async ({ port }) => {
    const client = requireThere(version).createClient({ url: `redis://127.0.0.1:${port}`, ...options });
    client.on("error", () => {});
    return client.connect();
}, (client) => client.close ? client.close() : client.quit());
const ioredis = (name, version, options = {}) => made(name, async ({ port }) => {
    const client = new (requireThere(version))({ host: "127.0.0.1", port, maxRetriesPerRequest: 0, ...options });
    client.on("error", () => {});
    return client;
}, (client) => client.quit());

const singles = [
    nodeRedis("node-redis 4", "redis-4"),
    nodeRedis("node-redis 5", "redis"),
    nodeRedis("node-redis 5 with RESP 3", "redis", { RESP: 3 }),
    nodeRedis("node-redis 6", "redis-6"),
    ioredis("ioredis 5", "ioredis"),
    ioredis("ioredis 6", "ioredis-6"),
    ioredis("ioredis 5 with numbers as strings, and pipelines", "ioredis", { stringNumbers: true, enableAutoPipelining: true }),
];
const pool = made("a pool of node-redis 5", async ({ port }) => {
    const client = requireThere("redis").createClientPool({ url: `redis://127.0.0.1:${port}` });
    client.on("error", () => {});
    return client.connect();
}, (client) => client.close());

const nodeRedisCluster = (name, version) => made(name, async ({ ports }) => {
    const client = requireThere(version).createCluster({
        rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) });
    client.on("error", () => {});
    await client.connect();
    return client;
}, (client) => client.close ? client.close() : client.quit());
const ioredisCluster = (name, version, options = {}) => made(name, async ({ ports }) => {
    const { Cluster } = requireThere(version);
    return new Cluster(ports.map((port) => ({ host: "127.0.0.1", port })), options);
}, (client) => client.quit());
const clusters = [
    nodeRedisCluster("node-redis 4", "redis-4"),
    nodeRedisCluster("node-redis 5", "redis"),
    nodeRedisCluster("node-redis 6", "redis-6"),
    ioredisCluster("ioredis 5", "ioredis"),
    ioredisCluster("ioredis 6", "ioredis-6"),
    ioredisCluster("ioredis 5 with pipelines", "ioredis", { enableAutoPipelining: true }),
];

const nodeRedisSentinel = (name, version) => made(name, async ({ sentinel }) => {
    const client = requireThere(version).createSentinel({
        name: "boards", sentinelRootNodes: [{ host: "127.0.0.1", port: sentinel }] });
    client.on("error", () => {});
    await client.connect();
    return client;
}, (client) => client.close());
const ioredisSentinel = (name, version) => made(name, async ({ sentinel }) => new (requireThere(version))({
    name: "boards", sentinels: [{ host: "127.0.0.1", port: sentinel }] }), (client) => client.quit());
const sentinels = [
    nodeRedisSentinel("node-redis 5", "redis"),
    nodeRedisSentinel("node-redis 6", "redis-6"),
    ioredisSentinel("ioredis 5", "ioredis"),
    ioredisSentinel("ioredis 6", "ioredis-6"),
];

// Sends any command by any client of one server.
const tell = (client, ...words) => client.call ? client.call(...words) : client.sendCommand(words);

// The ports that run gives: { port, sentinel, ports: those of a cluster }.
const places = JSON.parse(process.env.PLACES);

// A client for a test, which ends with it.
async function connect(test, kind, place = places) {
    const client = await kind.make(place);
    test.after(() => kind.end(client));
    return client;
}

module.exports = {
    Leaderboard, Player, SplitBoard, BoardChanged, shardOf, home, requireThere, singles, pool, clusters, sentinels, tell, places,
    connect,
};
