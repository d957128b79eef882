package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

func limiter(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			r := bufio.NewReader(c)
			start, used := time.Now(), 0
			for {
				q, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if since := time.Since(start); since > 100*time.Millisecond {
					start, used = time.Now(), 0
				}
				if used == 4 {
					fmt.Fprintf(c, "429 %d\n", (100*time.Millisecond-time.Since(start)).Microseconds()+200)
					continue
				}
				used++
				fmt.Fprintf(c, "200 %d\n", len(q)*37%101)
			}
		}()
	}
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	go limiter(l)
	c, _ := net.Dial("tcp", l.Addr().String())
	r := bufio.NewReader(c)
	for i := 0; i < 40; i++ {
		for {
			fmt.Fprintf(c, "item %s\n", strings.Repeat("x", i))
			a, err := r.ReadString('\n')
			if err != nil {
				os.Exit(1)
			}
			var code, n int
			fmt.Sscan(a, &code, &n)
			if code == 200 {
				fmt.Println(i, n)
				break
			}
			time.Sleep(time.Duration(n) * time.Microsecond)
		}
	}
}
