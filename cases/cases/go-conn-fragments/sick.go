// A catalogue server with a goroutine for each connection, and four clients.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

func answer(w io.Writer, article int) {
	body := fmt.Sprintf("article %d costs %d\n", article, article*37%101)
	fmt.Fprint(w, "200 OK\r\n")
	fmt.Fprintf(w, "Length: %d\r\n", len(body))
	for s := 0; s < 3; s++ {
		fmt.Fprintf(w, "X-Shelf-%d: %d\r\n", s, (article+s)%17)
	}
	fmt.Fprint(w, "\r\n")
	fmt.Fprint(w, body)
}

func serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewScanner(c)
	for in.Scan() {
		var article int
		fmt.Sscanf(in.Text(), "GET %d", &article)
		answer(c, article)
	}
}

func client(addr string, id int) (sum int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for i := 0; i < 1500; i++ {
		fmt.Fprintf(c, "GET %d\n", id*1000+i)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				panic(err)
			}
			if strings.HasPrefix(line, "article") {
				sum += len(strings.Fields(line)[3]) + int(line[8])
				break
			}
		}
	}
	return sum
}

func main() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
			go serve(c)
		}
	}()
	var wg sync.WaitGroup
	sums := make([]int, 4)
	for id := range sums {
		wg.Go(func() { sums[id] = client(ln.Addr().String(), id+1) })
	}
	wg.Wait()
	ln.Close()
	fmt.Println("sums:", sums)
}
