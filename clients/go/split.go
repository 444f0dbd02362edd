package leaderboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// One board over many keys, and so over many machines. docs/scale/one-board.md says what it promises.
//
// A member's board is that of shard crc32(name) % shards, for ever. The whole is in the order of packed key (larger is
// better), then shard, then rank in the shard. Places are found by cuts:
//
//	shard 0   90 - - - 70 - - - 40 - - - 10       LB.CUTS: ranks and packed keys, of the whole shard first,
//	shard 1   95 - - - 80 - - - 30 - - - 20       then of what is left of it
//	                       [ rank 6? ]            at most 3 + 1 members of each are before 40, at least 2 + 1
//
// What is read in the end is checked: records of each shard without a gap, and beyond them nothing that belongs in between.
// A round is one request for each shard, all sent at once.

// For tests, which make them small. cuts: of the first round, all shards together; of a later one four times as many at
// most. few: places from the top that are read without cuts. many: records that are read beside those asked for rather than
// another round taken.
var limits = struct{ cuts, few, many int64 }{2048, 128, 512}

const (
	cutsMax   = 10000 // that a shard takes
	walked    = 5000  // records at a time, by whoever wants all
	roundsMax = 40
	padMin    = 2 // records read beyond what is sought, on either side
	padMax    = 1000
	unknown   = -1 // the end of a shard
)

// BoardChanged is the error of a board that changed faster than a place on it could be found.
type BoardChanged struct{ Board, Sought string }

func (e *BoardChanged) Error() string {
	return fmt.Sprintf("leaderboard: %q changes too fast: no %s", e.Board, e.Sought)
}

// ShardOf is the shard of a member: crc32 as in zip and PNG, of the name in UTF-8, modulo shards.
func ShardOf(member string, shards int) int {
	return int(crc32.ChecksumIEEE([]byte(member)) % uint32(shards))
}

// SplitBoard is one board over the keys name:{0} to name:{shards - 1}, wherever they are. Ranks are those in the whole, and
// records have their Key.
type SplitBoard struct {
	client  redis.UniversalClient
	name    string
	end     string // of the shards' keys
	retries int
	boards  []*Board
	rounds  atomic.Int64
}

// SplitOptions say of which group the whole is (Where, Wherenot, or Within: the group of the member that is asked about),
// whether records have Tags, and whether members with the same fields share the best rank (Comp). Within is for Rank and
// Around, Comp for Rank and Get.
type SplitOptions struct {
	Where    Pairs
	Wherenot Pairs
	Within   []string
	Tags     bool
	Comp     bool
}

// NewSplit is for ever of so many shards: 1 to 16384.
func NewSplit(client redis.UniversalClient, name string, shards int) (*SplitBoard, error) {
	if shards < 1 || shards > 16384 {
		return nil, fmt.Errorf("leaderboard: shards: %d: 1 to 16384 are allowed", shards)
	}
	return newSplit(client, name, shards, "", 0), nil
}

func newSplit(client redis.UniversalClient, name string, shards int, end string, retries int) *SplitBoard {
	s := &SplitBoard{client: client, name: name, end: end, retries: retries}
	for shard := range shards {
		s.boards = append(s.boards, New(client, fmt.Sprintf("%s:{%d}%s", name, shard, end)).WithRetries(retries))
	}
	return s
}

// WithRetries is the same board, whose results and reads are sent again as by a Board.
func (s *SplitBoard) WithRetries(retries int) *SplitBoard {
	return newSplit(s.client, s.name, len(s.boards), s.end, retries)
}

// Archive is the board of an earlier period (PERIOD): Archive("2026-11-16").
func (s *SplitBoard) Archive(period string) *SplitBoard {
	return newSplit(s.client, s.name, len(s.boards), "@"+period, s.retries)
}

// Boards are the shards.
func (s *SplitBoard) Boards() []*Board { return slices.Clone(s.boards) }

// Rounds is how many there were: one is a request for each shard, all at once.
func (s *SplitBoard) Rounds() int64 { return s.rounds.Load() }

func (s *SplitBoard) shardOf(member string) int { return ShardOf(member, len(s.boards)) }

// BoardOf is the shard in which the member is, or would be. Ranks that it replies are those in the shard.
func (s *SplitBoard) BoardOf(member string) *Board { return s.boards[s.shardOf(member)] }

// askAll asks every shard in one round.
func askAll[T any](s *SplitBoard, ask func(shard int, board *Board) (T, error)) ([]T, error) {
	return askSome(s, len(s.boards), func(shard int) (T, error) { return ask(shard, s.boards[shard]) })
}

func askSome[T any](s *SplitBoard, count int, ask func(at int) (T, error)) ([]T, error) {
	places := make([]int, count)
	for i := range places {
		places[i] = i
	}
	if count > 0 {
		s.rounds.Add(1)
	}
	return together(places, ask)
}

// group is the indexes of members in one shard.
type group struct {
	shard   int
	indexes []int
}

func (s *SplitBoard) byShard(count int, member func(int) string) []group {
	byShard := map[int][]int{}
	for i := range count {
		shard := s.shardOf(member(i))
		byShard[shard] = append(byShard[shard], i)
	}
	var found []group
	for _, shard := range slices.Sorted(maps.Keys(byShard)) {
		found = append(found, group{shard, byShard[shard]})
	}
	return found
}

func picked[T any](all []T, indexes []int) []T {
	found := make([]T, len(indexes))
	for i, index := range indexes {
		found[i] = all[index]
	}
	return found
}

// total asks every shard, and adds up.
func (s *SplitBoard) total(ask func(board *Board) (int64, error)) (int64, error) {
	all, err := askAll(s, func(_ int, board *Board) (int64, error) { return ask(board) })
	return sumInteger(all), err
}

// Create makes every shard. What was interrupted is completed by the same call again.
func (s *SplitBoard) Create(ctx context.Context, options *CreateOptions) error {
	errs := make([]error, len(s.boards))
	_, _ = askAll(s, func(shard int, board *Board) (bool, error) {
		errs[shard] = board.Create(ctx, options)
		return true, nil
	})
	there := 0
	for _, err := range errs {
		if err != nil && !strings.HasPrefix(err.Error(), "BUSYKEY") {
			return err
		}
		if err != nil {
			there++
		}
	}
	if there == len(s.boards) {
		return errs[0]
	}
	if there == 0 {
		return nil
	}
	infos, err := askAll(s, func(_ int, board *Board) (BoardInfo, error) { return board.Info(ctx) })
	if err != nil {
		return err
	}
	for _, info := range infos {
		if info.Layout != infos[0].Layout {
			return fmt.Errorf("leaderboard: shards of %q have different layouts: %s, %s", s.name, infos[0].Layout, info.Layout)
		}
	}
	return nil
}

// Submit tells whether the result counts.
func (s *SplitBoard) Submit(ctx context.Context, member string, field Word, options *SubmitOptions) (bool, error) {
	if options != nil && options.Boards != nil {
		return false, errors.New("leaderboard: a result of a SplitBoard has no other boards")
	}
	s.rounds.Add(1)
	found, err := s.BoardOf(member).Submit(ctx, member, field, options)
	return err == nil && found[0].Counts, err
}

// Add writes each shard's own as a whole or not at all; an error comes when all have replied.
func (s *SplitBoard) Add(ctx context.Context, results []Entry, options *AddOptions) (int64, error) {
	if options != nil && options.Packed != nil {
		return 0, errors.New("leaderboard: a SplitBoard takes no packed keys")
	}
	groups := s.byShard(len(results), func(i int) string { return results[i].Member })
	counts, err := askSome(s, len(groups), func(i int) (int64, error) {
		return s.boards[groups[i].shard].Add(ctx, picked(results, groups[i].indexes), options)
	})
	return sumInteger(counts), err
}

// Tag changes tags of a member that is there.
func (s *SplitBoard) Tag(ctx context.Context, member string, tag map[string]string, options *TagOptions) (bool, error) {
	s.rounds.Add(1)
	return s.BoardOf(member).Tag(ctx, member, tag, options)
}

// Remove is by ZREM: in the module a `board` line must match the shards' names.
func (s *SplitBoard) Remove(ctx context.Context, members ...string) (int64, error) {
	groups := s.byShard(len(members), func(i int) string { return members[i] })
	counts, err := askSome(s, len(groups), func(i int) (int64, error) {
		return s.boards[groups[i].shard].Remove(ctx, picked(members, groups[i].indexes)...)
	})
	return sumInteger(counts), err
}

// Delete tells how many shards there were.
func (s *SplitBoard) Delete(ctx context.Context) (int64, error) {
	return s.total(func(board *Board) (int64, error) {
		isThere, err := board.Delete(ctx)
		if isThere {
			return 1, err
		}
		return 0, err
	})
}

// readOwn reads members from their shards in one round, with ranks in the shards. nil: it is not there.
func (s *SplitBoard) readOwn(ctx context.Context, members []string, options *GetOptions) ([]*Record, error) {
	found := make([]*Record, len(members))
	groups := s.byShard(len(members), func(i int) string { return members[i] })
	lists, err := askSome(s, len(groups), func(i int) ([]*Record, error) {
		return s.boards[groups[i].shard].Get(ctx, picked(members, groups[i].indexes), options)
	})
	for i, list := range lists {
		for j, index := range groups[i].indexes {
			found[index] = list[j]
		}
	}
	return found, err
}

// options are refused where they do nothing.
func (o *SplitOptions) known(mayWithin, mayComp bool) (SplitOptions, error) {
	found := orNone(o)
	if found.Within != nil && !mayWithin {
		return found, errors.New("leaderboard: Within is an option of Rank and Around")
	}
	if found.Comp && !mayComp {
		return found, errors.New("leaderboard: Comp is an option of Rank and Get")
	}
	return found, nil
}

func (o SplitOptions) get() *GetOptions {
	return &GetOptions{Where: o.Where, Wherenot: o.Wherenot, Tags: o.Tags, Comp: o.Comp, Withkey: true}
}

func (o SplitOptions) ranged() *RangeOptions {
	return &RangeOptions{Where: o.Where, Wherenot: o.Wherenot, Tags: o.Tags, Withkey: true}
}

// within are the options with the group of Within as Where: a round, if there is one. false: the member is not in the group.
func (s *SplitBoard) within(ctx context.Context, member string, o SplitOptions) (SplitOptions, bool, error) {
	if len(o.Within) == 0 {
		return o, true, nil
	}
	found, err := s.readOwn(ctx, []string{member}, &GetOptions{
		Where: o.Where, Wherenot: o.Wherenot, Within: o.Within, Tags: true})
	if err != nil || found[0] == nil {
		return o, false, err
	}
	where := Pairs{}
	for name, values := range o.Where {
		if !slices.ContainsFunc(o.Within, func(each string) bool { return strings.EqualFold(each, name) }) {
			where[name] = values
		}
	}
	for _, name := range o.Within {
		where[name] = []string{""}
		for tag, value := range found[0].Tags {
			if strings.EqualFold(tag, name) {
				where[name] = []string{value}
			}
		}
	}
	o.Where, o.Within = where, nil
	return o, true, nil
}

// at is the packed key that has in this shard all that is before the member above it: of lower shards those with the same
// key, too.
func (s *SplitBoard) at(member string, key Number, shard int, comp bool) string {
	if shard < s.shardOf(member) && !comp {
		return "=" + string(key)
	}
	return string(key)
}

// Rank is the member's record; nil: it is not there, or not in the group. Two rounds, three with Within.
func (s *SplitBoard) Rank(ctx context.Context, member string, options *SplitOptions) (*Record, error) {
	o, err := options.known(true, true)
	if err != nil {
		return nil, err
	}
	o, isThere, err := s.within(ctx, member, o)
	if err != nil || !isThere {
		return nil, err
	}
	found, err := s.Get(ctx, []string{member}, &o)
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// Get is the records of many, in two rounds; nil: it is not there.
func (s *SplitBoard) Get(ctx context.Context, members []string, options *SplitOptions) ([]*Record, error) {
	o, err := options.known(false, true)
	if err != nil {
		return nil, err
	}
	found, err := s.readOwn(ctx, members, o.get())
	if err != nil {
		return nil, err
	}
	var others []group // of each shard the members of others
	for shard := range s.boards {
		asked := group{shard: shard}
		for i, record := range found {
			if record != nil && s.shardOf(members[i]) != shard {
				asked.indexes = append(asked.indexes, i)
			}
		}
		if len(asked.indexes) > 0 {
			others = append(others, asked)
		}
	}
	counts, err := askSome(s, len(others), func(i int) ([]int64, error) {
		keys := make([]string, len(others[i].indexes))
		for j, index := range others[i].indexes {
			keys[j] = s.at(members[index], found[index].Key, others[i].shard, o.Comp)
		}
		return s.boards[others[i].shard].Above(ctx, keys, &AboveOptions{Where: o.Where, Wherenot: o.Wherenot, Comp: o.Comp})
	})
	for i, own := range counts {
		for j, index := range others[i].indexes {
			found[index].Rank += own[j]
		}
	}
	return found, err
}

// packed is a packed key, -2^63 to 2^64 - 1, as a number of two words.
type packed struct {
	high int
	low  uint64
}

func packedOf(key Number) packed {
	if value, err := strconv.ParseInt(string(key), 10, 64); err == nil {
		return packed{int(value >> 63), uint64(value)}
	}
	value, err := strconv.ParseUint(string(key), 10, 64)
	if err != nil {
		refuse(string(key), "a packed key")
	}
	return packed{0, value}
}

// place is one in the order of the whole.
type place struct {
	key    packed
	shard  int
	rank   int64
	record Record
}

func compare(a, b place) int {
	return cmp.Or(cmp.Compare(b.key.high, a.key.high), cmp.Compare(b.key.low, a.key.low),
		cmp.Compare(a.shard, b.shard), cmp.Compare(a.rank, b.rank))
}

func placesOf(shard int, records []Record) []place {
	found := make([]place, len(records))
	for i, each := range records {
		found[i] = place{packedOf(each.Key), shard, each.Rank, each}
	}
	return found
}

// merge is the records at the places first .. first + count - 1, or as many as there are; false: others may be in between.
// lists: of each shard records without a gap; ends: is the last of them the shard's last?
func merge(lists [][]place, ends []bool, first, count int64) ([]Record, bool) {
	begin, size := first, int64(0)
	var heads, tails []place
	for shard, own := range lists {
		size += int64(len(own))
		if len(own) > 0 && own[0].rank > 0 {
			heads = append(heads, own[0])
			begin -= own[0].rank
		}
		if len(own) > 0 && !ends[shard] {
			tails = append(tails, own[len(own)-1])
		}
	}
	if begin < 0 || (len(tails) > 0 && begin+count > size) {
		return nil, false
	}
	all := slices.Concat(lists...)
	slices.SortFunc(all, compare)
	wanted := all[min(begin, size):min(begin+count, size)]
	if len(wanted) > 0 {
		last := wanted[len(wanted)-1]
		if slices.ContainsFunc(heads, func(head place) bool { return compare(head, wanted[0]) > 0 }) ||
			slices.ContainsFunc(tails, func(tail place) bool { return compare(tail, last) < 0 }) {
			return nil, false
		}
	}
	found := make([]Record, len(wanted))
	for i, each := range wanted {
		found[i] = each.record
		found[i].Rank = first + int64(i)
	}
	return found, true
}

// Around is count records with the member in the middle; at the ends of the board, the count that are there. Two rounds,
// three with Within.
func (s *SplitBoard) Around(ctx context.Context, member string, count int64, options *SplitOptions) ([]Record, error) {
	o, err := options.known(true, false)
	if err == nil && count < 1 {
		err = fmt.Errorf("leaderboard: count: %d: a number from 1 on is allowed", count)
	}
	if err != nil {
		return nil, err
	}
	o, isThere, err := s.within(ctx, member, o)
	if err != nil || !isThere {
		return nil, err
	}
	size, own := 2*(count+1), s.shardOf(member)
	records, err := s.readOwn(ctx, []string{member}, o.get())
	if err != nil {
		return nil, err
	}
	record := records[0]
	for round := 0; record != nil && round < roundsMax; round++ {
		lists, err := askAll(s, func(shard int, board *Board) ([]place, error) {
			asked := AroundOptions{Where: o.Where, Wherenot: o.Wherenot, Tags: o.Tags, Withkey: true}
			name := member
			if shard != own {
				name, asked.Packed = "", s.at(member, record.Key, shard, false)
			}
			found, err := board.Around(ctx, name, size, &asked)
			return placesOf(shard, found), err
		})
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(lists[own], func(each place) bool { return each.record.Member == member })
		if at < 0 {
			return nil, nil
		}
		found := lists[own][at]
		if found.record.Key == record.Key { // else it has moved
			if records, ok := aroundOf(lists, found, size, count); ok {
				return records, nil
			}
		}
		record = &found.record
	}
	if record == nil {
		return nil, nil
	}
	return nil, &BoardChanged{s.name, fmt.Sprintf("records around %q", member)}
}

// aroundOf puts the place in the middle but where the board ends.
func aroundOf(lists [][]place, middle place, size, count int64) ([]Record, bool) {
	ends := make([]bool, len(lists))
	var first, before, all int64
	for shard, list := range lists {
		own := int64(0)
		for _, each := range list {
			if compare(each, middle) < 0 {
				own++
			}
		}
		ends[shard] = int64(len(list)) < size || own > size/2
		before += own
		all += int64(len(list))
		if len(list) > 0 {
			first += list[0].rank
		}
	}
	return merge(lists, ends, max(0, first+min(before-count/2, all-count)), count)
}

// Range is the records at the places start .. stop, which are 0 or more. Three rounds; one near the top; four with 64
// shards, or a billion members.
func (s *SplitBoard) Range(ctx context.Context, start, stop int64, options *SplitOptions) ([]Record, error) {
	o, err := options.known(false, false)
	if err == nil && (start < 0 || stop < 0) {
		err = fmt.Errorf("leaderboard: places %d to %d: numbers from 0 on are allowed", start, stop)
	}
	if err != nil || stop < start {
		return nil, err
	}
	return s.find(ctx, newSearch(start, stop-start+1, len(s.boards)), o, 1)
}

// Top is the best.
func (s *SplitBoard) Top(ctx context.Context, count int64, options *SplitOptions) ([]Record, error) {
	if count < 1 {
		return nil, fmt.Errorf("leaderboard: count: %d: a number from 1 on is allowed", count)
	}
	return s.Range(ctx, 0, count-1, options)
}

// Page is a page, the first is 1, and how many there are.
func (s *SplitBoard) Page(ctx context.Context, number, size int64, options *SplitOptions) (*Page, error) {
	return pageOf(number, size,
		func(start, stop int64) ([]Record, error) { return s.Range(ctx, start, stop, options) },
		func() (int64, error) {
			return s.Count(ctx, nil, nil, &SplitOptions{Where: orNone(options).Where, Wherenot: orNone(options).Wherenot})
		})
}

// Records are all, the best first: one that moves meanwhile may be missed or come twice.
func (s *SplitBoard) Records(ctx context.Context, options *SplitOptions) iter.Seq2[Record, error] {
	return recordsOf(walked, func(start, stop int64) ([]Record, error) { return s.Range(ctx, start, stop, options) })
}

// span is what may be sought in a shard: its members before first are better than all that are sought, those from end on
// are worse.
type span struct{ first, end int64 }

// search is for the count places from first on.
type search struct {
	first, count, pad int64
	isNarrow          bool
	shards            []span
}

func newSearch(first, count int64, shards int) *search {
	found := &search{first: first, count: count, pad: padMin}
	found.begin(shards)
	return found
}

// begin is at the beginning, or again.
func (s *search) begin(shards int) {
	s.isNarrow = shards == 1 || s.first+s.count <= limits.few
	s.shards = make([]span, shards)
	for shard := range s.shards {
		s.shards[shard].end = unknown
		if shards == 1 {
			s.shards[shard].first = s.first
		}
		if s.isNarrow {
			s.shards[shard].end = s.first + s.count
		}
	}
}

// left is how many members; unknown: all.
func (s *search) left() int64 {
	sum := int64(0)
	for _, each := range s.shards {
		if each.end == unknown {
			return unknown
		}
		sum += each.end - each.first
	}
	return sum
}

func sizeOf(cuts []place) int64 {
	if len(cuts) == 0 {
		return 0
	}
	return cuts[len(cuts)-1].rank + 1
}

// takeCuts takes those of what is left of each shard.
func (s *search) takeCuts(lists [][]place) {
	before := s.left()
	ends, all := make([]int64, len(lists)), int64(0)
	for shard, own := range s.shards {
		ends[shard] = own.end
		if own.end == unknown {
			ends[shard] = sizeOf(lists[shard])
		}
		all += ends[shard]
	}
	s.narrow(lists, ends, min(s.first+s.count, all)-1)
	left := s.left()
	s.isNarrow = left <= s.count+limits.many || (before != unknown && left >= before)
}

// narrow leaves of each shard what may be at the places first .. last. Each cut is before all that follow in the order, so of
// each shard it is known how many members are before it: at least, and at most.
func (s *search) narrow(lists [][]place, ends []int64, last int64) {
	shards := len(lists)
	ranks, passed := make([][]int64, shards), make([]int, shards)
	least, most, low := make([]int64, shards), make([]int64, shards), make([]int64, shards)
	var high []int64
	var leastSum, mostSum int64
	for shard, cuts := range lists {
		for _, each := range cuts {
			ranks[shard] = append(ranks[shard], each.rank)
		}
		ranks[shard] = append(ranks[shard], ends[shard])
		least[shard], low[shard], most[shard] = s.shards[shard].first, s.shards[shard].first, ranks[shard][0]
		leastSum += least[shard]
		mostSum += most[shard]
	}
	all := slices.Concat(lists...)
	slices.SortFunc(all, compare)
	for _, cut := range all {
		if mostSum <= s.first { // what is surely before this one is before all that are sought
			copy(low, least)
			low[cut.shard] = cut.rank
		}
		if high == nil && leastSum-least[cut.shard]+cut.rank >= last {
			high = slices.Clone(most)
			high[cut.shard] = cut.rank + 1
		}
		if high != nil && mostSum > s.first {
			break
		}
		passed[cut.shard]++
		following := ranks[cut.shard][passed[cut.shard]]
		leastSum += cut.rank + 1 - least[cut.shard]
		mostSum += following - most[cut.shard]
		least[cut.shard], most[cut.shard] = cut.rank+1, following
	}
	if high == nil {
		high = ends
	}
	for shard := range s.shards {
		s.shards[shard] = span{low[shard], max(low[shard], high[shard])}
	}
}

// ranges are the first and the last of the records to read in each shard: with some on either side, which show that nothing
// is missing.
func (s *search) ranges() []span {
	pad := s.pad
	if len(s.shards) == 1 {
		pad = 0
	}
	found := make([]span, len(s.shards))
	for shard, each := range s.shards {
		found[shard] = span{max(0, each.first-pad), each.end - 1 + pad}
	}
	return found
}

// records are those sought, from those of these ranges; false: the board has changed meanwhile.
func (s *search) records(lists [][]place) ([]Record, bool) {
	if len(lists) == 1 {
		found := make([]Record, len(lists[0]))
		for i, each := range lists[0] {
			found[i] = each.record
		}
		return found, true
	}
	ends := make([]bool, len(lists))
	for shard, each := range s.ranges() {
		ends[shard] = int64(len(lists[shard])) < each.end+1-each.first
		if each.first > 0 && len(lists[shard]) == 0 {
			return nil, false
		}
	}
	return merge(lists, ends, s.first, s.count)
}

// widen is after a change: it reads more on either side, or begins again.
func (s *search) widen() {
	s.pad *= 8
	if s.pad > padMax {
		s.pad = padMin
		s.begin(len(s.shards))
	}
}

// cuts is a round: cuts of what is left. c of them in each shard leave about 2 / c of it, and limits.many may remain.
// searches: how many there are at once.
func (s *SplitBoard) cuts(ctx context.Context, sought *search, searches int, o SplitOptions) ([][]place, error) {
	shards, left := int64(len(s.boards)), sought.left()
	count := min(cutsMax, limits.cuts/shards)
	if left != unknown {
		count = min(cutsMax, 4*limits.cuts/(shards*int64(searches)), 3*left/limits.many+2)
	}
	count = max(2, count)
	return askAll(s, func(shard int, board *Board) ([]place, error) {
		own := sought.shards[shard]
		if own.end == own.first {
			return nil, nil
		}
		var start, stop *int64
		if own.end != unknown {
			start, stop = new(own.first), new(own.end-1)
		}
		cuts, err := board.Cuts(ctx, count, start, stop, &CutsOptions{Where: o.Where, Wherenot: o.Wherenot})
		found := make([]place, len(cuts))
		for i, each := range cuts {
			found[i] = place{key: packedOf(each.Key), shard: shard, rank: each.Rank}
		}
		return found, err
	})
}

func (s *SplitBoard) find(ctx context.Context, sought *search, o SplitOptions, searches int) ([]Record, error) {
	for range roundsMax {
		if !sought.isNarrow {
			cuts, err := s.cuts(ctx, sought, searches, o)
			if err != nil {
				return nil, err
			}
			sought.takeCuts(cuts)
			continue
		}
		ranges := sought.ranges()
		lists, err := askAll(s, func(shard int, board *Board) ([]place, error) {
			found, err := board.Range(ctx, ranges[shard].first, ranges[shard].end, o.ranged())
			return placesOf(shard, found), err
		})
		if err != nil {
			return nil, err
		}
		if records, ok := sought.records(lists); ok {
			return records, nil
		}
		sought.widen()
	}
	return nil, &BoardChanged{s.name, fmt.Sprintf("place %d", sought.first)}
}

// Quantile is a record for each quantile from 0, the worst, to 1, the best: strings such as "0.5", or float64s; nil: nobody
// is there. Rounds as of a page, together.
func (s *SplitBoard) Quantile(ctx context.Context, quantiles []Word, options *SplitOptions) ([]*Record, error) {
	o, err := options.known(false, false)
	if err != nil {
		return nil, err
	}
	exact := make([]*big.Rat, len(quantiles))
	for i, each := range quantiles {
		r := newRequest(true)
		text := r.text(each)
		value, ok := new(big.Rat).SetString(text)
		if r.err != nil || !ok || value.Sign() < 0 || value.Cmp(big.NewRat(1, 1)) > 0 {
			return nil, fmt.Errorf("leaderboard: quantile: %v: decimals from 0 to 1 are allowed", each)
		}
		exact[i] = value
	}
	cuts, err := s.cuts(ctx, &search{shards: slices.Repeat([]span{{0, unknown}}, len(s.boards))}, 1, o)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for _, each := range cuts {
		total += sizeOf(each)
	}
	return together(exact, func(q *big.Rat) (*Record, error) {
		sought := newSearch(max(0, total-max(1, ceilOf(q, total))), 1, len(s.boards))
		if !sought.isNarrow {
			sought.takeCuts(cuts)
		}
		found, err := s.find(ctx, sought, o, len(quantiles))
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return &found[0], nil
	})
}

// ceilOf is the smallest integer that is not less than q * count.
func ceilOf(q *big.Rat, count int64) int64 {
	product := new(big.Int).Mul(q.Num(), big.NewInt(count))
	quotient, rest := new(big.Int).QuoRem(product, q.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient.Int64()
}

// scores are the arguments of Count: nil is no limit.
func scores(start, stop Word, o SplitOptions) (Word, Word, *CountOptions) {
	found := &CountOptions{Where: o.Where, Wherenot: o.Wherenot, Byscore: start != nil || stop != nil}
	if found.Byscore && start == nil {
		start = "-inf"
	}
	if found.Byscore && stop == nil {
		stop = "+inf"
	}
	return start, stop, found
}

// Count is how many members there are, or with scores from start to stop ("(5": without 5 itself; nil: no limit). One round.
func (s *SplitBoard) Count(ctx context.Context, start, stop Word, options *SplitOptions) (int64, error) {
	o, err := options.known(false, false)
	if err != nil {
		return 0, err
	}
	start, stop, asked := scores(start, stop, o)
	return s.total(func(board *Board) (int64, error) { return board.Count(ctx, start, stop, asked) })
}

// CountBy is the same by the values of one tag or two, most first.
func (s *SplitBoard) CountBy(ctx context.Context, by []string, start, stop Word, options *SplitOptions) ([]ValueCount, error) {
	o, err := options.known(false, false)
	if err != nil {
		return nil, err
	}
	start, stop, words := scores(start, stop, o)
	asked := CountByOptions(*words)
	lists, err := askAll(s, func(_ int, board *Board) ([]ValueCount, error) {
		return board.CountBy(ctx, by, start, stop, &asked)
	})
	if err != nil {
		return nil, err
	}
	rows, names := map[string]*ValueCount{}, func(row ValueCount) string {
		var all []string
		for _, each := range row.Values {
			all = append(all, orNone(each))
		}
		return strings.Join(all, "\x00")
	}
	for _, row := range slices.Concat(lists...) {
		name := names(row)
		if rows[name] == nil {
			rows[name] = &ValueCount{Values: row.Values}
		}
		rows[name].Count += row.Count
	}
	var found []ValueCount
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		found = append(found, *rows[name])
	}
	slices.SortStableFunc(found, func(a, b ValueCount) int { return cmp.Compare(b.Count, a.Count) })
	return found, nil
}

// Hist is members below the first edge, between edges, and from the last one up. One round.
func (s *SplitBoard) Hist(ctx context.Context, edges Word, options *SplitOptions) ([]int64, error) {
	o, err := options.known(false, false)
	if err != nil {
		return nil, err
	}
	all, err := askAll(s, func(_ int, board *Board) ([]int64, error) {
		return board.Hist(ctx, edges, &HistOptions{Where: o.Where, Wherenot: o.Wherenot})
	})
	if err != nil {
		return nil, err
	}
	return sumIntegers(all), nil
}
