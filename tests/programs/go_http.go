// A server and its clients in one process, over the loopback.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, 4000))
	}))
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for g := 0; g < 4; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < 50; i++ {
				r, err := http.Get("http://" + l.Addr().String() + "/")
				if err != nil {
					panic(err)
				}
				b, err := io.ReadAll(r.Body)
				r.Body.Close()
				if err != nil {
					panic(err)
				}
				mu.Lock()
				total += len(b)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	fmt.Println(total)
}
