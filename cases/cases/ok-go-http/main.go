package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
)

// A server answers four clients over kept connections.
func main() {
	n, _ := strconv.Atoi(os.Args[1])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello", r.URL.Path)
	}))
	var all sync.WaitGroup
	for c := 0; c < 4; c++ {
		all.Add(1)
		go func() {
			defer all.Done()
			client := &http.Client{Transport: &http.Transport{}}
			for i := 0; i < n/4; i++ {
				r, err := client.Get(server.URL)
				if err != nil {
					panic(err)
				}
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
		}()
	}
	all.Wait()
	fmt.Println("done")
}
