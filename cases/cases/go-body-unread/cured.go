// The same with each body read to its end: one connection serves all.
package main

import (
	"io"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
)

func serve(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Path[1:])
	w.Header().Set("X-Stock", strconv.Itoa(n*37%11))
	fmt.Fprintln(w, strings.Repeat("x", 600))
}

func stock(client *http.Client, url string) int {
	answer, err := client.Get(url)
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, answer.Body)
	n, _ := strconv.Atoi(answer.Header.Get("X-Stock"))
	return n
}

func main() {
	times, _ := strconv.Atoi(os.Args[1])
	server := httptest.NewServer(http.HandlerFunc(serve))
	defer server.Close()
	sum := 0
	for n := range times {
		sum += stock(server.Client(), fmt.Sprintf("%s/%d", server.URL, n))
	}
	fmt.Println(sum)
}
