package waitroom

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/netip"
)

// Shown is what a request shows of where it comes from; nil where that cannot be known.
type Shown struct {
	Nonce     *string
	IP        *netip.Addr
	UserAgent *string
}

type binding struct {
	nonce, ip, ua *string
	bits          *int64
}

// Whatever is bound must be understood: an unknown member means that the pass is refused.
func bindingOf(raw json.RawMessage) (*binding, error) {
	bound := &binding{}
	if raw == nil {
		return bound, nil
	}
	var said map[string]json.RawMessage
	if json.Unmarshal(raw, &said) != nil || said == nil {
		return nil, Refused("claims_wrong")
	}
	for name, value := range said {
		known := false
		switch name {
		case "nonce":
			bound.nonce = text(value)
			known = bound.nonce != nil
		case "ip":
			bound.ip = text(value)
			known = bound.ip != nil
		case "ua":
			bound.ua = text(value)
			known = bound.ua != nil
		case "ip_bits":
			bound.bits = whole(value)
			known = bound.bits != nil && *bound.bits >= 0 && *bound.bits <= 255
		}
		if !known {
			return nil, Refused("claims_wrong")
		}
	}
	if (bound.ip == nil) != (bound.bits == nil) {
		return nil, Refused("claims_wrong")
	}
	return bound, nil
}

func (b *binding) check(ticket string, shown Shown, unseen map[string]bool) error {
	var network *string
	if b.ip != nil && shown.IP != nil {
		made := networkOf(*shown.IP, int(*b.bits))
		network = &made
	}
	for _, part := range []struct {
		kind         string
		bound, shown *string
	}{{"nonce", b.nonce, shown.Nonce}, {"ip", b.ip, network}, {"ua", b.ua, shown.UserAgent}} {
		if part.bound == nil || unseen[part.kind] {
			continue
		}
		if part.shown == nil {
			return Refused("binding_missing")
		}
		hash := sha256.Sum256([]byte("waitroom/v1/bind/" + part.kind + "\x00" + ticket + "\x00" + *part.shown))
		digest := base64.RawURLEncoding.EncodeToString(hash[:16])
		if subtle.ConstantTimeCompare([]byte(digest), []byte(*part.bound)) != 1 {
			return Refused("binding_wrong")
		}
	}
	return nil
}

// Family, prefix length, and the address with all later bits cleared.
func networkOf(address netip.Addr, bits int) string {
	address = address.Unmap().WithZone("")
	family := byte(6)
	if address.Is4() {
		family = 4
	}
	prefix, _ := address.Prefix(min(bits, address.BitLen()))
	return string(append([]byte{family, byte(bits)}, prefix.Addr().AsSlice()...))
}
