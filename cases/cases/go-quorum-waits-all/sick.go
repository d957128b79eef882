package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"time"
)

// A quorum read from three replicas; one of them hangs (accepts, never answers).

func replica(l net.Listener, dead bool) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			r := bufio.NewReader(c)
			for {
				q, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if dead {
					continue
				}
				time.Sleep(3 * time.Millisecond) // its disk
				fmt.Fprintf(c, "v%d\n", len(q)*13%97)
			}
		}()
	}
}

type node struct {
	c net.Conn
	r *bufio.Reader
}

func (n *node) ask(key string, out chan<- string) {
	n.c.SetReadDeadline(time.Now().Add(time.Second * 30))
	fmt.Fprintf(n.c, "%s\n", key)
	a, err := n.r.ReadString('\n')
	if err != nil {
		return
	}
	out <- a[:len(a)-1]
}

func quorum(nodes []*node, key string) string {
	out := make(chan string, len(nodes))
	for _, n := range nodes {
		go n.ask(key, out)
	}
	limit := time.After(80 * time.Millisecond)
	votes := map[string]int{}
	for i := 0; i < len(nodes); i++ {
		select {
		case v := <-out:
			votes[v]++
		case <-limit:
		}
	}
	for v, n := range votes {
		if n > len(nodes)/2 {
			return v
		}
	}
	return "none"
}

func main() {
	var nodes []*node
	for i := 0; i < 3; i++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			os.Exit(1)
		}
		go replica(l, i == 1)
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			os.Exit(1)
		}
		nodes = append(nodes, &node{c, bufio.NewReader(c)})
	}
	for i := 0; i < 14; i++ {
		key := fmt.Sprintf("%0*d", i+1, i)
		fmt.Println(key, quorum(nodes, key))
	}
}
