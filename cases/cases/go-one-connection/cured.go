package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// A link checker: eight goroutines ask one host, which takes 20 ms a page and serves any number at once.
func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		fmt.Fprintf(w, "page %s", r.URL.Path)
	}))
	client := &http.Client{Transport: &http.Transport{
		MaxConnsPerHost:     8,
		MaxIdleConnsPerHost: 8,
	}}
	sizes := make([]int, 64)
	var wg sync.WaitGroup
	for g := 0; g < 8; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := g; i < len(sizes); i += 8 {
				resp, err := client.Get(fmt.Sprintf("http://%s/p/%d", l.Addr(), i*i))
				if err != nil {
					os.Exit(1)
				}
				b, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				sizes[i] = len(b)
			}
		}()
	}
	wg.Wait()
	sum := 0
	for i, n := range sizes {
		if i%8 == 0 {
			fmt.Println(i, n)
		}
		sum += n
	}
	fmt.Println("sum", sum)
}
