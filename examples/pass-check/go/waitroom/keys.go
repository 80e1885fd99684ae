package waitroom

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Set is a JWK set by kid.
type Set map[string]*jose.JSONWebKey

func (s Set) Key(kid string) (*jose.JSONWebKey, error) { return s[kid], nil }

// ParseSet reads a JWK set. Kinds that we do not know are left out, symmetric ones too.
func ParseSet(document []byte) (Set, error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &raw); err != nil {
		return nil, err
	}
	set := Set{}
	for _, one := range raw.Keys {
		key := &jose.JSONWebKey{}
		if key.UnmarshalJSON(one) != nil || !key.IsPublic() || (key.Use != "" && key.Use != "sig") {
			continue
		}
		for _, alg := range algs {
			if key.Algorithm == string(alg) {
				set[key.KeyID] = key
			}
		}
	}
	if len(set) == 0 {
		return nil, errors.New("no key in the document can check a pass")
	}
	return set, nil
}

// RemoteKeys fetches the published keys when they are first needed, again every five minutes,
// and when a pass names a new one (at most every five seconds). If a fetch fails, they stay as
// they were.
type RemoteKeys struct {
	URL    string
	set    atomic.Pointer[Set]
	asked  atomic.Pointer[time.Time]
	asking sync.Mutex
}

func (r *RemoteKeys) Key(kid string) (*jose.JSONWebKey, error) {
	if r.due(kid) && r.mayAsk() {
		if r.due(kid) {
			if set, err := r.fetch(); err == nil {
				r.set.Store(&set)
			}
			now := time.Now()
			r.asked.Store(&now)
		}
		r.asking.Unlock()
	}
	if set := r.set.Load(); set != nil {
		return (*set)[kid], nil
	}
	return nil, errors.New("the keys of the waiting room could not be fetched")
}

func (r *RemoteKeys) due(kid string) bool {
	asked, set := r.asked.Load(), r.set.Load()
	if asked == nil {
		return true
	}
	known := set != nil && (*set)[kid] != nil
	age := time.Since(*asked)
	return age > 5*time.Minute || (!known && age > 5*time.Second)
}

// mayAsk takes the lock: one asks, the others go on with what there is, unless there is nothing.
func (r *RemoteKeys) mayAsk() bool {
	if r.set.Load() == nil {
		r.asking.Lock()
		return true
	}
	return r.asking.TryLock()
}

func (r *RemoteKeys) fetch() (Set, error) {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(r.URL)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	var document json.RawMessage
	if err := json.NewDecoder(http.MaxBytesReader(nil, answer.Body, 256<<10)).Decode(&document); err != nil {
		return nil, err
	}
	return ParseSet(document)
}
