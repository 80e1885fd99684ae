// Package waitroom checks passes of a waiting room. Copy this folder; it needs go-jose and
// nothing else.
//
// The steps and their codes are those of docs/passes.md. go-jose checks the signature; the rest
// is read here, because a general library does not know what we sign.
package waitroom

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Refused says why, in the words of docs/passes.md.
type Refused string

func (code Refused) Error() string { return "the pass is refused: " + string(code) }

// Claims of a pass that was found good.
type Claims struct {
	Ticket string
	Room   string
	Issued time.Time
	Ends   time.Time
}

// Checker holds what is asked of a pass.
type Checker struct {
	Keys   Keys
	Room   string
	Leeway time.Duration
	// Bindings that this server can never see, such as a cookie of another host.
	Unseen map[string]bool
}

// Keys finds a published key by its kid; nil when there is none.
type Keys interface {
	Key(kid string) (*jose.JSONWebKey, error)
}

const (
	bytesMax = 4096
	timeMaxS = 253402300799 // the end of the year 9999; more is milliseconds
	aheadMax = 300 * time.Second
)

var (
	strict = base64.RawURLEncoding.Strict()
	ticket = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	algs   = []jose.SignatureAlgorithm{jose.ES256, jose.RS256, jose.EdDSA}
)

// Check returns the claims of pass, a Refused, or the error that kept it from the keys.
func (c *Checker) Check(pass string, now time.Time, shown Shown) (*Claims, error) {
	if len(pass) > bytesMax {
		return nil, Refused("too_long")
	}
	header, err := headerOf(pass)
	if err != nil {
		return nil, err
	}
	_, crit := header["crit"]
	_, b64 := header["b64"]
	if crit || b64 {
		return nil, Refused("crit_unknown")
	}
	if header["typ"] != "JWT" {
		return nil, Refused("type_wrong")
	}
	kid, _ := header["kid"].(string)
	key, err := c.Keys.Key(kid)
	if err != nil {
		return nil, err
	}
	if key == nil || kid == "" {
		return nil, Refused("key_unknown")
	}
	// The key says which algorithm it is for; the header never chooses.
	if header["alg"] != key.Algorithm {
		return nil, Refused("alg_wrong")
	}
	signed, err := jose.ParseSignedCompact(pass, algs)
	if err != nil {
		return nil, Refused("signature_wrong")
	}
	payload, err := signed.Verify(key.Key)
	if err != nil {
		return nil, Refused("signature_wrong")
	}
	claims, bound, err := claimsOf(payload)
	if err != nil {
		return nil, err
	}
	switch {
	case claims.Room != c.Room:
		return nil, Refused("room_other")
	case claims.Issued.After(now.Add(aheadMax)):
		return nil, Refused("not_yet")
	case !now.Before(claims.Ends.Add(c.Leeway)):
		return nil, Refused("expired")
	}
	return claims, bound.check(claims.Ticket, shown, c.Unseen)
}

func headerOf(pass string) (map[string]any, error) {
	parts := strings.Split(pass, ".")
	if len(parts) != 3 || strings.ContainsAny(pass, "\r\n") {
		return nil, Refused("malformed")
	}
	var header map[string]any
	for at, part := range parts {
		decoded, err := strict.DecodeString(part)
		if err != nil {
			return nil, Refused("malformed")
		}
		if at == 0 && (json.Unmarshal(decoded, &header) != nil || header == nil) {
			return nil, Refused("malformed")
		}
	}
	return header, nil
}

func claimsOf(payload []byte) (*Claims, *binding, error) {
	var said map[string]json.RawMessage
	wrong := Refused("claims_wrong")
	if json.Unmarshal(payload, &said) != nil || said["aud"] != nil || said["nbf"] != nil {
		return nil, nil, wrong
	}
	// By hand, since encoding/json takes `Sub` for `sub` and null for anything.
	sub, room := text(said["sub"]), text(said["room"])
	iat, exp := whole(said["iat"]), whole(said["exp"])
	bound, err := bindingOf(said["bnd"])
	if sub == nil || !ticket.MatchString(*sub) || room == nil || iat == nil || exp == nil || err != nil {
		return nil, nil, wrong
	}
	if *iat < 0 || *iat >= *exp || *exp > timeMaxS {
		return nil, nil, wrong
	}
	return &Claims{*sub, *room, time.Unix(*iat, 0), time.Unix(*exp, 0)}, bound, nil
}

func text(raw json.RawMessage) *string {
	var value *string
	if raw == nil || json.Unmarshal(raw, &value) != nil {
		return nil
	}
	return value
}

func whole(raw json.RawMessage) *int64 {
	var value *int64
	if raw == nil || bytes.ContainsAny(raw, ".eE") || json.Unmarshal(raw, &value) != nil {
		return nil
	}
	return value
}
