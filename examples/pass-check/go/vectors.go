package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"time"

	"waitroom.dev/examples/pass-check/waitroom"
)

// vectors prints what becomes of each pass of the file, first the good ones.
func vectors(path string) {
	var file struct {
		Room          string
		Now           int64
		JWKS          json.RawMessage
		Good, Refused []struct {
			Pass      string
			Presented struct {
				Nonce     *string
				IP        *netip.Addr
				UserAgent *string `json:"user_agent"`
			}
		}
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		log.Fatal(err)
	}
	keys, err := waitroom.ParseSet(file.JWKS)
	if err != nil {
		log.Fatal(err)
	}
	checker := waitroom.Checker{Keys: keys, Room: file.Room}
	for _, one := range append(file.Good, file.Refused...) {
		_, err := checker.Check(one.Pass, time.Unix(file.Now, 0), waitroom.Shown(one.Presented))
		refused := waitroom.Refused("accepted")
		if err != nil && !errors.As(err, &refused) {
			log.Fatal(err)
		}
		fmt.Println(string(refused))
	}
}
