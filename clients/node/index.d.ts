import { BoardSummary, Commands } from "./commands";
export type { BoardInfo, BoardSummary, LeagueInfo } from "./commands";
export * from "./player";
export * from "./split";

/** How values of records are read. */
export type Numbers = {
    /** Exact, or an error when it is read: what has more digits than a number holds is never rounded. The default. */
    number: number;
    /** Whole numbers of any size; the decimals of SCALE are an error when they are read. */
    bigint: bigint;
    /** The digits of the server, also of decimals. */
    string: string;
};
export type Value = Numbers[keyof Numbers];

/** An argument. A Date is its unix milliseconds; a number beyond 2^53 is refused. */
export type Word = string | number | bigint;
/** A moment: a Date, unix milliseconds, or ISO 8601 text where the command takes it. */
export type Time = Word | Date;
export type Several<T> = T | readonly T[];
/** Names and values: an object, or, where the order counts, a Map or an array of pairs. */
export type Pairs<T> = { readonly [name: string]: T } | Iterable<readonly [string, T]>;
/** Words in the syntax of the command, as one text with blanks or as an array. */
export type Words = string | number | readonly Word[];

/** What a board has of a member. */
export interface BoardRecord<V extends Value = number, F extends string = never> {
    member: string;
    /** 0 is the best. */
    rank: number;
    /** When the values were reached; null on boards without TIME. */
    time: Date | null;
    /** The first of the values. */
    score: V;
    /** The values in the order of the layout. */
    values: V[];
    /** The values by name, if the Leaderboard was told the names of the board's fields. */
    fields: [F] extends [never] ? undefined : { [name in F]: V };
    /** With pct. */
    percent?: number;
    /** With withkey: the packed key. */
    key?: bigint;
    /** With tags. */
    tags?: { [name: string]: string };
    /** With data: the member's hash, or the fields asked for; null: there is no hash. */
    data?: { [field: string]: string | null } | null;
    /** With since: the rank on the other board; null: it was not there. */
    since?: number | null;
    /** With rating: on a board with RATING. */
    rating?: Rating<V> | null;
}

/** A player's record on a board with RATING; null: the system has none. */
export interface Rating<V extends Value = number> {
    rating: V;
    /** As it is now: it grows while the player does not play. */
    deviation: V | null;
    volatility: V | null;
    games: number;
    won: number;
    drawn: number;
    lost: number;
    /** The time of the last match; null: there was none yet. */
    last: Date | null;
}
/** A player and the rating, also of one who is not ranked: the rank is null. */
export interface Rated<V extends Value = number> extends Rating<V> {
    member: string;
    rank: number | null;
}
/** What a match did to a player; ranks are null while the player is not ranked. */
export interface Played<V extends Value = number> {
    member: string;
    before: V;
    after: V;
    deviation: V | null;
    games: number;
    rankBefore: number | null;
    rankAfter: number | null;
}
/** Each team's chance to win, and how even the match would be, from 0 to 1. */
export interface Prediction {
    chances: number[];
    quality: number;
}

/** A member's record after a write, null if it is not on the board; before: its rank before. */
export interface Placed<V extends Value = number, F extends string = never> {
    record: BoardRecord<V, F> | null;
    before: number | null;
    /** With withrepeat: did the id of once come before? */
    repeated?: boolean;
}
/** The same on one of several boards; counts: whether the result was written there. */
export interface Result<V extends Value = number, F extends string = never> extends Placed<V, F> {
    board: string;
    counts: boolean;
}
/** other: of leagueAdd the tier before, of leagueGet the tier to come; null: none. outlook: of leagueGet what would happen if
 *  the period ended now. */
export interface LeaguePlace<V extends Value = number, F extends string = never> {
    tier: number;
    room: number | null;
    record: BoardRecord<V, F> | null;
    other: number | null;
    outlook: "up" | "stay" | "down" | null;
    /** Of leagueAdd with withrepeat: did the id of once come before? */
    repeated?: boolean;
}
/** How many members have these values of the tags asked for; null: none. */
export interface ValueCount {
    values: (string | null)[];
    count: number;
}
/** A rank, and the packed key of the member there, as with withkey: larger is better. */
export interface Cut {
    rank: number;
    key: bigint;
}
export interface Ban {
    member: string;
    /** Of the boards' names. */
    pattern: string;
    until: Date | null;
    /** The player goes on, and sees the own entry. */
    shadow: boolean;
}
/** A result that a board with HOLD keeps without ranking it. */
export interface Held {
    id: bigint;
    member: string;
    /** That the member would have: exact numbers, as texts. */
    values: string[];
    /** OVER, TOP, or the limit that it breaks. */
    reason: string;
    at: Date;
    user: string;
    address: string;
}
/** A result that a board with HOLD keeps without ranking it, as its player sees it. */
export interface Waiting {
    id: bigint;
    /** That the player would have: exact numbers, as texts. */
    values: string[];
    at: Date;
}
/** Records, and what is held of the player who asks, the newest first. */
export interface OwnRecords<V extends Value = number, F extends string = never> {
    records: (BoardRecord<V, F> | null)[];
    held: Waiting[];
}
/** A part of a walk; the next one begins at cursor, and 0n is the end. */
export interface Step<T> {
    cursor: bigint;
    items: T[];
}

/** What happens on a board (docs/reference/push.md). */
export type BoardEvent<V extends Value = number, F extends string = never> =
    | { type: "rolled"; archive: string | null }
    | { type: "settled" | "opened" | "closed" }
    | { type: "league"; tier: number; room: number; before: number; member: string }
    | { type: "changed" }
    | { type: "list"; records: Pick<BoardRecord<V, F>, "member" | "rank" | "score" | "values" | "fields">[] }
    | { type: "entered" | "left"; member: string }
    | { type: "overtaken"; member: string; from: number; to: number; by: string };

/** node-redis 4 to 6 (client, pool, cluster, sentinel) or ioredis (single, cluster, sentinel), connected. */
export type Client =
    | { sendCommand(...args: never[]): Promise<unknown> }
    | { call(command: string, ...args: never[]): Promise<unknown>; sendCommand(...args: never[]): unknown };

export interface LeaderboardOptions<K extends keyof Numbers = "number", F extends string = never> {
    numbers?: K;
    /** The names of the board's fields, in the order of its layout. */
    fields?: readonly F[] | undefined;
    /**
     * How often a result of add, submit and leagueAdd, which then has an id (once), and what reads is sent again while
     * there is no answer, with pauses of 10 ms to 1 s. 0 if not given.
     */
    retries?: number | undefined;
    /** The number of the database, for events, if the client does not tell. */
    database?: number | undefined;
}

type RangeOptions = NonNullable<Parameters<Commands<number, never>["range"]>[2]>;
type ListOptions = Omit<NonNullable<Parameters<Commands<number, never>["list"]>[0]>, "cursor">;
type BansOptions = Omit<NonNullable<Parameters<Commands<number, never>["bans"]>[0]>, "cursor">;

/** One board. Commands without a key are about its database, in a cluster about all nodes. */
export class Leaderboard<K extends keyof Numbers = "number", F extends string = never>
    extends Commands<Numbers[K], F> implements AsyncIterable<BoardRecord<Numbers[K], F>> {
    constructor(client: Client, key: string, options?: LeaderboardOptions<K, F>);
    readonly key: string;
    /** Another board by the same client and options. */
    named(key: string): Leaderboard<K, F>;
    /** The first ones, with the options of range. */
    top(count: number, options?: RangeOptions): Promise<BoardRecord<Numbers[K], F>[]>;
    /** A member's place, 0 is the best, with the options of get; null: it is not there. */
    rank(member: Word, options?: Parameters<Commands<number, never>["get"]>[1]): Promise<number | null>;
    /** A member's first field; null: it is not there. */
    score(member: Word): Promise<Numbers[K] | null>;
    /** How many were there. In the module a `board` line must match the board's name. */
    remove(...members: Several<Word>[]): Promise<number>;
    /** Was there a board? */
    delete(): Promise<boolean>;
    /** A page, the first is 1, and how many there are. Two commands: what comes in between is in one of them. */
    page(number: number, options?: Omit<RangeOptions, "byscore" | "limit"> & { size?: number | undefined }):
        Promise<{ number: number; pages: number; count: number; records: BoardRecord<Numbers[K], F>[] }>;
    /**
     * All records, the best first, read batch ranks at a time: one that moves meanwhile may be missed or come twice.
     */
    records(options?: Omit<RangeOptions, "byscore" | "limit"> & { batch?: number | undefined }):
        AsyncGenerator<BoardRecord<Numbers[K], F>, void, undefined>;
    [Symbol.asyncIterator](): AsyncGenerator<BoardRecord<Numbers[K], F>, void, undefined>;
    /** All boards of the database. */
    boards(options?: ListOptions): AsyncGenerator<BoardSummary, void, undefined>;
    /** All bans of the database. */
    banned(options?: BansOptions): AsyncGenerator<Ban, void, undefined>;
    /**
     * Calls handler for what happens, if the server has notify-board-events; gives a function that ends it. top, list
     * and members are numbers of places. What is published while the client connects again is lost.
     */
    subscribe(to: {
        board?: boolean | undefined;
        top?: number | undefined;
        list?: number | undefined;
        members?: number | undefined;
        overtaken?: Several<string> | undefined;
    }, handler: (event: BoardEvent<Numbers[K], F>) => void): Promise<() => Promise<unknown>>;
}
