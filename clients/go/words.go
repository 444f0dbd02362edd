package leaderboard

import (
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Word is an argument: a string, a Number, an integer of any type, a *big.Int, a float64, or a slice of these where the
// command takes several. Nil and "" are not given. A float64 beyond 2^53 is refused.
type Word = any

// Time is an argument: a time.Time, unix milliseconds, or text as the command takes it. The zero time.Time is not given.
type Time = any

// Pairs are names and values, such as {"country": {"DE", "FR"}}.
type Pairs map[string][]string

// Entry is a result: the values of a member, one for each field of the board.
type Entry struct {
	Member string
	Values []Word
}

// Of is the result of a member: Of("ann", 500).
func Of(member string, values ...Word) Entry {
	return Entry{Member: member, Values: values}
}

// Of a parameter that has to be given; of one that is sent with the number of its values; of one of several alternatives.
type (
	needed struct {
		name  string
		value any
	}
	counted struct{ value any }
	given   struct {
		name  string
		value any
	}
)

// request is the words of a command. An error in one of them is that of the whole, and nothing is sent.
type request struct {
	isRead bool
	words  []any
	keys   []string // in a cluster by the first one
	keyAt  int
	id     string // of the result, if it has one
	err    error
}

func newRequest(isRead bool, name ...string) *request {
	r := &request{isRead: isRead}
	for _, each := range name {
		r.word(each)
	}
	return r
}

func orNone[T any](options *T) T {
	if options == nil {
		return *new(T)
	}
	return *options
}

func (r *request) fail(format string, values ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("leaderboard: "+format, values...)
	}
}

func (r *request) word(text string) { r.words = append(r.words, text) }

func (r *request) board(key string) {
	r.keyAt, r.keys = len(r.words), []string{key}
	r.word(key)
}

func (r *request) boards(own string, keys []string) {
	if keys == nil {
		keys = []string{own}
	}
	if len(keys) == 0 {
		r.fail("boards: none")
	}
	r.word(strconv.Itoa(len(keys)))
	r.keyAt, r.keys = len(r.words), keys
	for _, key := range keys {
		r.word(key)
	}
}

func (r *request) flag(isGiven bool, token string) {
	if isGiven {
		r.word(token)
	}
}

// values are the token, if there is one, and the parts.
func (r *request) values(token string, parts ...any) {
	var words []any
	for _, part := range parts {
		groups, isGiven := r.groups(part)
		if !isGiven {
			return
		}
		for _, group := range groups {
			words = append(words, group...)
		}
	}
	if token != "" {
		r.word(token)
	}
	r.words = append(r.words, words...)
}

// each has the token before each group.
func (r *request) each(token string, part any) {
	groups, _ := r.groups(part)
	for _, group := range groups {
		r.word(token)
		r.words = append(r.words, group...)
	}
}

// split is in the syntax of the command: one text with blanks, or a slice.
func (r *request) split(value Word, token string) {
	if text, ok := value.(string); ok {
		value = strings.Fields(text)
	}
	if isNone(value) {
		return
	}
	r.values(token, value)
}

// alternatives exclude each other.
func (r *request) alternatives(isNeeded bool, all ...given) {
	var names, found []string
	for _, each := range all {
		names = append(names, each.name)
		if !isNone(each.value) {
			found = append(found, each.name)
		}
	}
	if len(found) > 1 {
		r.fail("%s exclude each other", strings.Join(found, " and "))
	}
	if len(found) == 0 && isNeeded {
		r.fail("one of these is needed: %s", strings.Join(names, ", "))
	}
}

func isNone(value any) bool {
	if value == nil {
		return true
	}
	found := reflect.ValueOf(value)
	switch found.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return found.IsNil()
	case reflect.String, reflect.Bool:
		return found.IsZero()
	}
	moment, ok := value.(time.Time)
	return ok && moment.IsZero()
}

// groups are the words of a part: of one value or several a group for each, of names and values one for each pair. Those of
// a map come in the order of their names.
func (r *request) groups(part any) (groups [][]any, isGiven bool) {
	pair := func(name, value any) { groups = append(groups, []any{name, r.text(value)}) }
	switch value := part.(type) {
	case needed:
		groups, isGiven = r.groups(value.value)
		if _, isText := value.value.(string); isText {
			return [][]any{{value.value}}, true
		}
		if !isGiven {
			r.fail("%s is needed", value.name)
		}
		return groups, isGiven
	case counted:
		groups, isGiven = r.groups(value.value)
		if item, ok := value.value.(needed); isGiven && len(groups) == 0 {
			r.fail("%s: none", item.name)
			return nil, ok
		}
		return append([][]any{{strconv.Itoa(len(groups))}}, groups...), isGiven
	}
	if isNone(part) {
		return nil, false
	}
	switch value := part.(type) {
	case Pairs:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			for _, each := range value[name] {
				pair(name, each)
			}
		}
	case map[string]string:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			pair(name, value[name])
		}
	case map[string]int64:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			pair(name, value[name])
		}
	case []Entry:
		for _, each := range value {
			var words []any
			for _, word := range each.Values {
				words = append(words, r.text(word))
			}
			groups = append(groups, append(words, each.Member))
		}
	default:
		if list := reflect.ValueOf(part); list.Kind() == reflect.Slice {
			for i := range list.Len() {
				groups = append(groups, []any{r.text(list.Index(i).Interface())})
			}
			break
		}
		groups = [][]any{{r.text(part)}}
	}
	return groups, true
}

// text is an argument, exactly.
func (r *request) text(value any) string {
	switch value := value.(type) {
	case time.Time:
		return strconv.FormatInt(value.UnixMilli(), 10)
	case *big.Int:
		return value.String()
	case float64:
		if value < -1<<53 || value > 1<<53 || value != value {
			r.fail("%v is beyond what a float64 holds exactly: give an integer or a string", value)
		}
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	found := reflect.ValueOf(value)
	switch {
	case !found.IsValid():
	case found.Kind() == reflect.Pointer && !found.IsNil():
		return r.text(found.Elem().Interface())
	case found.Kind() == reflect.String:
		return found.String()
	case found.CanInt():
		return strconv.FormatInt(found.Int(), 10)
	case found.CanUint():
		return strconv.FormatUint(found.Uint(), 10)
	}
	r.fail("a %T is no argument: a string, a Number, an integer, a *big.Int, a float64 or a time.Time is", value)
	return ""
}
