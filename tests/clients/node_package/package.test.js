// What npm is given: the version, the README's lines, both module systems, declarations that hold.
"use strict";
const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { test } = require("node:test");
const { home, places, Leaderboard, Player, SplitBoard, requireThere } = require("./clients.js");

const runThere = (...words) => execFileSync(process.execPath, words, { cwd: home, encoding: "utf8" });

test("the version is the server's", () => {
    const told = execFileSync(places.server, ["--version"], { encoding: "utf8" });
    assert.equal(requireThere("./package.json").version, /^leaderboard-server (\S+)/.exec(told)[1]);
    assert.equal(requireThere("./package-lock.json").version, requireThere("./package.json").version);
});

test("what is packed is what is needed", () => {
    const [{ files }] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json"], { cwd: home, encoding: "utf8" }));
    const packed = files.map((file) => file.path);
    const needed = fs.readdirSync(home).filter((file) => /(?<!test)\.js$|\.d\.ts$|^(LICENSE|README\.md|package\.json)$/.test(file));
    assert.deepEqual(packed.sort(), needed.sort());
    assert.equal(fs.readFileSync(path.join(home, "LICENSE"), "utf8"),
        fs.readFileSync(path.join(home, "../../LICENSE"), "utf8"));
});

test("the README's lines print what they say, on a server as it is after installation", () => {
    const blocks = [...fs.readFileSync(path.join(home, "README.md"), "utf8").matchAll(/^```js\n([^]*?)^```/gm)];
    assert.ok(blocks.length >= 2);
    for (const [, block] of blocks) {
        assert.match(block, /createClient\(\)|new Redis\(\)/);
        const program = block.replace("createClient()", `createClient({ url: "redis://127.0.0.1:${places.untouched}" })`)
            .replace("new Redis()", `new Redis(${places.untouched})`);
        const said = [...block.matchAll(/\); \/\/ (.*)$/gm)].map(([, text]) => text);
        assert.ok(said.length > 0);
        assert.deepEqual(runThere("--input-type=module", "-e", program).trim().split("\n").slice(0, said.length), said);
    }
});

test("import and require give the same", () => {
    assert.equal(runThere("--input-type=module", "-e",
        'import { Leaderboard } from "leaderboard-client"; console.log(Leaderboard.name)'), "Leaderboard\n");
    assert.equal(Leaderboard.name, "Leaderboard");
});

test("each declared method is there", () => {
    for (const [made, files] of [[Leaderboard, ["commands.d.ts", "index.d.ts"]], [SplitBoard, ["split.d.ts"]], [Player, ["player.d.ts"]]]) {
        const declared = files.flatMap((file) =>
            [...fs.readFileSync(path.join(home, file), "utf8").matchAll(/^ {4}(\w+)\(/gm)].map(([, name]) => name));
        assert.ok(declared.length >= 5);
        for (const name of declared) {
            assert.equal(typeof (name === "constructor" ? made : made.prototype[name]), "function", name);
        }
    }
});
