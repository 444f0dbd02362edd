import type { Commands } from "./commands";
import type {
    BoardRecord, Client, Leaderboard, LeaderboardOptions, Numbers, Pairs, Several, Value, ValueCount, Word,
} from "./index";

type Options<Name extends "add" | "create" | "submit" | "tag", Index extends number> =
    NonNullable<Parameters<Commands<number, never>[Name]>[Index]>;

/** A group of members with the same tags, as on one board. */
export interface SplitGroup {
    where?: Pairs<Several<Word>> | undefined;
    wherenot?: Pairs<Several<Word>> | undefined;
}
export interface SplitShown extends SplitGroup {
    /** With the members' tags. */
    tags?: boolean | undefined;
}
export interface SplitWithin extends SplitShown {
    /** The group of the member that is asked about. */
    within?: Several<Word> | undefined;
}
/** Ranks are those in the whole; key is the packed key, which a shard's board orders by. */
export type SplitRecord<V extends Value = number, F extends string = never> = BoardRecord<V, F> & { key: bigint };

export interface SplitBoardOptions<K extends keyof Numbers = "number", F extends string = never>
    extends LeaderboardOptions<K, F> {
    /** For ever: members are by crc32 of their names, modulo this. 16 if not given. */
    shards?: number | undefined;
    /** Of an earlier period, as archive gives it. */
    archive?: string | undefined;
}

/** The board changed faster than a place on it could be found. */
export class BoardChanged extends Error {}

/** The shard of a member: crc32 as in zip and PNG, of the name in UTF-8, modulo shards. */
export function shardOf(member: Word, shards: number): number;

/** One board over the keys name:{0} to name:{shards - 1}, wherever they are (docs/scale/one-board.md). */
export class SplitBoard<K extends keyof Numbers = "number", F extends string = never>
    implements AsyncIterable<SplitRecord<Numbers[K], F>> {
    constructor(client: Client, name: string, options?: SplitBoardOptions<K, F>);
    readonly name: string;
    readonly shards: number;
    /** The shards. */
    readonly boards: readonly Leaderboard<K, F>[];
    /** How many rounds there were: one is a request for each shard, all at once. */
    readonly rounds: number;
    /** The board of an earlier period (PERIOD): archive("2026-11-16"). */
    archive(period: string): SplitBoard<K, F>;
    /** The shard in which the member is, or would be. Ranks that it replies are those in the shard. */
    boardOf(member: Word): Leaderboard<K, F>;

    /** On every shard. What was interrupted is completed by the same call again. */
    create(options?: Options<"create", 0>): Promise<void>;
    /** Does the result count? */
    submit(member: Word, field: Several<Word>, options?: Omit<Options<"submit", 2>, "boards">): Promise<boolean>;
    /** Each shard writes its own as a whole or not at all; an error is thrown when all have answered. */
    add(results: Pairs<Several<Word>>, options?: Omit<Options<"add", 1>, "packed">): Promise<number>;
    /** Tags of a member that is there. */
    tag(member: Word, tag: Pairs<Word>, options?: Options<"tag", 2>): Promise<boolean>;
    /** With ZREM: in the module a `board` line must match the shards' names. */
    remove(member: Several<Word>): Promise<number>;
    /** All shards. How many there were. */
    delete(): Promise<number>;

    /** The member's record; null: it is not there, or not in the group. comp: members with equal fields share a rank. */
    rank(member: Word, options?: SplitWithin & { comp?: boolean | undefined }): Promise<SplitRecord<Numbers[K], F> | null>;
    /** The records of many, in two rounds. */
    get(member: Several<Word>, options?: SplitShown & { comp?: boolean | undefined }):
        Promise<(SplitRecord<Numbers[K], F> | null)[]>;
    /** count records with the member in the middle; at the ends of the board, the count that are there. */
    around(member: Word, count: number, options?: SplitWithin): Promise<SplitRecord<Numbers[K], F>[]>;
    /** The records at the places start .. stop, which are 0 or more. */
    range(start: number, stop: number, options?: SplitShown): Promise<SplitRecord<Numbers[K], F>[]>;
    /** The best. */
    top(count: number, options?: SplitShown): Promise<SplitRecord<Numbers[K], F>[]>;
    /** A page, the first is 1, and how many there are. */
    page(number: number, options?: SplitShown & { size?: number | undefined }):
        Promise<{ number: number; pages: number; count: number; records: SplitRecord<Numbers[K], F>[] }>;
    /** All records, the best first, read batch ranks at a time: one that moves meanwhile may be missed or come twice. */
    records(options?: SplitShown & { batch?: number | undefined }):
        AsyncGenerator<SplitRecord<Numbers[K], F>, void, undefined>;
    [Symbol.asyncIterator](): AsyncGenerator<SplitRecord<Numbers[K], F>, void, undefined>;
    /** A record for each quantile from 0, the worst, to 1, the best; null: nobody is there. */
    quantile(q: Several<Word>, options?: SplitShown): Promise<(SplitRecord<Numbers[K], F> | null)[]>;

    /** How many members, or with scores from start to stop ("(5": without 5 itself; null: no limit). */
    count(start?: Word | null, stop?: Word | null, options?: SplitGroup): Promise<number>;
    /** The same by the values of one tag or two, most first. */
    countBy(by: Several<Word>, start?: Word | null, stop?: Word | null, options?: SplitGroup): Promise<ValueCount[]>;
    /** Members below the first edge, between edges, and from the last one up. */
    hist(edge: Several<Word>, options?: SplitGroup): Promise<number[]>;
}
