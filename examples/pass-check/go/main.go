// A shop that lets in only those who hold a pass: `go run .`
//
// WAITROOM_ROOM, WAITROOM_KEYS (…/.well-known/jwks.json), WAITROOM_PAGE (where to wait), PORT;
// WAITROOM_DEV=1 over plain HTTP, where a browser takes no `__Host-` cookie.
// `go run . vectors FILE` prints a line for each pass of docs/vectors/passes.json.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"waitroom.dev/examples/pass-check/waitroom"
)

// door stands before a handler and lets in whoever has a pass.
type door struct {
	checker waitroom.Checker
	page    string
	dev     bool
	next    http.Handler
}

// inside is where a handler finds the claims: r.Context().Value(inside{}).(*waitroom.Claims)
type inside struct{}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	arriving := query.Get("wr_pass")
	pass := arriving
	if pass == "" {
		pass = r.Header.Get("Waitroom-Pass")
	}
	if cookie, err := r.Cookie(d.cookie("", 0).Name); pass == "" && err == nil {
		pass = cookie.Value
	}
	now := time.Now()
	claims, err := (*waitroom.Claims)(nil), error(waitroom.Refused("pass_missing"))
	if pass != "" {
		claims, err = d.checker.Check(pass, now, shown(r))
	}
	if refused := waitroom.Refused(""); errors.As(err, &refused) {
		d.refuse(w, r, refused)
	} else if err != nil {
		log.Print(err) // never the pass
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
	} else if arriving != "" {
		// An address is copied, logged and sent as referrer: the pass moves to the cookie at once.
		query.Del("wr_pass")
		to := *r.URL
		to.Path, to.RawPath, to.RawQuery = "/"+strings.TrimLeft(to.Path, `/\`), "", query.Encode()
		d.redirect(w, to.RequestURI(), d.cookie(pass, int(claims.Ends.Unix()-now.Unix())))
	} else {
		d.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), inside{}, claims)))
	}
}

func (d *door) refuse(w http.ResponseWriter, r *http.Request, refused waitroom.Refused) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		d.redirect(w, d.page, d.cookie("", -1))
		return
	}
	http.SetCookie(w, d.cookie("", -1))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": string(refused), "waiting_room": d.page})
}

func (d *door) redirect(w http.ResponseWriter, to string, cookie *http.Cookie) {
	http.SetCookie(w, cookie)
	w.Header().Set("Location", to)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

func (d *door) cookie(value string, maxAge int) *http.Cookie {
	name := "__Host-wr-pass-" + d.checker.Room
	if d.dev {
		name = strings.TrimPrefix(name, "__Host-")
	}
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: maxAge,
		Secure: !d.dev, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// Behind a proxy of yours, take the address from what that proxy says.
func shown(r *http.Request) waitroom.Shown {
	var shown waitroom.Shown
	if address, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		ip := address.Addr()
		shown.IP = &ip
	}
	if agent := r.Header.Values("User-Agent"); len(agent) > 0 {
		shown.UserAgent = &agent[0]
	}
	return shown
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "vectors" {
		vectors(os.Args[2])
		return
	}
	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Welcome, %s.\n", r.Context().Value(inside{}).(*waitroom.Claims).Ticket)
	})
	checker := waitroom.Checker{
		Keys:   &waitroom.RemoteKeys{URL: os.Getenv("WAITROOM_KEYS")},
		Room:   os.Getenv("WAITROOM_ROOM"),
		Unseen: map[string]bool{"nonce": true},
	}
	door := &door{checker, os.Getenv("WAITROOM_PAGE"), os.Getenv("WAITROOM_DEV") != "", shop}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), door))
}
