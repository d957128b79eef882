// Asks a stock service about the articles of an order.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func service(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Query().Get("article"))
	time.Sleep(500 * time.Microsecond) // its database
	fmt.Fprint(w, n*37%101)
}

type stock struct {
	base string
}

func newStock(base string) *stock {
	return &stock{base: base}
}

func (s *stock) get(article int) (int, error) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
	resp, err := client.Get(fmt.Sprintf("%s/stock?article=%d", s.base, article))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(body))
}

func main() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	http.HandleFunc("/stock", service)
	go http.Serve(ln, nil)
	s := newStock("http://" + ln.Addr().String())
	sum, sold := 0, 0
	for a := 0; a < 400; a++ {
		n, err := s.get(a)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		sum += n
		if n == 0 {
			sold++
		}
	}
	fmt.Printf("pieces %d, sold out %d\n", sum, sold)
}
