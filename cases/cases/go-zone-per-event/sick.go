package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"time"
)

type event struct {
	at   int64
	zone string
	body [3000]byte
}


func local(e *event) time.Time {
	loc, err := time.LoadLocation(e.zone)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return time.Unix(e.at, 0).In(loc)
}

func main() {
	names := []string{"Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Sydney"}
	perHour := [24]int{}
	chain := [32]byte{}
	for i := 0; i < 7000; i++ {
		e := event{at: 1700000000 + int64(i)*977, zone: names[i*i%4]}
		binary.LittleEndian.PutUint64(e.body[:], uint64(i))
		for k := 0; k < 50; k++ { // the audit chain
			copy(e.body[100:], chain[:])
			chain = sha256.Sum256(e.body[:])
		}
		perHour[local(&e).Hour()]++
	}
	for h, n := range perHour {
		fmt.Println(h, n)
	}
	fmt.Printf("%x\n", chain)
}
