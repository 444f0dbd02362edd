// Package leaderboard has typed boards of a leaderboard server, or of its module in Redis and Valkey, over go-redis.
//
// There is a method for each LB. command. They are in commands.go, which `make clients` writes from the server's table of
// commands. What is more than a command is here and in split.go.
package leaderboard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Board is one board. Commands without a key are about its database, in a cluster about all nodes. It can be used by many
// goroutines at once.
type Board struct {
	client  redis.UniversalClient
	key     string
	retries int
}

// New is a board by a client of go-redis: a Client, a ClusterClient, a Ring, or one that follows Sentinel.
func New(client redis.UniversalClient, key string) *Board {
	return &Board{client: client, key: key}
}

// WithRetries is the same board, whose results get an id (ONCE), and are sent again with it up to so many times while there
// is no reply, with pauses of 10 ms to 1 s: a result counts once. What reads is sent again, too.
func (b *Board) WithRetries(retries int) *Board { return &Board{b.client, b.key, retries} }

// Named is another board, by the same client and retries.
func (b *Board) Named(key string) *Board { return &Board{b.client, key, b.retries} }

// Key is the board's key.
func (b *Board) Key() string { return b.key }

// idOf is the id of a result, drawn if it may have to be sent again. LB.ADD PACKED takes none.
func (b *Board) idOf(own string, mayHave bool) string {
	if own == "" && mayHave && b.retries > 0 {
		return rand.Text()
	}
	return own
}

// sentOnce is a command that go-redis does not send again by itself.
type sentOnce struct{ *redis.Cmd }

func (sentOnce) NoRetry() bool { return true }

// isFinal: is there a reply, or will there be none? After some errors another one may be replied.
func isFinal(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, redis.ErrClosed) {
		return true
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, each := range passing {
		if strings.HasPrefix(reply.Error(), each+" ") {
			return false
		}
	}
	return true
}

// send asks once, and again while there is no reply, if that does no harm.
func (b *Board) send(ctx context.Context, client redis.Cmdable, r *request) (any, error) {
	if r.err != nil {
		return nil, r.err
	}
	tries := 0
	if r.isRead || r.id != "" {
		tries = b.retries
	}
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		command := redis.NewCmd(ctx, r.words...)
		command.SetFirstKeyPos(int8(r.keyAt))
		var sent redis.Cmder = sentOnce{command}
		if r.isRead && tries == 0 {
			sent = command
		}
		err := client.(interface {
			Process(context.Context, redis.Cmder) error
		}).Process(ctx, sent)
		if errors.Is(err, redis.Nil) {
			return nil, nil
		}
		if err == nil || tries == 0 || isFinal(ctx, err) {
			return command.Val(), err
		}
		tries--
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// run asks the node that has the key.
func (b *Board) run(ctx context.Context, r *request) (any, error) { return b.send(ctx, b.client, r) }

func on[T any](b *Board, ctx context.Context, r *request, read func(any) T) (T, error) {
	reply, err := b.run(ctx, r)
	if err != nil {
		return *new(T), err
	}
	return decode(reply, read)
}

func (b *Board) create(ctx context.Context, r *request, mayExist bool) error {
	_, err := b.run(ctx, r)
	if mayExist && err != nil && strings.HasPrefix(err.Error(), "BUSYKEY") {
		return nil
	}
	return err
}

// nodes are the clients of all nodes that have keys, in a cluster of its masters.
func (b *Board) nodes(ctx context.Context) ([]redis.UniversalClient, error) {
	var found []redis.UniversalClient
	var lock sync.Mutex
	add := func(_ context.Context, node *redis.Client) error {
		lock.Lock()
		defer lock.Unlock()
		found = append(found, node)
		return nil
	}
	switch client := b.client.(type) {
	case *redis.ClusterClient:
		return found, client.ForEachMaster(ctx, add)
	case *redis.Ring:
		return found, client.ForEachShard(ctx, add)
	}
	return []redis.UniversalClient{b.client}, nil
}

// onAll asks all nodes at once. The error is that of the first one that failed.
func onAll[T any](b *Board, ctx context.Context, r *request, read func(any) T, sum func([]T) T) (T, error) {
	nodes, err := b.nodes(ctx)
	if err != nil {
		return *new(T), err
	}
	found, err := together(nodes, func(node redis.UniversalClient) (T, error) {
		return on(b.by(node), ctx, r, read)
	})
	if err != nil {
		return *new(T), err
	}
	return sum(found), nil
}

func (b *Board) by(client redis.UniversalClient) *Board { return &Board{client, b.key, b.retries} }

// onOne asks the only node.
func onOne[T any](b *Board, ctx context.Context, r *request, read func(any) T) (T, error) {
	nodes, err := b.nodes(ctx)
	if err == nil && len(nodes) != 1 {
		err = fmt.Errorf("leaderboard: each node of a cluster has a cursor of its own: use Boards or Banned")
	}
	if err != nil {
		return *new(T), err
	}
	return on(b.by(nodes[0]), ctx, r, read)
}

// together calls all at once. The error is that of the first one that failed, when all have ended.
func together[From, To any](from []From, call func(From) (To, error)) ([]To, error) {
	found, failed := make([]To, len(from)), make([]error, len(from))
	var all sync.WaitGroup
	for i, each := range from {
		all.Go(func() { found[i], failed[i] = call(each) })
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Top is the best, with the options of Range.
func (b *Board) Top(ctx context.Context, count int64, options *RangeOptions) ([]Record, error) {
	if count < 1 {
		return nil, fmt.Errorf("leaderboard: count: %d: a number from 1 on is allowed", count)
	}
	return b.Range(ctx, 0, count-1, options)
}

// Rank is a member's place, 0 is the best, with the options of Get, and whether it is there.
func (b *Board) Rank(ctx context.Context, member string, options *GetOptions) (int64, bool, error) {
	found, err := b.Get(ctx, []string{member}, options)
	if err != nil || found[0] == nil {
		return 0, false, err
	}
	return found[0].Rank, true, nil
}

// Score is a member's first field, and whether it is there.
func (b *Board) Score(ctx context.Context, member string) (Number, bool, error) {
	found, err := b.Get(ctx, []string{member}, nil)
	if err != nil || found[0] == nil {
		return "", false, err
	}
	return found[0].Score, true, nil
}

// Remove is by ZREM; it tells how many were there. In the module a `board` line must match the board's name.
func (b *Board) Remove(ctx context.Context, members ...string) (int64, error) {
	r := newRequest(false, "ZREM")
	r.board(b.key)
	r.values("", needed{"members", members})
	return on(b, ctx, r, readInteger)
}

// Delete tells whether there was a board.
func (b *Board) Delete(ctx context.Context) (bool, error) {
	r := newRequest(false, "UNLINK")
	r.board(b.key)
	return on(b, ctx, r, readFlag)
}

// Page is one of several, the first is 1. Count is the number of all records.
type Page struct {
	Number, Pages, Count int64
	Records              []Record
}

// Page is by two commands: a result that comes in between is in one of them.
func (b *Board) Page(ctx context.Context, number, size int64, options *RangeOptions) (*Page, error) {
	o := orNone(options)
	if err := o.ofRanks(); err != nil {
		return nil, err
	}
	return pageOf(number, size,
		func(start, stop int64) ([]Record, error) { return b.Range(ctx, start, stop, options) },
		func() (int64, error) {
			return b.Count(ctx, nil, nil, &CountOptions{Where: o.Where, Wherenot: o.Wherenot})
		})
}

func pageOf(number, size int64, read func(start, stop int64) ([]Record, error), count func() (int64, error)) (*Page, error) {
	if number < 1 || size < 1 {
		return nil, fmt.Errorf("leaderboard: page %d of size %d: numbers from 1 on are allowed", number, size)
	}
	records, err := read((number-1)*size, number*size-1)
	if err != nil {
		return nil, err
	}
	all, err := count()
	if err != nil {
		return nil, err
	}
	return &Page{Number: number, Pages: (all + size - 1) / size, Count: all, Records: records}, nil
}

// Records are all, the best first, read batch ranks at a time: one that moves meanwhile may be missed or come twice. After
// an error there are no more.
func (b *Board) Records(ctx context.Context, batch int64, options *RangeOptions) iter.Seq2[Record, error] {
	return recordsOf(batch, func(start, stop int64) ([]Record, error) {
		if err := orNone(options).ofRanks(); err != nil {
			return nil, err
		}
		return b.Range(ctx, start, stop, options)
	})
}

// ofRanks refuses the options of scores.
func (o RangeOptions) ofRanks() error {
	if o.Byscore || o.Limit != nil {
		return errors.New("leaderboard: Byscore and Limit are no options of pages")
	}
	return nil
}

func recordsOf(batch int64, read func(start, stop int64) ([]Record, error)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if batch < 1 {
			yield(Record{}, fmt.Errorf("leaderboard: batch: %d: a number from 1 on is allowed", batch))
			return
		}
		for start := int64(0); ; start += batch {
			records, err := read(start, start+batch-1)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, each := range records {
				if !yield(each, nil) {
					return
				}
			}
			if int64(len(records)) < batch {
				return
			}
		}
	}
}

// Boards are all of the database, in a cluster those of one node after another. The options' Cursor is not used.
func (b *Board) Boards(ctx context.Context, options *ListOptions) iter.Seq2[BoardSummary, error] {
	return steps(b, ctx, func(node *Board, cursor string) (Step[BoardSummary], error) {
		o := orNone(options)
		o.Cursor = cursor
		return node.List(ctx, &o)
	})
}

// Banned are all bans of the database.
func (b *Board) Banned(ctx context.Context, options *BansOptions) iter.Seq2[Ban, error] {
	return steps(b, ctx, func(node *Board, cursor string) (Step[Ban], error) {
		o := orNone(options)
		o.Cursor = cursor
		return node.Bans(ctx, &o)
	})
}

func steps[T any](b *Board, ctx context.Context, next func(*Board, string) (Step[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		nodes, err := b.nodes(ctx)
		for _, node := range nodes {
			for cursor, isFirst := "0", true; err == nil && (isFirst || cursor != "0"); isFirst = false {
				var step Step[T]
				step, err = next(b.by(node), cursor)
				cursor = step.Cursor
				for _, each := range step.Items {
					if !yield(each, nil) {
						return
					}
				}
			}
		}
		if err != nil {
			yield(*new(T), err)
		}
	}
}
