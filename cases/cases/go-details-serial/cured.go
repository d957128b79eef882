package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

type order struct {
	ID    int
	Total int
	Lines []string
}

func serve(l net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("/orders", func(w http.ResponseWriter, r *http.Request) {
		ids := make([]int, 60)
		for i := range ids {
			ids[i] = 1000 + i*3
		}
		json.NewEncoder(w).Encode(ids)
	})
	mux.HandleFunc("/order", func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.Atoi(r.URL.Query().Get("id"))
		time.Sleep(12 * time.Millisecond) // the data base
		json.NewEncoder(w).Encode(order{ID: id, Total: id * 37 % 991, Lines: []string{"a", "b"}})
	})
	http.Serve(l, mux)
}

func get(c *http.Client, url string, into any) {
	resp, err := c.Get(url)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func detail(c *http.Client, base string, id int) (o order) {
	get(c, fmt.Sprintf("%s/order?id=%d", base, id), &o)
	return
}

func main() {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	go serve(l)
	base := "http://" + l.Addr().String()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	var ids []int
	get(client, base+"/orders", &ids)
	orders := make([]order, len(ids))
	var wg sync.WaitGroup
	slots := make(chan bool, 8)
	for i, id := range ids {
		wg.Add(1)
		slots <- true
		go func() {
			orders[i] = detail(client, base, id)
			<-slots
			wg.Done()
		}()
	}
	wg.Wait()
	sum := 0
	for _, o := range orders {
		fmt.Println(o.ID, o.Total, len(o.Lines))
		sum += o.Total
	}
	fmt.Println("sum", sum)
}
