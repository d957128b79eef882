// A ledger server with a write-ahead log: no answer before the entry is durable.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

type ledger struct {
	log     *os.File
	balance map[string]int
}

func (l *ledger) commit(account string, amount int) (int, error) {
	if _, err := fmt.Fprintf(l.log, "%s %d\n", account, amount); err != nil {
		return 0, err
	}
	if err := l.log.Sync(); err != nil {
		return 0, err
	}
	l.balance[account] += amount
	return l.balance[account], nil
}

func (l *ledger) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var account string
		var amount int
		fmt.Sscan(line, &account, &amount)
		b, err := l.commit(account, amount)
		if err != nil {
			fmt.Fprintln(c, "error")
			return
		}
		fmt.Fprintln(c, b)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func main() {
	log := must(os.OpenFile("ledger.wal", os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600))
	defer os.Remove("ledger.wal")
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	l := &ledger{log: log, balance: map[string]int{}}
	go func() { l.serve(must(ln.Accept())) }()
	c := must(net.Dial("tcp", ln.Addr().String()))
	in := bufio.NewReader(c)
	amount, last := 100, ""
	for i := 0; i < 150; i++ {
		fmt.Fprintf(c, "acct%d %d\n", i%3, amount)
		last = strings.TrimSpace(must(in.ReadString('\n')))
		fmt.Sscan(last, &amount)
		amount = amount*7%1000 + 1 // the next order depends on the balance
	}
	c.Close()
	log.Seek(0, io.SeekStart)
	text := must(io.ReadAll(log))
	fmt.Printf("last balance %s, log %d lines\n", last, strings.Count(string(text), "\n"))
}
