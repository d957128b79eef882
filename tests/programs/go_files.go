// A server whose handler reads a file, and its clients in the same process. Prints ten times a second how many requests
// have been answered.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := os.ReadFile(os.Args[1])
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "%d bytes\n", len(b))
	}))
	var done atomic.Int64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	for i := 0; i < 8; i++ {
		go func() {
			for {
				r, err := client.Get("http://" + l.Addr().String() + "/")
				if err != nil {
					panic(err)
				}
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
				done.Add(1)
			}
		}()
	}
	for {
		time.Sleep(100 * time.Millisecond)
		fmt.Println(done.Load())
	}
}
