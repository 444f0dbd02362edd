// Sends words through the client that somebody has: node-redis 4 to 6 (client, pool, cluster, sentinel) and ioredis
// (single, cluster, sentinel). What differs between them is here alone.
"use strict";
const { Passing, PausesMs } = require("./shapes.js");

// node-redis reads these types of RESP into doubles, bigints and objects; as text and Map they are exact. By their first
// bytes: integers, doubles, big numbers, maps. Versions before 5 do not know the option, and ask in RESP2.
const typeMapping = Object.fromEntries([[":", String], [",", String], ["(", String], ["%", Map]]
    .map(([type, read]) => [type.charCodeAt(0), read]));

const isIoredis = (client) => typeof client.call === "function" && typeof client.sendCommand === "function";

// ioredis does not know which word of a command that it does not know is the key, and would ask any node first. So its
// command is told on its way; a version that keeps the key elsewhere is sent on by the cluster. Its own pipelines would
// look for the key, too.
function sendByIoredis(client, key, words) {
    const told = Object.create(client, {
        options: { value: { ...client.options, enableAutoPipelining: false } },
        sendCommand: {
            value: (command, ...rest) => {
                command.keys = [key];
                return client.sendCommand(command, ...rest);
            },
        },
    });
    return client.isCluster ? told.call(...words) : client.call(...words);
}

// A multi or a pipeline has no answers before it is executed.
function refuseQueue(client) {
    if (client?.isPipeline || typeof client?.execAsPipeline === "function" || typeof client?.sendCommand !== "function") {
        throw new TypeError("the Leaderboard needs a connected client, and no multi or pipeline, which has no answers before " +
            "exec(): send LB. commands there yourself, as in client.multi().addCommand([\"LB.ADD\", \"arena\", \"500\", \"ann\"])");
    }
}

// Are events told? A user who may not ask learns it by waiting.
async function checkEvents(client, key) {
    const setting = "notify-board-events";
    let answer;
    try {
        answer = await sendOnce(client, key, true, ["CONFIG", "GET", setting]);
    } catch {
        return;
    }
    const value = answer instanceof Map ? answer.get(setting) : Array.isArray(answer) ? answer[1] : answer?.[setting];
    if (value === undefined) {
        throw new Error(`this server has no ${setting}: events are told by a leaderboard server alone`);
    }
    if (String(value) === "no") {
        throw new Error(`nothing is told of boards: CONFIG SET ${setting} yes, or put it into its file`);
    }
}

// words: strings. key: where in a cluster.
async function sendOnce(client, key, isRead, words) {
    if (isIoredis(client)) {
        return sendByIoredis(client, key, words);
    }
    switch (client.sendCommand.length) {
    case 4:
        return client.sendCommand(key, isRead, words, { typeMapping });
    case 3:
        return client.sendCommand(isRead, words, { typeMapping });
    default:
        return client.sendCommand(words, { typeMapping });
    }
}

// The clients of the nodes that have keys: of a cluster its masters.
async function nodes(client) {
    if (isIoredis(client)) {
        if (client.isCluster && client.status !== "ready") {
            await client.ping(); // waits until the nodes are known
        }
        return client.isCluster ? client.nodes("master") : [client];
    }
    return client.sendCommand.length === 4 ? Promise.all(client.masters.map((node) => client.nodeClient(node))) : [client];
}

// Listens to channels on a connection of its own, where the client does not keep one for that. listener(channel,
// message). Gives a function that ends it.
async function subscribe(client, channels, listener) {
    const hear = (message, channel) => listener(channel, message);
    const isOne = isIoredis(client) || client.sendCommand.length === 2;
    if (!isOne) {
        await client.subscribe(channels, hear);
        return () => client.unsubscribe(channels, hear);
    }
    if (typeof client.duplicate !== "function") {
        throw new TypeError("a pool cannot subscribe: give the Leaderboard a client, a cluster or a sentinel");
    }
    const own = client.duplicate();
    const end = () => own.close ? own.close() : own.quit();
    own.on("error", (error) => client.listenerCount("error") > 0 && client.emit("error", error));
    try {
        if (isIoredis(client)) {
            own.on("message", listener);
            await own.subscribe(...channels);
        } else {
            await own.connect();
            await own.subscribe(channels, hear);
        }
    } catch (error) {
        await end();
        throw error;
    }
    return end;
}

// The number of the client's database.
const database = (client) => client.options?.db ?? client.options?.database ?? 0;

// Did the server answer this, or was the answer lost? Its errors begin with a word in capitals.
const isAnswer = (error) => /^[A-Z]{2,} /.test(error.message);
const isClosed = (error) => error.constructor.name === "ClientClosedError" || error.message === "The client is closed";
// Answers behind which an earlier try may count, and after which another may be answered.
const passing = new RegExp(`^(${Passing.join("|")}) `);

// The answer, asked for again up to so many times while there is none.
async function send(client, key, isRead, words, retries) {
    for (let tried = 0; ; tried++) {
        try {
            return await sendOnce(client, key, isRead, words);
        } catch (error) {
            if (tried >= retries || isClosed(error) || (isAnswer(error) && !passing.test(error.message))) {
                throw error;
            }
        }
        await new Promise((resolve) => setTimeout(resolve, Math.min(PausesMs[0] * 2 ** tried, PausesMs[1])));
    }
}

module.exports = { send, nodes, subscribe, database, refuseQueue, checkEvents };
