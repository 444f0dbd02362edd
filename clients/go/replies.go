package leaderboard

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"
)

// Number is a value with all its digits, as the server has it.
type Number string

// Int64 is the value, or an error: it is never rounded.
func (n Number) Int64() (int64, error) { return strconv.ParseInt(string(n), 10, 64) }

// Rat is the value, decimals and integers of any size, too.
func (n Number) Rat() (*big.Rat, error) {
	value, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return nil, fmt.Errorf("leaderboard: %q is no number", string(n))
	}
	return value, nil
}

// Record is what a board has of a member.
type Record struct {
	Member string
	// Rank 0 is the best.
	Rank int64
	// Time is when the values were reached: the zero time on boards without TIME.
	Time time.Time
	// Score is the first of Values.
	Score Number
	// Values are in the order of the layout.
	Values []Number
	// Percent, Key, Tags, Data and Since are there with the options Pct, Withkey, Tags, Data and Since. Key is the packed
	// key, Data the member's hash or the fields asked for (nil: there is no hash), Since the rank on the other board (nil:
	// it was not there).
	Percent float64
	Key     Number
	Tags    map[string]string
	Data    map[string]string
	Since   *int64
}

// Placed is a member's record after a write, nil if it is not on the board, and its rank before.
type Placed struct {
	Record *Record
	Before *int64
	// Repeated, with Withrepeat: did the id of Once come before?
	Repeated bool
}

// Result is the same on one of several boards. Counts: was the result written there?
type Result struct {
	Placed
	Board  string
	Counts bool
}

// BoardRecord is a member's record on one of its boards.
type BoardRecord struct {
	Board  string
	Record Record
}

// LeaguePlace is a member's place in a league. Other is of LeagueAdd the tier before, of LeagueGet the tier to come; nil:
// none. Outlook is of LeagueGet what would happen if the period ended now: up, stay or down.
type LeaguePlace struct {
	Tier     int64
	Room     *int64
	Record   *Record
	Other    *int64
	Outlook  string
	Repeated bool
}

// ValueCount is how many members have these values of the tags asked for; nil: none.
type ValueCount struct {
	Values []*string
	Count  int64
}

// Cut is a rank, and the packed key of the member there: larger is better.
type Cut struct {
	Rank int64
	Key  Number
}

// Ban is one of a member, on boards whose names match the pattern. The zero time: for ever.
// With a shadow the player goes on, and sees the own entry.
type Ban struct {
	Member  string
	Pattern string
	Until   time.Time
	Shadow  bool
}

// Step is a part of a walk. The next one begins at Cursor, and "0" is the end.
type Step[T any] struct {
	Cursor string
	Items  []T
}

// malformed is thrown by what reads replies, and caught in decode.
type malformed struct{ error }

func refuse(reply any, what string) {
	panic(malformed{fmt.Errorf("leaderboard: the server replied %T instead of %s", reply, what)})
}

// decode reads a reply.
func decode[T any](reply any, read func(any) T) (found T, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			bad, ok := thrown.(malformed)
			if !ok {
				panic(thrown)
			}
			found, err = *new(T), bad
		}
	}()
	return read(reply), nil
}

func text(reply any) string {
	switch value := reply.(type) {
	case string:
		return value
	case int64:
		return strconv.FormatInt(value, 10)
	case *big.Int:
		return value.String()
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case nil:
		return ""
	}
	refuse(reply, "text")
	return ""
}

func number(reply any) Number { return Number(text(reply)) }

// packedKey is one that packedOf can read.
func packedKey(reply any) Number {
	key := number(reply)
	packedOf(key)
	return key
}

func integer(reply any) int64 {
	value, err := strconv.ParseInt(text(reply), 10, 64)
	if err != nil {
		refuse(reply, "an integer")
	}
	return value
}

func flag(reply any) bool {
	value, ok := reply.(bool)
	return ok && value || !ok && integer(reply) == 1
}

// moment is the zero time if there is none.
func moment(reply any) time.Time {
	if reply == nil {
		return time.Time{}
	}
	return time.UnixMilli(integer(reply)).UTC()
}

func orNil[T any](reply any, read func(any) T) *T {
	if reply == nil {
		return nil
	}
	return new(read(reply))
}

func items(reply any) []any {
	found, ok := reply.([]any)
	if !ok && reply != nil {
		refuse(reply, "an array")
	}
	return found
}

// row is an array of at least so many.
func row(reply any, count int) []any {
	found := items(reply)
	if len(found) < count {
		refuse(reply, fmt.Sprintf("an array of %d", count))
	}
	return found
}

func list[T any](reply any, read func(any) T) []T {
	found := make([]T, 0, len(items(reply)))
	for _, each := range items(reply) {
		found = append(found, read(each))
	}
	return found
}

// mapOf is a map in RESP3, and names and values in RESP2.
func mapOf(reply any) map[string]any {
	found := map[string]any{}
	if named, ok := reply.(map[any]any); ok {
		for name, value := range named {
			found[text(name)] = value
		}
		return found
	}
	for pair := range slices.Chunk(items(reply), 2) {
		found[text(pair[0])] = row(pair, 2)[1]
	}
	return found
}

func texts(reply any) map[string]string {
	found := map[string]string{}
	for name, value := range mapOf(reply) {
		found[name] = text(value)
	}
	return found
}

// asked is what records were asked for, and the boards of results.
type asked struct {
	percent, key, tags, data, since bool
	fields                          []string
	boards                          []string
}

// record reads [member, rank, time, values ..., percent, key, tags, data, rank on another board], the last five if they
// were asked for.
func (a asked) record(reply any) Record {
	rest := row(reply, 4)
	pop := func(isThere bool) any {
		if !isThere {
			return nil
		}
		last := row(rest, 4)[len(rest)-1]
		rest = rest[:len(rest)-1]
		return last
	}
	var found Record
	found.Since = orNil(pop(a.since), integer)
	if data := pop(a.data); data != nil {
		found.Data = a.fieldsOf(data)
	}
	if tags := pop(a.tags); tags != nil {
		found.Tags = texts(tags)
	}
	if key := pop(a.key); key != nil {
		found.Key = packedKey(key)
	}
	if percent := pop(a.percent); percent != nil {
		value, err := strconv.ParseFloat(text(percent), 64)
		if err != nil {
			refuse(percent, "a decimal")
		}
		found.Percent = value
	}
	rest = row(rest, 4)
	found.Member, found.Rank, found.Time = text(rest[0]), integer(rest[1]), moment(rest[2])
	found.Values = list(rest[3:], number)
	found.Score = found.Values[0]
	return found
}

// fieldsOf are all of a hash, or those asked for that it has.
func (a asked) fieldsOf(reply any) map[string]string {
	if len(a.fields) == 0 {
		return texts(reply)
	}
	found, values := map[string]string{}, row(reply, len(a.fields))
	for i, name := range a.fields {
		if values[i] != nil {
			found[name] = text(values[i])
		}
	}
	return found
}

// at is an element that may be missing.
func at(row []any, place int) any {
	if place < len(row) {
		return row[place]
	}
	return nil
}

func repeated(reply any) bool { return reply != nil && flag(reply) }

func readInteger(reply any) int64             { return integer(reply) }
func readFlag(reply any) bool                 { return flag(reply) }
func readIntegers(reply any) []int64          { return list(reply, integer) }
func readBoard(reply any) BoardInfo           { return readBoardInfo(reply) }
func readLeague(reply any) LeagueInfo         { return readLeagueInfo(reply) }
func readBoards(reply any) Step[BoardSummary] { return readStep(reply, readBoardSummary) }
func readCuts(reply any) []Cut                { return list(reply, readCut) }
func readBans(reply any) Step[Ban]            { return readStep(reply, readBan) }
func readCounts(reply any) []ValueCount       { return list(reply, readCount) }
func readTagsEach(reply any) []map[string]string {
	return list(reply, func(each any) map[string]string {
		if each == nil {
			return nil
		}
		return texts(each)
	})
}

func readStep[T any](reply any, read func(any) T) Step[T] {
	found := row(reply, 2)
	return Step[T]{text(found[0]), list(found[1], read)}
}

func readCut(reply any) Cut {
	found := row(reply, 2)
	return Cut{integer(found[0]), packedKey(found[1])}
}

func readBan(reply any) Ban {
	found := row(reply, 4)
	return Ban{text(found[0]), text(found[1]), moment(found[2]), integer(found[3]) == 1}
}

func readCount(reply any) ValueCount {
	found := row(reply, 1)
	last := len(found) - 1
	return ValueCount{list(found[:last], func(each any) *string { return orNil(each, text) }), integer(found[last])}
}

func readRecords(a asked) func(any) []Record {
	return func(reply any) []Record { return list(reply, a.record) }
}

func readRecordsOrNone(a asked) func(any) []*Record {
	return func(reply any) []*Record {
		return list(reply, func(each any) *Record { return orNil(each, a.record) })
	}
}

func readPlaced(a asked) func(any) []Placed {
	return func(reply any) []Placed {
		return list(reply, func(each any) Placed {
			found := row(each, 2)
			return Placed{orNil(found[0], a.record), orNil(found[1], integer), repeated(at(found, 2))}
		})
	}
}

func readResults(a asked) func(any) []Result {
	return func(reply any) []Result {
		found := make([]Result, 0, len(a.boards))
		for i, each := range row(reply, len(a.boards)) {
			own := row(each, 3)
			found = append(found, Result{
				Placed: Placed{orNil(own[0], a.record), orNil(own[1], integer), repeated(at(own, 3))},
				Board:  a.boards[i], Counts: flag(own[2]),
			})
		}
		return found
	}
}

func readBoardRecords(a asked) func(any) []BoardRecord {
	return func(reply any) []BoardRecord {
		return list(reply, func(each any) BoardRecord {
			found := row(each, 2)
			return BoardRecord{text(found[0]), a.record(found[1])}
		})
	}
}

func readLeaguePlace(a asked) func(any) *LeaguePlace {
	return func(reply any) *LeaguePlace {
		if reply == nil || at(items(reply), 0) == nil {
			return nil
		}
		found := row(reply, 4)
		place := &LeaguePlace{Tier: integer(found[0]), Room: orNil(found[1], integer),
			Record: orNil(found[2], a.record), Other: orNil(found[3], integer)}
		// The last one is a word of LB.LEAGUE GET, or what Withrepeat asks LB.LEAGUE ADD for.
		switch last := at(found, 4); last {
		case "up", "stay", "down":
			place.Outlook = text(last)
		default:
			place.Repeated = repeated(last)
		}
		return place
	}
}

// What all nodes of a cluster have replied, as one reply.

func sumInteger(all []int64) int64 {
	var sum int64
	for _, each := range all {
		sum += each
	}
	return sum
}

func sumFlag(all []bool) bool { return slices.Contains(all, true) }

func sumIntegers(all [][]int64) []int64 {
	sum := slices.Clone(all[0])
	for _, each := range all[1:] {
		for i := range min(len(sum), len(each)) {
			sum[i] += each[i]
		}
	}
	return sum
}

func sumBoardRecords(all [][]BoardRecord) []BoardRecord { return slices.Concat(all...) }
